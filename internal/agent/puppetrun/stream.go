package puppetrun

import (
	_ "embed"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/agent/puppetenv"
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
	script, wrapped, ok := puppetenv.RubyScript(cmd.Path)
	if !ok {
		return
	}
	path, err := e.install()
	if err != nil {
		return
	}
	env := cmd.Env
	if wrapped {
		env = puppetenv.Unwrapped(env, filepath.Dir(cmd.Path))
	}
	options := strings.TrimSpace(puppetenv.LastOf(env, "RUBYOPT") + " -r" + path)
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
	return path, puppetenv.Install(path, hook)
}
