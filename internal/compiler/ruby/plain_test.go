package ruby

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	form "github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
)

// baseModulePath is the module path of all fixtures.
func baseModulePath(context.Context, fleet.Environment, fleet.Digest) ([]string, error) {
	return []string{"modules", ".base_modules/0"}, nil
}

// The fixtures that show that workers and the stock compiler agree: plain.rb must say so, too.
func TestPlainPuppetAgrees(t *testing.T) {
	t.Parallel()
	root := copyTree(t, "testdata/equality")
	pool := running(t, Config{Workers: 1}, directories{version("equality"): root})
	plain := NewPlain(Config{Keeper: keeper(t), Dir: t.TempDir()}, directories{version("equality"): root}, baseModulePath)
	for _, node := range []string{"apache", "hiera", "templates", "virtual", "rich", "defines", "types", "pattern7", "classified"} {
		o := order(t, "production", "equality", node+".example.org")
		if node == "classified" {
			o.Classes = json.RawMessage(`{"sample":{"greeting":"hello","merged":{"k":["v",1]}},"sample::contained":{}}`)
			o.Parameters = json.RawMessage(`{"role_param":"from the classifier","osfamily":"wins over the fact"}`)
		}
		agree(t, pool, plain, o)
	}
}

// agree fails unless a worker and plain Puppet give the same.
func agree(t *testing.T, pool *Pool, plain *Plain, o compile.Order) {
	t.Helper()
	differences := opinions(t, pool, plain, o)
	for _, d := range differences {
		t.Errorf("%s: %s: Tutti %s, plain Puppet %s", o.Node, d, d.Tutti, d.Plain)
	}
}

// opinions compiles an order twice and compares as the verifier does.
func opinions(t *testing.T, pool *Pool, plain *Plain, o compile.Order) []compile.Difference {
	t.Helper()
	outcome, failed := pool.Compile(t.Context(), o)
	var answers []compile.Recorded
	for _, q := range outcome.Asked {
		answers = append(answers, compile.Recorded{Kind: q.Kind, Text: q.Text, Rows: outcome.Answers[q.Answer]})
	}
	opinion, err := plain.Opinion(t.Context(), o, answers)
	if err != nil {
		t.Fatalf("%s: plain Puppet: %v", o.Node, err)
	}
	if wrong, ok := errors.AsType[*compile.Error](failed); ok || opinion.Err != nil {
		return compile.CompareErrors(wrong, opinion.Err)
	}
	if failed != nil {
		t.Fatalf("%s: %v", o.Node, failed)
	}
	document, _, err := form.Normalise(outcome.Catalog, outcome.Exported)
	if err != nil {
		t.Fatal(err)
	}
	differences, _, err := compile.CompareOpinion(document, opinion)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d bytes in %s", o.Node, len(document), opinion.Cost.Wall)
	return differences
}

// What does not compile fails in the same words on both sides.
func TestPlainPuppetFailsInTheSameWords(t *testing.T) {
	t.Parallel()
	root := tree(t, badCode)
	pool := running(t, Config{Workers: 1}, directories{version("bad"): root})
	plain := NewPlain(Config{Keeper: keeper(t), Dir: t.TempDir()}, directories{version("bad"): root}, baseModulePath)
	for _, node := range []string{"unknown-class", "raises", "bad-parameter", "fails", "missing-library", "template", "syntax-in-module", "fine"} {
		agree(t, pool, plain, order(t, "production", "bad", node+".example.org"))
	}
}

// What groups give is handed to plain Puppet as the global layer of Hiera.
func TestPlainPuppetKnowsTheValuesOfGroups(t *testing.T) {
	t.Parallel()
	root := tree(t, dataCode)
	pool := running(t, Config{Workers: 1}, directories{version("data"): root})
	plain := NewPlain(Config{Keeper: keeper(t), Dir: t.TempDir()}, directories{version("data"): root}, baseModulePath)
	o := order(t, "production", "data", "with.example.org")
	o.Data = json.RawMessage(`{"cfg::group":"from %{group}","cfg::both":"from group","cfg::list":["group","shared"],"cfg::deep":{"key":"found"}}`)
	agree(t, pool, plain, o)
}

