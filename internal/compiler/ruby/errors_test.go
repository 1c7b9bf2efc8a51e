package ruby

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/program/programtest"
)

// fails compiles an order that must not compile.
func fails(t *testing.T, pool *Pool, o compile.Order) *compile.Error {
	t.Helper()
	_, err := pool.Compile(t.Context(), o)
	failure, ok := errors.AsType[*compile.Error](err)
	if !ok {
		t.Fatalf("%s: got %v, want a *compile.Error", o.Node, err)
	}
	return failure
}

// secretName is an environment variable that workers must not see.
const secretName = "TUTTI_TEST_SECRET"

// TestPool runs what needs no pool of its own on one.
func TestPool(t *testing.T) {
	t.Setenv(secretName, "not for modules") // hence not parallel
	pool := running(t, Config{Workers: 2, CompilesPerWorker: 7}, directories{version("bad"): tree(t, badCode)})
	for name, test := range map[string]func(*testing.T, *Pool){
		"CodeErrorsSayWhere":       codeErrorsSayWhere,
		"LogsAndExportedResources": logsAndExportedResources,
		"OrderThatKillsWorkers":    orderThatKillsWorkers,
		"WorkersSeeACleanWorld":    workersSeeACleanWorld,
		"ManyOrdersFewWorkers":     manyOrdersFewWorkers,
	} {
		t.Run(name, func(t *testing.T) { test(t, pool) })
	}
}

func codeErrorsSayWhere(t *testing.T, pool *Pool) {
	t.Helper()
	cases := map[string]struct {
		message, file string
		line          int
	}{
		"unknown-class":    {"Could not find class ::nothing::here", "manifests/site.pp", 2},
		"raises":           {"the reason", "manifests/site.pp", 5},
		"bad-parameter":    {"expects an Integer value, got String", "manifests/site.pp", 8},
		"fails":            {"because I say so", "manifests/site.pp", 10},
		"missing-library":  {"cannot load such file -- jsn", "", 0}, // and what Ruby guesses, as plain Puppet says it: TestPlainPuppetFailsInTheSameWords
		"template":         {"undefined method `missing_method'", "manifests/site.pp", 0},
		"syntax-in-module": {"Syntax error at", "modules/bad/manifests/syntax.pp", 2},
		"exits":            {"exit", "", 0},
		"throws":           {"uncaught throw", "", 0},
		"ruby-recursion":   {"stack level too deep", "", 0},
		"recursion":        {"stack level too deep", "", 0},
	}
	for name, want := range cases {
		got := fails(t, pool, order(t, "production", "bad", name+".example.org"))
		if got.Cause != compile.CauseCode {
			t.Errorf("%s: cause %s, want code", name, got.Cause)
		}
		if !strings.Contains(got.Message, want.message) {
			t.Errorf("%s: message %q, want %q in it", name, got.Message, want.message)
		}
		if strings.Contains(got.Message, "/tmp") {
			t.Errorf("%s: the message shows where it was compiled: %q", name, got.Message)
		}
		if want.file != "" && got.File != want.file || want.line != 0 && got.Line != want.line {
			t.Errorf("%s: at %s:%d, want %s:%d (%s)", name, got.File, got.Line, want.file, want.line, got.Message)
		}
	}
	if c := mustCompile(t, pool, order(t, "production", "bad", "fine.example.org")); c.find("Notify[fine]") == nil {
		t.Error("after all that the worker does not compile any more")
	}
}

func TestSyntaxErrorInTheMainManifest(t *testing.T) {
	t.Parallel()
	pool := running(t, Config{Workers: 1}, directories{
		version("syntax"): tree(t, map[string]string{"manifests/site.pp": "node default {\n  notify { 'x' }\n}\n"}),
	})
	for range 2 {
		got := fails(t, pool, order(t, "production", "syntax", "n.example.org"))
		if got.Cause != compile.CauseCode || got.File != "manifests/site.pp" || got.Line != 2 ||
			!strings.Contains(got.Message, "(file: /etc/puppetlabs/code/environments/production/manifests/site.pp, line: 2") {
			t.Errorf("got %+v", got)
		}
	}
}

