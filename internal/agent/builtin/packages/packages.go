package packages

import (
	"context"
	"crypto/md5" //nolint:gosec // no secret is kept by it: it is how the action is called
	_ "embed"    // the module's description
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/agent/builtin"
	"github.com/tutti-project/tutti/internal/agent/builtin/tool"
)

//go:embed module.json
var metadata []byte

// Config is what the module stands on.
type Config struct {
	Tools tool.Box
	Root  string // of the file system; empty: the system's own
}

// Module makes the module.
func Module(cfg Config) builtin.Module {
	calls := map[string]builtin.Call{
		"status":           builtin.Typed(cfg.status),
		"checkupdates":     builtin.Typed(func(ctx context.Context, _ struct{}) (any, error) { return cfg.outdated(ctx) }),
		"apt_checkupdates": builtin.Typed(func(ctx context.Context, _ struct{}) (any, error) { return cfg.outdated(ctx, aptName) }),
		"yum_checkupdates": builtin.Typed(func(ctx context.Context, _ struct{}) (any, error) { return cfg.outdated(ctx, dnfName, yumName) }),
		"apt_update":       builtin.Typed(cfg.aptUpdate),
		"yum_clean":        builtin.Typed(cfg.yumClean),
		"count":            builtin.Typed(cfg.count),
		"md5":              builtin.Typed(cfg.sum),
	}
	for _, verb := range []verb{install, update, uninstall, purge} {
		calls[string(verb)] = builtin.Typed(func(ctx context.Context, in input) (any, error) { return cfg.change(ctx, verb, in) })
	}
	return builtin.Module{Name: "package", Metadata: metadata, Calls: calls}
}

type input struct {
	Package string `json:"package"`
	Version string `json:"version"`
}

// verb is what is done to a package.
type verb string

const (
	install   verb = "install"
	update    verb = "update"
	uninstall verb = "uninstall"
	purge     verb = "purge"
)

// State is what is known of a package.
type State struct {
	Output   string `json:"output,omitempty"`
	Epoch    string `json:"epoch,omitempty"`
	Arch     string `json:"arch,omitempty"`
	Ensure   string `json:"ensure"`
	Version  string `json:"version,omitempty"`
	Provider string `json:"provider"`
	Name     string `json:"name"`
	Release  string `json:"release,omitempty"`
	Exit     *int   `json:"exitcode,omitempty"` // of the program that changed it
}

// What ensure is without a version.
const (
	absent = "absent"
	purged = "purged"
)

func (s State) installed() bool { return s.Ensure != absent && s.Ensure != purged }

// is says whether this version is installed: the whole one, or without what the package manager adds.
func (s State) is(version string) bool {
	epoch := ""
	if s.Epoch != "" {
		epoch = s.Epoch + ":"
	}
	full := s.Version
	if s.Release != "" {
		full += "-" + s.Release
	}
	return slices.Contains([]string{s.Ensure, s.Version, full, epoch + s.Version, epoch + full}, version)
}

// Names of package managers.
const (
	aptName    = "apt"
	dnfName    = "dnf"
	yumName    = "yum"
	zypperName = "zypper"
)

// manager is a package manager.
type manager interface {
	name() string
	state(ctx context.Context, name string) (State, error)
	// unknown says why a package cannot be installed; empty: it can be tried.
	unknown(ctx context.Context, name string) (string, error)
	command(do verb, name, version string) tool.Command
	// fine says whether an exit code of that command is no failure.
	fine(exit int) bool
	outdated(ctx context.Context) (tool.Done, []Outdated, error)
	// installed lists what is installed, a line for each, not sorted.
	installed(ctx context.Context) ([]string, error)
}

// manager finds the one that this system has.
func (c Config) manager() (manager, error) {
	dpkg, err := os.Stat(filepath.Join(c.Root, "/var/lib/dpkg/status"))
	rpms := rpm{c.Tools}
	switch {
	case err == nil && dpkg.Size() > 0 && c.Tools.Find("dpkg-query") != "":
		return apt{c.Tools}, nil
	case c.Tools.Find("rpm") == "":
	case c.Tools.Find("zypper") != "":
		return zypper{rpms}, nil
	case c.Tools.Find("dnf") != "":
		return dnf{rpms, dnfName}, nil
	case c.Tools.Find("yum") != "":
		return dnf{rpms, yumName}, nil
	}
	return nil, builtin.Abort("this node has none of the package managers apt, dnf, yum and zypper")
}

// only is manager, if it is one of these.
func (c Config) only(names ...string) (manager, error) {
	m, err := c.manager()
	if err == nil && len(names) > 0 && !slices.Contains(names, m.name()) {
		err = builtin.Abort("this node's package manager is %s, not %s", m.name(), strings.Join(names, " or "))
	}
	return m, err
}

func (c Config) status(ctx context.Context, in input) (any, error) {
	m, err := c.manager()
	if err != nil {
		return nil, err
	}
	s, err := m.state(ctx, in.Package)
	return s, err
}

func (c Config) change(ctx context.Context, do verb, in input) (any, error) {
	m, err := c.manager()
	if err != nil {
		return nil, err
	}
	before, err := m.state(ctx, in.Package)
	if err != nil {
		return nil, err
	}
	if why, err := idle(ctx, m, do, in, before); why != "" || err != nil {
		before.Output = why
		return before, err
	}
	command := m.command(do, in.Package, in.Version)
	command.GoesOn = true
	done, err := c.Tools.Run(ctx, command)
	if err != nil {
		return nil, err
	}
	after, err := m.state(ctx, in.Package)
	if err != nil {
		return nil, err
	}
	after.Output, after.Exit = done.Output(), &done.Exit
	if why := failed(m, do, in, after, done); why != "" {
		return nil, builtin.AbortWith(after, "%s of the package %s failed: %s", do, in.Package, why)
	}
	return after, nil
}

