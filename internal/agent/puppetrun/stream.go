package puppetrun

import (
	"bufio"
	"bytes"
	_ "embed"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// hook is what is loaded into Puppet so that it writes what happens while it happens.
//
//go:embed events.rb
var hook []byte

// hookFile is its name in the directory of the events.
const hookFile = ".events.rb"

// stream says where a run writes its events.
type stream struct {
	dir         string // empty: nowhere
	transaction string // that ordered the run; may be empty
}

// into makes a run that is about to be started write its events. Whatever keeps it from that leaves the run as it
// was: its report says the same in the end.
func (e stream) into(cmd *exec.Cmd) {
	if e.dir == "" || runtime.GOOS == "windows" || strings.ContainsAny(e.dir, " \t\n'\"\\") { // Ruby splits its options there
		return
	}
	script, wrapped, ok := rubyScript(cmd.Path)
	if !ok {
		return
	}
	path, err := e.install()
	if err != nil {
		return
	}
	env := cmd.Env
	if wrapped {
		env = unwrapped(env, filepath.Dir(cmd.Path))
	}
	options := strings.TrimSpace(lastOf(env, "RUBYOPT") + " -r" + path)
	env = append(slices.Clone(env), "RUBYOPT="+options, "TUTTI_EVENTS="+e.dir, "TUTTI_EVENTS_HOOK="+path)
	if pxp.CheckTransaction(e.transaction) == nil {
		env = append(env, "TUTTI_EVENTS_TRANSACTION="+e.transaction)
	}
	cmd.Path, cmd.Env = script, env
}

// install writes the hook where Puppet can load it, if it is not there as it should be.
func (e stream) install() (string, error) {
	dir, err := filepath.Abs(e.dir)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, hookFile)
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, hook) {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	file, err := os.CreateTemp(dir, hookFile+".*")
	if err != nil {
		return "", err
	}
	_, err = file.Write(hook)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return "", err
	}
	return path, nil
}

// rubyScript finds the Ruby script behind an executable. Packages that bring a Ruby of their own put a shell script before it
// that clears Ruby's variables (wrapped); what it calls stands in puppet/bin beside its own directory.
func rubyScript(bin string) (script string, wrapped, ok bool) {
	path, err := filepath.EvalSymlinks(bin)
	if err != nil {
		return "", false, false
	}
	if isRuby(path) {
		return bin, false, true
	}
	for _, dir := range []string{filepath.Dir(bin), filepath.Dir(path)} {
		for _, place := range []string{filepath.Join(dir, "..", "puppet", "bin", "puppet"), filepath.Join(dir, "puppet")} {
			if place != path && isRuby(place) {
				return place, true, true
			}
		}
	}
	return bin, false, isScript(path) // somebody's own: it may keep Ruby's variables, and if not, nothing is lost
}

// isRuby says whether a file is a script for Ruby.
func isRuby(path string) bool {
	line := firstLine(path)
	return strings.HasPrefix(line, "#!") && strings.Contains(line, "ruby")
}

func isScript(path string) bool { return strings.HasPrefix(firstLine(path), "#!") }

func firstLine(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	line, _ := bufio.NewReader(io.LimitReader(file, 512)).ReadString('\n')
	return line
}

// cleared is what the wrapper takes out of the environment.
var cleared = strings.Fields(`GEM_HOME GEM_PATH DLN_LIBRARY_PATH RUBYLIB RUBYLIB_PREFIX RUBYOPT RUBYPATH RUBYSHELL
	LD_LIBRARY_PATH LD_PRELOAD SHLIB_PATH DYLD_LIBRARY_PATH DYLD_INSERT_LIBRARIES`)

// unwrapped is an environment as the wrapper would have made it.
func unwrapped(env []string, dir string) []string {
	kept := slices.DeleteFunc(slices.Clone(env), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(cleared, name)
	})
	if path := lastOf(env, "PATH"); !slices.Contains(filepath.SplitList(path), dir) {
		kept = append(kept, "PATH="+strings.TrimPrefix(path+string(os.PathListSeparator)+dir, string(os.PathListSeparator)))
	}
	return kept
}

// lastOf is the value of a variable; the last one counts.
func lastOf(env []string, name string) string {
	value := ""
	for _, variable := range env {
		if text, ok := strings.CutPrefix(variable, name+"="); ok {
			value = text
		}
	}
	return value
}
