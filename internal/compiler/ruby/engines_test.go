package ruby

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/program/programtest"
)

// otherPuppet is an installation of this machine's Puppet that says another version.
type otherPuppet struct {
	t   *testing.T
	dir string
}

func newOtherPuppet(t *testing.T) otherPuppet {
	t.Helper()
	interpreter, err := Config{}.interpreter()
	if err != nil {
		t.Fatal(err)
	}
	o := otherPuppet{t, t.TempDir()}
	if err := os.MkdirAll(filepath.Join(o.dir, "lib"), 0o755); err != nil {
		t.Fatal(err)
	}
	programtest.Write(t, o.ruby(), "#!/bin/sh\nexec "+interpreter+" -I "+filepath.Join(o.dir, "lib")+" -r other \"$@\"\n")
	return o
}

func (o otherPuppet) ruby() string { return filepath.Join(o.dir, "ruby") }

// becomes writes what says the version, as a package's upgrade does: beside, and then in its place.
func (o otherPuppet) becomes(text string) {
	o.t.Helper()
	path := filepath.Join(o.dir, "lib", "other.rb")
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		o.t.Fatal(err)
	}
}

func saying(version string) string {
	return "module Puppet\n  @puppet_version = '" + version + "'\nend\n"
}

// runningEngines runs this machine's Puppet and another one, chosen by the version.
func runningEngines(t *testing.T, other otherPuppet, checkout directories, names map[fleet.Digest]string) *Engines {
	t.Helper()
	needPuppet(t)
	interpreter, err := Config{}.interpreter()
	if err != nil {
		t.Fatal(err)
	}
	return enginesOf(t, []Engine{{Name: "own", Ruby: interpreter}, {Name: "other", Ruby: other.ruby()}, {Name: "missing", Ruby: filepath.Join(other.dir, "none")}},
		checkout, func(version fleet.Digest) string { return names[version] }, other.dir)
}

// enginesOf runs engines; the code may read some directories.
func enginesOf(t *testing.T, engines []Engine, checkout directories, choose func(version fleet.Digest) string, read ...string) *Engines {
	t.Helper()
	e, err := NewEngines(
		Config{Workers: 2, Dir: t.TempDir(), NoJIT: true, Keeper: keeper(t), Grants: func(fleet.Environment) Grants { return Grants{Read: read} }},
		engines,
		func(_ context.Context, _ fleet.Environment, version fleet.Digest) (string, error) {
			return choose(version), nil
		},
		checkout, compiletest.NewInventory(), slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return e
}

const tellsVersion = "notify { 'by': message => inline_template('<%= Puppet.version %>') }\n"

func TestEachVersionIsCompiledByItsEngine(t *testing.T) {
	t.Parallel()
	other := newOtherPuppet(t)
	other.becomes(saying("7.99.0"))
	code := tree(t, map[string]string{"manifests/site.pp": tellsVersion})
	names := map[fleet.Digest]string{version("a"): "", version("b"): "other", version("c"): "missing", version("d"): "unknown"}
	e := runningEngines(t, other, directories{version("a"): code, version("b"): code, version("c"): code}, names)
	for _, tt := range []struct{ version, says string }{{"a", ""}, {"b", "7.99.0"}} {
		out, err := e.Compile(t.Context(), order(t, "production", tt.version, "n.example.org"))
		if err != nil {
			t.Fatal(err)
		}
		says, by, err := e.Puppet(t.Context(), "production", version(tt.version))
		if err != nil || tt.says != "" && says != tt.says || by != ByPuppet {
			t.Errorf("%s is compiled by %s %s, not %s: %v", tt.version, by, says, tt.says, err)
		}
		if !strings.Contains(string(out.Catalog), `"message":"`+says+`"`) {
			t.Errorf("%s was compiled by another Puppet than %s: %s", tt.version, says, out.Catalog)
		}
		if name := e.Engine(t.Context(), "production", version(tt.version)); name != out.Engine || !strings.HasPrefix(name, "puppet "+says+", ") {
			t.Errorf("the engine is called %q, and the catalog's %q", name, out.Engine)
		}
	}
	for name, word := range map[string]string{"c": "there is no Ruby at", "d": "there is no engine unknown"} {
		_, err := e.Compile(t.Context(), order(t, "production", name, "n.example.org"))
		if fault.Of(err) != fault.Unavailable || !strings.Contains(fault.Detail(err), word) {
			t.Errorf("%s: %v", name, err)
		}
		if got := e.Engine(t.Context(), "production", version(name)); got != "" {
			t.Errorf("%s: the engine is called %q", name, got)
		}
	}
	if err := e.Check(t.Context(), "unknown"); fault.Of(err) != fault.NotFound {
		t.Error(err)
	}
	if err := e.Check(t.Context(), "missing"); fault.Of(err) != fault.Unavailable {
		t.Error(err)
	}
	standings := e.Standings()
	if len(standings) != 3 || standings[0].Name != "own" || standings[1].Puppet != "7.99.0" || standings[2].Trouble == nil {
		t.Errorf("the engines are %+v", standings)
	}
}

// An upgrade of the package under a running server: what it compiles from then on is the new Puppet's, whole.
func TestAnUpgradeStartsTheEngineAnew(t *testing.T) {
	t.Parallel()
	other := newOtherPuppet(t)
	other.becomes(saying("7.99.0"))
	pause := filepath.Join(other.dir, "go")
	code := tree(t, map[string]string{"manifests/site.pp": tellsVersion + `
notify { 'slow': message => inline_template("<% 400.times { break if @slow != 'yes' || File.exist?('` + pause + `'); sleep 0.05 } %>x") }
`})
	e := runningEngines(t, other, directories{version("b"): code}, map[fleet.Digest]string{version("b"): "other"})
	quick := order(t, "production", "b", "n.example.org")
	before, err := e.Compile(t.Context(), quick)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(before.Catalog), "7.99.0") {
		t.Fatalf("the catalog is %s", before.Catalog)
	}
	slow := quick
	slow.Parameters = []byte(`{"slow":"yes"}`)
	done := compileLater(e.pools[1], t.Context(), slow)
	await(t, "a worker that compiles", func() bool { return e.pools[1].busy() == 1 })
	other.becomes(saying("7.99.1"))
	if err := os.WriteFile(pause, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	after := <-done
	if after.err != nil {
		t.Fatal(after.err)
	}
	if !strings.Contains(string(after.outcome.Catalog), "7.99.1") || after.outcome.Engine == before.Engine {
		t.Errorf("a compilation that an upgrade came into gave %s of %s", after.outcome.Catalog, after.outcome.Engine)
	}
	if name := e.Engine(t.Context(), "production", version("b")); name != after.outcome.Engine {
		t.Errorf("the engine is called %q, the catalog's %q", name, after.outcome.Engine)
	}

	other.becomes("module Puppet\n") // half of the package is there
	_, err = e.Compile(t.Context(), quick)
	if fault.Of(err) != fault.Unavailable || !strings.Contains(fault.Detail(err), "does not say which Puppet it has") {
		t.Errorf("with half an installation: %v", err)
	}
	other.becomes(saying("7.99.2"))
	whole, err := e.Compile(t.Context(), quick)
	if err != nil || !strings.Contains(string(whole.Catalog), "7.99.2") {
		t.Errorf("with a whole one again: %s, %v", whole.Catalog, err)
	}
}

// busy is how many workers compile.
func (p *Pool) busy() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.workers) - len(p.idle)
}
