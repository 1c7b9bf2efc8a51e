package service

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/tutti-project/tutti/internal/agent/builtin"
	"github.com/tutti-project/tutti/internal/agent/builtin/tool"
)

// initScript runs a script of init.
type initScript struct {
	Config
	script string
}

func isScript(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// What the status of a script means, by its exit code, as the Linux Standard Base says.
var scriptStates = map[int]State{
	0: {Status: running, State: "runs"},
	1: {Status: stopped, State: "dead, and its PID file is there"},
	2: {Status: stopped, State: "dead, and its lock is there"},
	3: {Status: stopped, State: "does not run"},
}

func (s initScript) state(ctx context.Context, name string) (State, error) {
	done, err := s.run(ctx, "status")
	if err != nil {
		return State{}, err
	}
	is, known := scriptStates[done.Exit]
	if !known {
		return State{}, builtin.Abort("%s does not say whether it runs: its exit code for status is %d (%s)", s.script, done.Exit, done.Why())
	}
	is.Provider, is.Enabled = "init", s.enabled(name)
	return is, nil
}

// enabled looks for the links that start the service with the system.
func (s initScript) enabled(name string) string {
	name = strings.ReplaceAll(name, `\`, `\\`) // else it is a pattern's
	for _, beginning := range []string{"/etc/rc[2345S].d/S[0-9][0-9]", "/etc/rc.d/rc[2345].d/S[0-9][0-9]", "/etc/runlevels/*/"} {
		if links, err := filepath.Glob(s.path(beginning + name)); err == nil && len(links) > 0 {
			return enabled
		}
	}
	return disabled
}

func (s initScript) act(ctx context.Context, do verb, name string) (string, error) {
	switch do {
	case enable, disable:
		return s.link(ctx, do, name)
	case start, stop, restart:
	}
	return why(s.run(ctx, string(do)))
}

func (s initScript) run(ctx context.Context, word string) (tool.Done, error) {
	return s.Tools.Run(ctx, tool.Command{Name: s.script, Args: []string{word}, Clean: true})
}

// link lets init start the service with the system, or no longer.
func (s initScript) link(ctx context.Context, do verb, name string) (string, error) {
	var lines [][]string
	switch {
	case s.Tools.Find("update-rc.d") != "":
		lines = [][]string{{"update-rc.d", name, "defaults"}, {"update-rc.d", name, string(do)}} // only what has links can be enabled, or not
	case s.Tools.Find("chkconfig") != "":
		lines = [][]string{{"chkconfig", name, map[verb]string{enable: "on", disable: "off"}[do]}}
	default:
		return "this node has neither update-rc.d nor chkconfig", nil
	}
	for _, line := range lines {
		if failed, err := why(s.Tools.Run(ctx, tool.Command{Name: line[0], Args: line[1:]})); err != nil || failed != "" {
			return failed, err
		}
	}
	return "", nil
}

// why is the reason of a program that failed.
func why(done tool.Done, err error) (string, error) {
	if err != nil || done.Exit == 0 {
		return "", err
	}
	return done.Why(), nil
}