// idle says why there is nothing to do. It is an error if that is not what was asked for.
func idle(ctx context.Context, m manager, do verb, in input, before State) (string, error) {
	switch {
	case do == install && before.installed() && (in.Version == "" || before.is(in.Version)):
		return "the package is installed already", nil
	case do == install && !before.installed():
		why, err := m.unknown(ctx, in.Package)
		if err == nil && why != "" {
			err = builtin.Abort("the package %s cannot be installed: %s", in.Package, why)
		}
		return "", err
	case do == update && !before.installed():
		return "", builtin.AbortWith(before, "the package %s is not installed, so it is not updated; install it", in.Package)
	case do == uninstall && !before.installed(), do == purge && before.Ensure == purged, do == purge && before.Ensure == absent && m.name() != aptName:
		return "the package is not installed", nil
	}
	return "", nil
}

// failed says why a change did not come about; empty: it did.
func failed(m manager, do verb, in input, after State, done tool.Done) string {
	switch {
	case !m.fine(done.Exit):
		return fmt.Sprintf("the exit code is %d: %s", done.Exit, done.Why())
	case (do == install || do == update) && !after.installed():
		return "it is not installed afterwards"
	case do == install && in.Version != "" && !after.is(in.Version):
		return "the version is " + after.Ensure + " afterwards"
	case (do == uninstall || do == purge) && after.installed():
		return "it is installed afterwards"
	}
	return ""
}

// Outdated is a package for which there is a newer one.
type Outdated struct {
	Package   string `json:"package"`
	Version   string `json:"version"` // that is to be had
	Repo      string `json:"repo,omitempty"`
	Installed string `json:"installed,omitempty"`
}

// Ran is what a program left that was run for its output.
type Ran struct {
	Output string `json:"output"`
	Exit   int    `json:"exitcode"`
}

func (c Config) outdated(ctx context.Context, names ...string) (any, error) {
	m, err := c.only(names...)
	if err != nil {
		return nil, err
	}
	done, all, err := m.outdated(ctx)
	if err != nil {
		return nil, err
	}
	if done.Cut { // there may be more of them
		return nil, builtin.Abort("%s lists more updates than can be read", m.name())
	}
	if all == nil {
		all = []Outdated{}
	}
	return struct {
		Ran
		Manager  string     `json:"package_manager"`
		Outdated []Outdated `json:"outdated_packages"`
	}{Ran{done.Output(), done.Exit}, m.name(), all}, nil
}

func (c Config) aptUpdate(ctx context.Context, _ struct{}) (any, error) {
	if _, err := c.only(aptName); err != nil {
		return nil, err
	}
	return c.run(ctx, aptGet("update"))
}

type cleaning struct {
	Mode string `json:"mode"`
}

func (c Config) yumClean(ctx context.Context, in cleaning) (any, error) {
	m, err := c.only(dnfName, yumName)
	if err != nil {
		return nil, err
	}
	if in.Mode == "" {
		in.Mode = "all"
	}
	return c.run(ctx, tool.Command{Name: m.name(), Args: []string{"clean", in.Mode}})
}

// run is an action that runs a program.
func (c Config) run(ctx context.Context, command tool.Command) (any, error) {
	done, err := c.Tools.Run(ctx, command)
	if err != nil {
		return nil, err
	}
	ran := Ran{done.Output(), done.Exit}
	if done.Exit != 0 {
		return nil, builtin.AbortWith(ran, "%s failed, the exit code is %d: %s", command.Name, done.Exit, done.Why())
	}
	return ran, nil
}

func (c Config) count(ctx context.Context, _ struct{}) (any, error) {
	all, err := c.all(ctx)
	return struct {
		Output int `json:"output"`
		Exit   int `json:"exitcode"`
	}{Output: len(all)}, err
}

func (c Config) sum(ctx context.Context, _ struct{}) (any, error) {
	all, err := c.all(ctx)
	slices.Sort(all)
	sum := md5.New() //nolint:gosec // see above
	for _, line := range all {
		_, _ = fmt.Fprintln(sum, line)
	}
	return Ran{Output: hex.EncodeToString(sum.Sum(nil))}, err
}

func (c Config) all(ctx context.Context) ([]string, error) {
	m, err := c.manager()
	if err != nil {
		return nil, err
	}
	return m.installed(ctx)
}

// lines are those of a program that has to succeed, and whose output has to be whole.
func lines(ctx context.Context, tools tool.Box, command tool.Command) ([]string, error) {
	done, err := tools.Run(ctx, command)
	switch {
	case err != nil:
		return nil, err
	case done.Exit != 0:
		return nil, builtin.Abort("%s failed, the exit code is %d: %s", command.Name, done.Exit, done.Why())
	case done.Cut:
		return nil, builtin.Abort("%s lists more packages than can be read", command.Name)
	}
	var all []string
	for line := range strings.Lines(done.Stdout) {
		all = append(all, strings.TrimSuffix(line, "\n"))
	}
	return all, nil
}

// Data answers the data function package.
func Data(cfg Config) builtin.Data {
	return func(ctx context.Context, query string) (any, error) {
		m, err := cfg.manager()
		if err != nil {
			return nil, err
		}
		s, err := m.state(ctx, query)
		return struct {
			Status    string `json:"status"`
			Installed bool   `json:"installed"`
			Version   string `json:"version,omitempty"`
			Release   string `json:"release,omitempty"`
		}{s.Ensure, s.installed(), s.Version, s.Release}, err
	}
}
