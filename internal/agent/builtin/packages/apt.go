package packages

import (
	"context"
	"strings"

	"github.com/tutti-project/tutti/internal/agent/builtin"
	"github.com/tutti-project/tutti/internal/agent/builtin/tool"
)

// apt is dpkg and apt-get.
type apt struct{ tools tool.Box }

func (apt) name() string { return aptName }

// dpkgFormat is a line for each package: state, name, version, architecture.
const dpkgFormat = `${db:Status-Abbrev}\t${Package}\t${Version}\t${Architecture}\n`

func (a apt) state(ctx context.Context, name string) (State, error) {
	done, err := a.tools.Run(ctx, tool.Command{Name: "dpkg-query", Args: []string{"-W", "-f", dpkgFormat, "--", name}})
	if err != nil {
		return State{}, err
	}
	if done.Exit > 1 { // 1: there is none
		return State{}, builtin.Abort("dpkg-query cannot say what is installed: %s", done.Why())
	}
	return parseDpkg(name, done.Stdout), nil
}

// parseDpkg reads lines of dpkgFormat: the first that is installed counts, of those with several architectures.
func parseDpkg(name, text string) State {
	state := State{Ensure: purged, Provider: aptName, Name: name}
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 4 || len(fields[0]) < 2 {
			continue
		}
		switch fields[0][1] { // n: not installed; c: its settings are there; i, t, W: installed; H, U, F: partly
		case 'n':
		case 'c':
			state.Ensure = absent
		default:
			state.Ensure, state.Arch = fields[2], fields[3]
			state.Epoch, state.Version, state.Release = splitDebian(fields[2])
			if state.Ensure == "" {
				state.Ensure = absent
			}
			return state
		}
	}
	return state
}

// splitDebian takes a version apart: EPOCH:VERSION-RELEASE.
func splitDebian(full string) (epoch, version, release string) {
	version = full
	if before, after, ok := strings.Cut(version, ":"); ok {
		epoch, version = before, after
	}
	if i := strings.LastIndex(version, "-"); i >= 0 {
		version, release = version[:i], version[i+1:]
	}
	return epoch, version, release
}

func (a apt) unknown(ctx context.Context, name string) (string, error) {
	done, err := a.tools.Run(ctx, tool.Command{Name: "apt-cache", Args: []string{"show", "--no-all-versions", "--", name}})
	if err != nil {
		return "", err
	}
	bare, _, _ := strings.Cut(name, ":")
	for line := range strings.Lines(done.Stdout) {
		if strings.TrimSuffix(line, "\n") == "Package: "+bare {
			return "", nil
		}
	}
	return "apt knows no package of that name; apt_update fetches its lists anew", nil
}

func (apt) command(do verb, name, version string) tool.Command {
	switch do {
	case install:
		if version != "" {
			return aptGet("install", "--allow-downgrades", "--", name+"="+version)
		}
		return aptGet("install", "--", name)
	case update:
		return aptGet("install", "--only-upgrade", "--", name)
	case uninstall:
		return aptGet("remove", "--", name)
	case purge:
	}
	return aptGet("purge", "--", name)
}

func (apt) fine(exit int) bool { return exit == 0 }

// aptGet asks nothing, keeps settings that were changed, and waits a while for another one that works.
func aptGet(args ...string) tool.Command {
	return tool.Command{
		Name: "apt-get", Args: append([]string{"-q", "-y", "-o", "DPkg::Options::=--force-confold", "-o", "DPkg::Lock::Timeout=60"}, args...),
		Env: []string{"DEBIAN_FRONTEND=noninteractive", "APT_LISTCHANGES_FRONTEND=none"},
	}
}

func (a apt) outdated(ctx context.Context) (tool.Done, []Outdated, error) {
	done, err := a.tools.Run(ctx, tool.Command{Name: "apt-get", Args: []string{"-q", "--simulate", "-o", "Debug::NoLocking=true", "dist-upgrade"}})
	if err != nil {
		return done, nil, err
	}
	if done.Exit != 0 {
		return done, nil, builtin.AbortWith(Ran{done.Output(), done.Exit}, "apt-get failed, the exit code is %d: %s", done.Exit, done.Why())
	}
	return done, parseSimulation(done.Stdout), nil
}

// parseSimulation reads the lines of apt-get that say what would be upgraded:
//
//	Inst NAME [INSTALLED] (VERSION REPOSITORY, REPOSITORY [ARCH]) []
func parseSimulation(text string) []Outdated {
	var all []Outdated
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "Inst ")
		if !ok {
			continue
		}
		name, rest, _ := strings.Cut(rest, " [")
		installed, rest, ok := strings.Cut(rest, "] (")
		offer, _, closed := strings.Cut(rest, ")")
		if !ok || !closed || name == "" || strings.Contains(name, " ") { // without an installed version it is a new dependency
			continue
		}
		offer, _, _ = strings.Cut(offer, " [") // the architecture
		version, repo, _ := strings.Cut(offer, " ")
		all = append(all, Outdated{Package: name, Version: version, Repo: repo, Installed: installed})
	}
	return all
}

func (a apt) installed(ctx context.Context) ([]string, error) {
	all, err := lines(ctx, a.tools, tool.Command{Name: "dpkg-query", Args: []string{"-W", "-f", `${db:Status-Abbrev}${binary:Package} ${Version}\n`}})
	return parseInstalled(all), err
}

// parseInstalled leaves out what is known, but not installed, and the state of the others.
func parseInstalled(lines []string) []string {
	var all []string
	for _, line := range lines {
		if len(line) > 3 && line[1] == 'i' {
			all = append(all, line[3:])
		}
	}
	return all
}