// Exported resources and answers to queries are those of the worker's compile; what no worker asked is refused.
func TestPlainPuppetIsAnsweredAsRecorded(t *testing.T) {
	t.Parallel()
	root := copyTree(t, "testdata/exported")
	pool := runningWith(t, Config{Workers: 1}, directories{version("exported"): root}, exportedFleet(t))
	plain := NewPlain(Config{Keeper: keeper(t), Dir: t.TempDir()}, directories{version("exported"): root}, baseModulePath)
	for _, node := range []string{"overrides", "concat", "queries", "conflict"} {
		agree(t, pool, plain, order(t, "production", "exported", node+".example.org"))
	}
	opinion, err := plain.Opinion(t.Context(), order(t, "production", "exported", "overrides.example.org"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if opinion.Err == nil || len(opinion.Unrecorded) == 0 || !strings.Contains(opinion.Err.Message, "no answer is recorded") {
		t.Errorf("without answers: error %v, unrecorded %q", opinion.Err, opinion.Unrecorded)
	}
}

// Absolute entries of the module path and a command for config_version belong to other machines.
func TestPlainPuppetUsesTheModulesOfTheVersion(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{
		"environment.conf":            "modulepath = site:more*:/opt/somewhere/modules:$basemodulepath\nconfig_version = /bin/false\nmanifest = start\n",
		"start/a.pp":                  "include here\nnotify { 'settings': message => [$settings::modulepath, $settings::basemodulepath, $settings::certname] }\nnotify { 'stdlib': message => join(['a', 'b'], '-') }\n",
		"site/here/manifests/init.pp": "class here { file { '/tmp/x': content => file('here/x.txt') } concat { '/tmp/c': } }\n",
		"site/here/files/x.txt":       "text\n",
		"more2/a/files/x":             "", "more1/a/files/x": "",
	})
	pool := running(t, Config{Workers: 1}, directories{version("paths"): root})
	paths := func(context.Context, fleet.Environment, fleet.Digest) ([]string, error) {
		return []string{"site", "more1", "more2", ".base_modules/0"}, nil
	}
	plain := NewPlain(Config{Keeper: keeper(t), Dir: t.TempDir()}, directories{version("paths"): root}, paths)
	agree(t, pool, plain, order(t, "production", "paths", "node.example.org"))
}

// Nothing of a process that is ended is left.
func TestPlainPuppetEnds(t *testing.T) {
	t.Parallel()
	needPuppet(t)
	dir := t.TempDir()
	started := filepath.Join(dir, "started")
	root := tree(t, map[string]string{"manifests/site.pp": "$x = generate('/bin/sh', '-c', 'echo $$ > " + started + "; sleep 1000')\n"})
	plain := NewPlain(Config{Keeper: loose, Dir: filepath.Join(dir, "plain")}, directories{version("sleeps"): root}, baseModulePath)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := plain.Opinion(ctx, order(t, "production", "sleeps", "node.example.org"), nil)
		ended <- err
	}()
	pid := 0
	for pid == 0 {
		select {
		case err := <-ended:
			t.Fatalf("it ended too early: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
		text, _ := os.ReadFile(started)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the caller's error", err)
	}
	waitGone(t, pid)
	if left, _ := os.ReadDir(filepath.Join(dir, "plain", "plain")); len(left) > 0 {
		t.Errorf("%d directories are left", len(left))
	}
}

// waitGone waits until a process has ended.
func waitGone(t *testing.T, pid int) {
	t.Helper()
	for isRunning(pid) {
		select {
		case <-t.Context().Done():
			t.Fatalf("process %d is still there", pid)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Plain Puppet has the settings that an operator chose, as the workers have them.
func TestPlainPuppetHasTheChosenSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hiera := filepath.Join(dir, "hiera.yaml")
	if err := os.WriteFile(hiera, []byte("version: 5\nhierarchy:\n  - { name: all, path: all.yaml, datadir: "+dir+" }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "all.yaml"), []byte("asked: from the global layer\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := tree(t, withConf(map[string]string{"manifests/site.pp": `
notify { [lookup('asked'), "${settings::strict} ${settings::strict_variables} ${settings::certname}"]: }
node 'unknown.example.org' { notify { "unknown: ${nowhere}": } }
node 'twice.example.org' { include twice }
node default { }
`, "modules/twice/manifests/init.pp": "class twice { notify { { 'a' => 'one', 'a' => 'two' }['a']: } }\n"}))
	roots := directories{version("chosen"): root}
	grants := func(fleet.Environment) Grants { return Grants{Read: []string{"/etc", dir}} }
	chosen := Settings{Certname: "p.example.org", Strict: "error", StrictVariables: new(true), HieraConfig: hiera}
	pool := running(t, Config{Workers: 1, NoJIT: true, Settings: chosen, Grants: grants}, roots)
	plain := NewPlain(Config{Keeper: keeper(t), Dir: t.TempDir(), Settings: chosen, Grants: grants}, roots, baseModulePath)
	other := NewPlain(Config{Keeper: keeper(t), Dir: t.TempDir(), Grants: grants, Settings: lenient}, roots, baseModulePath)
	for _, node := range []string{"a", "unknown", "twice"} {
		o := order(t, "production", "chosen", node+".example.org")
		agree(t, pool, plain, o)
		if len(opinions(t, pool, other, o)) == 0 {
			t.Errorf("%s: plain Puppet with other settings gives the same: nothing is compared", node)
		}
	}
}