func TestUnusableEnvironmentConf(t *testing.T) {
	t.Parallel()
	pool := running(t, Config{Workers: 1}, directories{version("conf"): tree(t, map[string]string{"environment.conf": "manifest = /etc/somewhere\n"})})
	got := fails(t, pool, order(t, "production", "conf", "n.example.org"))
	if got.Cause != compile.CauseCode || !strings.Contains(got.Message, "environment.conf: manifest must be a path below the environment") {
		t.Errorf("got %+v", got)
	}
}

func TestUnusableOrders(t *testing.T) {
	t.Parallel()
	pool := running(t, Config{Workers: 1, MaxOrderBytes: 1 << 20}, directories{version("bad"): tree(t, badCode)})
	good := order(t, "production", "bad", "fine.example.org")
	cases := map[string]func(*compile.Order){
		"no facts":    func(o *compile.Order) { o.Facts = nil },
		"facts array": func(o *compile.Order) { o.Facts = json.RawMessage(`[1]`) },
		"facts cut":   func(o *compile.Order) { o.Facts = o.Facts[:len(o.Facts)/2] },
		"facts large": func(o *compile.Order) { o.Facts = json.RawMessage(`{"x":"` + strings.Repeat("a", 2<<20) + `"}`) },
		"facts deep": func(o *compile.Order) {
			o.Facts = json.RawMessage(strings.Repeat(`{"a":`, 500) + "1" + strings.Repeat("}", 500))
		},
		"trusted":       func(o *compile.Order) { o.Trusted = json.RawMessage(`"x"`) },
		"classes":       func(o *compile.Order) { o.Classes = json.RawMessage(`["x"]`) },
		"node path":     func(o *compile.Order) { o.Node = "../etc/passwd" },
		"environment":   func(o *compile.Order) { o.Environment = "../x" },
		"version":       func(o *compile.Order) { o.Version = "latest" },
		"facts newline": func(o *compile.Order) { o.Facts = json.RawMessage("{}\n{\"v\":1}") },
	}
	for name, spoil := range cases {
		o := good
		spoil(&o)
		if got := fails(t, pool, o); got.Cause != compile.CauseInput || got.Message == "" || len(got.Message) > 500 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	good.Facts = json.RawMessage(`{"weird":"\u0000\u2028<>&","nul":null,"big":123456789012345678901234567890,"f":1e400,"a b":{"":[]}}`)
	if _, err := pool.Compile(t.Context(), good); err != nil {
		if _, ok := errors.AsType[*compile.Error](err); !ok {
			t.Errorf("odd facts: %v", err)
		}
	}
	mustCompile(t, pool, order(t, "production", "bad", "fine.example.org"))
}

func TestUnknownVersionIsNotACompileError(t *testing.T) {
	t.Parallel()
	pool := running(t, Config{Workers: 1}, directories{})
	_, err := pool.Compile(t.Context(), order(t, "production", "missing", "n.example.org"))
	if fault.Of(err) != fault.NotFound {
		t.Errorf("got %v, want a NotFound fault", err)
	}
	if err := pool.Warm(t.Context(), "production", version("missing"), nil); fault.Of(err) != fault.NotFound {
		t.Errorf("Warm: got %v, want a NotFound fault", err)
	}
}

func logsAndExportedResources(t *testing.T, pool *Pool) {
	t.Helper()
	talks := pool
	if puppetEight(t) {
		if got := fails(t, pool, order(t, "production", "bad", "talks.example.org")); !strings.Contains(got.Message, "Unknown variable: 'not_there'") {
			t.Errorf("Puppet 8 refuses variables that nobody has set; here: %v", got)
		}
		talks = running(t, Config{Workers: 1, Settings: lenient}, directories{version("bad"): tree(t, badCode)})
	}
	outcome, err := talks.Compile(t.Context(), order(t, "production", "bad", "talks.example.org"))
	if err != nil {
		t.Fatal(err)
	}
	if len(outcome.Logs) != 501 {
		t.Errorf("%d logs, want 500 and one that counts the rest", len(outcome.Logs))
	}
	if got := outcome.Logs[0]; got.Level != "warning" || !strings.Contains(got.Message, "careful") {
		t.Errorf("first log is %+v", got)
	}
	if got := outcome.Logs[1]; got.File != "manifests/site.pp" || got.Line != 25 || got.Level != "warning" {
		t.Errorf("second log is %+v, want a warning with its place", got)
	}

	outcome, err = pool.Compile(t.Context(), order(t, "production", "bad", "fine.example.org"))
	if err != nil {
		t.Fatal(err)
	}
	var exported []resource
	if err := json.Unmarshal(outcome.Exported, &exported); err != nil {
		t.Fatal(err)
	}
	if len(exported) != 1 || exported[0].Title != "exported" || !exported[0].Exported || exported[0].Parameters["message"] != "to others" {
		t.Errorf("exported: %+v", exported)
	}
	c := parse(t, outcome.Catalog)
	if c.find("Notify[exported]") != nil || c.find("Notify[virtual]") != nil || c.find("Notify[fine]") == nil {
		t.Error("the catalog must hold neither virtual nor uncollected exported resources")
	}
}

func workersSeeACleanWorld(t *testing.T, pool *Pool) {
	t.Helper()
	c := mustCompile(t, pool, order(t, "production", "bad", "environment.example.org"))
	if names := c.find("Notify[env]").Parameters["message"].([]any); slices.Contains(names, any(secretName)) {
		t.Errorf("the worker's environment has %v", names)
	}
	c = mustCompile(t, pool, order(t, "production", "bad", "settings.example.org"))
	want := []any{"/etc/puppetlabs/puppet", "/opt/puppetlabs/server/data/puppetserver", "/etc/puppetlabs/code/environments", "/etc/puppetlabs/puppet/ssl"}
	for i, got := range c.find("Notify[settings]").Parameters["message"].([]any) {
		if got != want[i] {
			t.Errorf("setting %d is %v, want %v", i, got, want[i])
		}
	}
	if got := c.find("Notify[file]").Parameters["message"]; got != "read by its shown path\n" {
		t.Errorf("the file has %q", got)
	}
	if got := c.find("Notify[module path]").Parameters["message"]; got != "/etc/puppetlabs/code/environments/production/modules/bad" {
		t.Errorf("module_directory is %v", got)
	}
	c = mustCompile(t, pool, order(t, "production", "bad", "prints.example.org"))
	if c.find("Notify[said]") == nil {
		t.Error("printing disturbed the answer")
	}
}

func TestRubyThatDoesNotStart(t *testing.T) {
	t.Parallel()
	broken := programtest.Write(t, filepath.Join(t.TempDir(), "ruby"), "#!/bin/sh\necho cannot load such file: puppet >&2\nexit 1\n")
	for ruby, want := range map[string]string{broken: "cannot load such file: puppet", "/nowhere/ruby": "no such file"} {
		pool := running(t, Config{Workers: 1, Ruby: ruby}, directories{version("bad"): tree(t, badCode)})
		_, err := pool.Compile(t.Context(), order(t, "production", "bad", "fine.example.org"))
		if _, ours := errors.AsType[*compile.Error](err); err == nil || ours || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func TestFactsFullOfMarkup(t *testing.T) {
	t.Parallel()
	pool := running(t, Config{Workers: 1, MaxOrderBytes: 1 << 20}, directories{version("bad"): tree(t, badCode)})
	o := order(t, "production", "bad", "fine.example.org")
	o.Facts = json.RawMessage(`{"x":"` + strings.Repeat("<", 1<<20-2000) + `"}`)
	mustCompile(t, pool, o)
}

func TestTimeLimit(t *testing.T) {
	t.Parallel()
	pool := running(t, Config{Workers: 2, Timeout: 4 * time.Second}, directories{version("bad"): tree(t, badCode)})
	compiles := func() bool { // in time: a slow machine may need more than one try
		_, err := pool.Compile(t.Context(), order(t, "production", "bad", "fine.example.org"))
		if late, ok := errors.AsType[*compile.Error](err); ok && late.Cause == compile.CauseTimeout {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		return true
	}
	await(t, "a catalog within the limit", compiles)
	for _, node := range []fleet.Certname{"loops.example.org", "sleeps.example.org"} {
		started := time.Now()
		got := fails(t, pool, order(t, "production", "bad", string(node)))
		if got.Cause != compile.CauseTimeout || !strings.Contains(got.Message, "4s") {
			t.Errorf("%s: got %+v", node, got)
		}
		if took := time.Since(started); took > 2*time.Minute {
			t.Errorf("%s: took %s", node, took)
		}
	}
	await(t, "a catalog within the limit", compiles)
}

// Code that makes much garbage quickly, and keeps nothing, does not count as hungry where the limit is low.
func TestGarbageIsNoHunger(t *testing.T) {
	t.Parallel()
	code := version("garbage")
	pool := running(t, Config{Workers: 1, MemoryBytes: 256 << 20}, directories{code: tree(t, map[string]string{
		"manifests/site.pp": "notify { 'x': message => \"${garbage::made()}\" }\n",
		"modules/garbage/lib/puppet/functions/garbage/made.rb": "Puppet::Functions.create_function(:'garbage::made') do\n" +
			"  dispatch(:made) { }\n  def made\n    n = 0\n    20_000_000.times { n += 'some text'.dup.size }\n    n\n  end\nend\n",
	})})
	if c := mustCompile(t, pool, order(t, "production", "garbage", "n.example.org")); c.find("Notify[x]") == nil {
		t.Error("there is no catalog")
	}
}

func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	pool := running(t, Config{Workers: 1, MemoryBytes: 300 << 20}, directories{version("bad"): tree(t, badCode)})
	for _, node := range []string{"eats", "gulps", "broods", "scatters"} { // itself, at once, by children, by what left its session
		if got := fails(t, pool, order(t, "production", "bad", node+".example.org")); got.Cause != compile.CauseMemory {
			t.Errorf("%s: got %+v", node, got)
		}
		mustCompile(t, pool, order(t, "production", "bad", "fine.example.org"))
	}
}

func TestSizeLimit(t *testing.T) {
	t.Parallel()
	pool := running(t, Config{Workers: 1, MaxCatalogBytes: 1000}, directories{version("bad"): tree(t, badCode)})
	got := fails(t, pool, order(t, "production", "bad", "fine.example.org"))
	if got.Cause != compile.CauseCode || !strings.Contains(got.Message, "at most 1000 are allowed") {
		t.Errorf("got %+v", got)
	}
}

func orderThatKillsWorkers(t *testing.T, pool *Pool) {
	t.Helper()
	if got := fails(t, pool, order(t, "production", "bad", "dies.example.org")); got.Cause != compile.CauseCrash {
		t.Errorf("got %+v", got)
	}
	mustCompile(t, pool, order(t, "production", "bad", "fine.example.org"))
}

// Puppet loads a module's init.pp with its other manifests: a mistake in one of them must not hide what is in another.
func TestMistakesInOneFileLeaveTheOthersAsTheyAre(t *testing.T) {
	t.Parallel()
	pool := running(t, Config{Workers: 1}, directories{version("twofiles"): tree(t, map[string]string{
		"manifests/site.pp": `
node 'syntax.example.org' { include m::syntax }
node 'twice.example.org' { include m::twice }
node default { include m }
`,
		"modules/m/manifests/init.pp":   "class m { notify { 'm': } }\nclass m::twice::deep { }\n",
		"modules/m/manifests/syntax.pp": "class m::syntax { notify { 'x' message => } }\n",
		"modules/m/manifests/twice.pp":  "class m::twice::deep { }\nclass m::twice { }\n",
	})})
	for _, mistake := range []struct{ node, message, file string }{
		{"syntax", "Syntax error at", "modules/m/manifests/syntax.pp"},
		{"twice", "'m::twice::deep' is already defined", "modules/m/manifests/init.pp"},
	} {
		for range 2 {
			got := fails(t, pool, order(t, "production", "twofiles", mistake.node+".example.org"))
			if got.Cause != compile.CauseCode || !strings.Contains(got.Message, mistake.message) || got.File != mistake.file {
				t.Errorf("%s: %+v", mistake.node, got)
			}
			if c := mustCompile(t, pool, order(t, "production", "twofiles", "other.example.org")); c.find("Notify[m]") == nil {
				t.Errorf("after %s the class m is not there", mistake.node)
			}
		}
	}
}
