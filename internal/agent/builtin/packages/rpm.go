package packages

import (
	"bytes"
	"context"
	"encoding/xml"
	"strings"

	"github.com/tutti-project/tutti/internal/agent/builtin"
	"github.com/tutti-project/tutti/internal/agent/builtin/tool"
)

// rpm is what dnf, yum and zypper have in common.
type rpm struct{ tools tool.Box }

// rpmFormat is a line for each package.
const rpmFormat = `%{NAME}\t%{EPOCH}\t%{VERSION}\t%{RELEASE}\t%{ARCH}\n`

func (r rpm) query(ctx context.Context, provider, name string) (State, error) {
	done, err := r.tools.Run(ctx, tool.Command{Name: "rpm", Args: []string{"-q", "--qf", rpmFormat, "--", name}})
	if err != nil {
		return State{}, err
	}
	if done.Exit > 1 { // 1: it is not installed
		return State{}, builtin.Abort("rpm cannot say what is installed: %s", done.Why())
	}
	return parseRPM(provider, name, done.Stdout), nil
}

// parseRPM reads lines of rpmFormat. Of several versions the last counts: it was installed last.
func parseRPM(provider, name, text string) State {
	state := State{Ensure: absent, Provider: provider, Name: name}
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 5 || fields[2] == "" {
			continue
		}
		state.Epoch, state.Version, state.Release, state.Arch = fields[1], fields[2], fields[3], fields[4]
		if state.Epoch == "(none)" {
			state.Epoch = "0"
		}
		state.Ensure = state.Version + "-" + state.Release
		if state.Epoch != "0" {
			state.Ensure = state.Epoch + ":" + state.Ensure
		}
	}
	return state
}

func (rpm) unknown(context.Context, string) (string, error) { return "", nil }

func (rpm) fine(exit int) bool { return exit == 0 }

func (r rpm) installed(ctx context.Context) ([]string, error) {
	return lines(ctx, r.tools, tool.Command{Name: "rpm", Args: []string{"-qa"}})
}

// erase removes nothing that needs the package, as Puppet does it.
func erase(name string) tool.Command {
	return tool.Command{Name: "rpm", Args: []string{"-e", "--", name}}
}

// dnf is dnf, or yum.
type dnf struct {
	rpm
	program string
}

func (d dnf) name() string { return d.program }

func (d dnf) state(ctx context.Context, name string) (State, error) {
	return d.query(ctx, d.program, name)
}

func (d dnf) command(do verb, name, version string) tool.Command {
	if version != "" {
		name += "-" + version
	}
	switch do {
	case install:
		return tool.Command{Name: d.program, Args: []string{"-y", "install", "--", name}}
	case update:
		return tool.Command{Name: d.program, Args: []string{"-y", "update", "--", name}}
	case uninstall:
		return erase(name)
	case purge:
	}
	return tool.Command{Name: d.program, Args: []string{"-y", "erase", "--", name}}
}

// updatesThere is the exit code of check-update when there are some.
const updatesThere = 100

func (d dnf) outdated(ctx context.Context) (tool.Done, []Outdated, error) {
	done, err := d.tools.Run(ctx, tool.Command{Name: d.program, Args: []string{"-q", "check-update"}})
	if err != nil {
		return done, nil, err
	}
	if done.Exit != 0 && done.Exit != updatesThere {
		return done, nil, builtin.AbortWith(Ran{done.Output(), done.Exit}, "%s failed, the exit code is %d: %s", d.program, done.Exit, done.Why())
	}
	return done, parseCheckUpdate(done.Stdout), nil
}

// parseCheckUpdate reads what check-update prints: NAME.ARCH VERSION REPOSITORY in columns. What does not fit a line of 80 characters goes
// on in the next one, which begins with a space. Packages that others make obsolete are no updates.
func parseCheckUpdate(text string) []Outdated {
	var all []Outdated
	var row []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "Obsoleting Packages") {
			break
		}
		if fields := strings.Fields(line); strings.HasPrefix(line, " ") {
			row = append(row, fields...)
		} else {
			row = fields
		}
		if len(row) == 3 && strings.Contains(row[0], ".") && strings.ContainsAny(row[1], "0123456789") {
			all = append(all, Outdated{Package: row[0], Version: row[1], Repo: row[2]})
			row = nil
		}
	}
	return all
}

// zypper is SUSE's.
type zypper struct{ rpm }

func (zypper) name() string { return zypperName }

func (z zypper) state(ctx context.Context, name string) (State, error) {
	return z.query(ctx, zypperName, name)
}

func (zypper) command(do verb, name, version string) tool.Command {
	args := []string{"--non-interactive"}
	switch do {
	case install:
		args = append(args, "install", "--auto-agree-with-licenses")
		if version != "" {
			args, name = append(args, "--oldpackage"), name+"="+version
		}
	case update:
		args = append(args, "update", "--auto-agree-with-licenses")
	case uninstall:
		return erase(name)
	case purge:
		args = append(args, "remove")
	}
	return tool.Command{Name: zypperName, Args: append(args, "--", name)}
}

// fine are also zypper's codes that only inform: there are updates (100, 101), the system or zypper should be started anew (102, 103),
// a repository was left out (106).
func (zypper) fine(exit int) bool {
	return exit == 0 || exit >= 100 && exit <= 103 || exit == 106
}

func (z zypper) outdated(ctx context.Context) (tool.Done, []Outdated, error) {
	done, err := z.tools.Run(ctx, tool.Command{Name: zypperName, Args: []string{"--non-interactive", "--xmlout", "list-updates"}})
	if err != nil {
		return done, nil, err
	}
	if !z.fine(done.Exit) {
		return done, nil, builtin.AbortWith(Ran{done.Output(), done.Exit}, "zypper failed, the exit code is %d: %s", done.Exit, done.Why())
	}
	all, err := parseZypper(done.Stdout)
	return done, all, err
}

// parseZypper reads what zypper prints with --xmlout.
func parseZypper(text string) ([]Outdated, error) {
	var stream struct {
		Updates []struct {
			Kind    string `xml:"kind,attr"`
			Name    string `xml:"name,attr"`
			Edition string `xml:"edition,attr"`
			Old     string `xml:"edition-old,attr"`
			Source  struct {
				Alias string `xml:"alias,attr"`
			} `xml:"source"`
		} `xml:"update-status>update-list>update"`
	}
	if err := xml.NewDecoder(bytes.NewReader([]byte(text))).Decode(&stream); err != nil {
		return nil, builtin.Abort("what zypper prints cannot be read: %v", err)
	}
	var all []Outdated
	for _, u := range stream.Updates {
		if u.Kind == "package" && u.Name != "" {
			all = append(all, Outdated{Package: u.Name, Version: u.Edition, Repo: u.Source.Alias, Installed: u.Old})
		}
	}
	return all, nil
}
