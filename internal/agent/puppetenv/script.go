package puppetenv

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// RubyScript finds the Ruby script behind an executable. Packages that bring a Ruby of their own put a shell script before it
// that clears Ruby's variables (wrapped); what it calls stands in puppet/bin beside its own directory.
func RubyScript(bin string) (script string, wrapped, ok bool) {
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

// Unwrapped is an environment as the wrapper would have made it.
func Unwrapped(env []string, dir string) []string {
	kept := slices.DeleteFunc(slices.Clone(env), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(cleared, name)
	})
	if path := LastOf(env, "PATH"); !slices.Contains(filepath.SplitList(path), dir) {
		kept = append(kept, "PATH="+strings.TrimPrefix(path+string(os.PathListSeparator)+dir, string(os.PathListSeparator)))
	}
	return kept
}

// LastOf is the value of a variable; the last one counts.
func LastOf(env []string, name string) string {
	value := ""
	for _, variable := range env {
		if text, ok := strings.CutPrefix(variable, name+"="); ok {
			value = text
		}
	}
	return value
}
