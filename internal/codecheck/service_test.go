package codecheck_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/codecheck"
	"github.com/tutti-project/tutti/internal/codecheck/codechecktest"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

func TestFake(t *testing.T) {
	t.Parallel()
	codechecktest.RunStore(t, func(*testing.T) codecheck.Store { return codechecktest.NewStore() })
}

func TestOnlyWhatDiffersIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	files := map[string]string{"manifests/site.pp": "x", "modules/m/manifests/a.pp": "a", "modules/m/manifests/b.pp": "b", "README.md": "mistake in a text"}
	r, err := w.deploy(codecheck.Checked, files)
	w.want("the first", r, err, false, []string{"manifests/site.pp", "modules/m/manifests/a.pp", "modules/m/manifests/b.pp"})
	files["modules/m/manifests/a.pp"] = "mistake one\nnote two"
	files["README.md"] = "another text"
	r, err = w.deploy(codecheck.Checked, files)
	w.want("with a mistake", r, err, true, []string{"modules/m/manifests/a.pp"}, "mistake modules/m/manifests/a.pp:1 one [] 0",
		"note modules/m/manifests/a.pp:2 two [] 0")
	r, err = w.deploy(codecheck.Forced, files)
	w.want("forced", r, err, false, []string{"modules/m/manifests/a.pp"}, "mistake modules/m/manifests/a.pp:1 one [] 0",
		"note modules/m/manifests/a.pp:2 two [] 0")
	if !r.Forced {
		t.Error("it was not forced")
	}
	files["modules/m/manifests/b.pp"] = "b again"
	r, err = w.deploy(codecheck.Checked, files)
	w.want("what was forced stays a mistake", r, err, true, []string{"modules/m/manifests/a.pp", "modules/m/manifests/b.pp"},
		"mistake modules/m/manifests/a.pp:1 one [] 0", "note modules/m/manifests/a.pp:2 two [] 0")
	if r, err = w.deploy(codecheck.Unchecked, files); r != nil || err != nil || w.read != nil {
		t.Fatalf("unchecked: %v %v %v", r, err, w.read)
	}
	files["modules/m/manifests/a.pp"] = "mended"
	r, err = w.deploy(codecheck.Checked, files)
	w.want("what was not checked is caught up with", r, err, false, []string{"modules/m/manifests/a.pp", "modules/m/manifests/b.pp"})
	if r, err = w.deploy(codecheck.Checked, files); err != nil || r.Files != 0 || w.read != nil {
		t.Errorf("the same again: %+v %v", r, err)
	}
	w.engine = "other"
	r, err = w.deploy(codecheck.Checked, files)
	w.want("the same for another engine", r, err, false, []string{"manifests/site.pp", "modules/m/manifests/a.pp", "modules/m/manifests/b.pp"})
}

func TestWhatRefusesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	files := map[string]string{
		"plans/p.pp": "mistake in a plan", "data/other.yaml": "mistake in data that nothing names", "manifests/site.pp": "warning w\noutside generate('/x')",
		"modules/m/spec/x.pp": "mistake",
	}
	r, err := w.deploy(codecheck.Checked, files)
	w.want("loose files", r, err, false, []string{"data/other.yaml", "manifests/site.pp", "plans/p.pp"},
		"warning data/other.yaml:1 in data that nothing names [] 0", "warning manifests/site.pp:1 w [] 0", "warning plans/p.pp:1 in a plan [] 0",
		"note manifests/site.pp:2 generate('/x'): a catalog that did so is used again for up to 1m (volatile_ttl) [] 0")
	w.ttl = 0
	files["manifests/site.pp"] += "\n"
	r, err = w.deploy(codecheck.Checked, files)
	w.want("no catalog is used again", r, err, false, []string{"manifests/site.pp"}, "warning manifests/site.pp:1 w [] 0")
	w.broken = fault.New(fault.Unavailable, "no ruby")
	files["manifests/site.pp"] += "\n"
	if _, err := w.deploy(codecheck.Forced, files); fault.Of(err) != fault.Unavailable || err == nil {
		t.Errorf("a check that could not be made: %v", err)
	}
}

func TestJSONHasALine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Parser = lineless{}
	_, err := w.deploy(codecheck.Checked, map[string]string{"modules/m/metadata.json": "{\n \"a\": 1,\n \"b\": x\n}\n"})
	refused, ok := errors.AsType[*codecheck.Refused](err)
	if !ok || len(refused.Report.Findings) != 1 || refused.Report.Findings[0].Line != 3 {
		t.Errorf("%v", err)
	}
}

// lineless finds a mistake in every file and knows no lines.
type lineless struct{}

func (lineless) Parse(_ context.Context, in codecheck.Input, tell func(codecheck.Finding)) error {
	for _, f := range in.Files {
		tell(codecheck.Finding{Level: codecheck.Mistake, File: f.Path, Message: "no"})
	}
	return nil
}

func TestOneNodeOfEachSetIsCompiled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.classes = map[fleet.Certname]string{"a1": "a", "a2": "a", "a3": "a", "b1": "b", "b2": "b", "c1": "c", "n1": "", "n2": "", "stands": "d"}
	w.stands = []fleet.Certname{"stands"}
	w.most = 4
	files := map[string]string{"manifests/site.pp": "1"}
	r, err := w.deploy(codecheck.Checked, files)
	w.want("all compile", r, err, false, []string{"manifests/site.pp"})
	var nodes []string
	for _, o := range w.compiler.Orders() {
		nodes = append(nodes, string(o.Node))
	}
	slices.Sort(nodes)
	if diff := cmp.Diff([]string{"a1", "b1", "c1", "n1"}, nodes); diff != "" || r.Sets != 5 || r.Compiled != 4 {
		t.Errorf("%d of %d sets, compiled (-want +got):\n%s", r.Compiled, r.Sets, diff)
	}
	w.compiler.PlayFor("a1", fails(compile.CauseCode, "Unknown function"))
	w.compiler.PlayFor("b1", fails(compile.CauseCode, "Unknown function"))
	w.compiler.PlayFor("c1", fails(compile.CauseInput, "no facts"))
	files["manifests/site.pp"] = "2"
	r, err = w.deploy(codecheck.Checked, files)
	w.want("two sets fail", r, err, true, []string{"manifests/site.pp"}, "mistake site.pp:3 Unknown function [a1 b1] 5", "warning site.pp:3 no facts [c1] 1")
	w.failed["b1"] = compile.Compilation{Node: "b1", Err: &compile.Error{
		Cause: compile.CauseCode, Message: "Unknown function (file: /x/site.pp, line: 9)",
		File: "site.pp", Line: 9,
	}}
	w.compiler.PlayFor("a1", compiletest.Gives())
	r, err = w.deploy(codecheck.Checked, files)
	w.want("it failed so before", r, err, false, []string{"manifests/site.pp"},
		"warning site.pp:3 Unknown function (as with the version that it has) [b1] 2", "warning site.pp:3 no facts [c1] 1")
	files["manifests/site.pp"] = "mistake in the file"
	before := len(w.compiler.Orders())
	r, err = w.deploy(codecheck.Checked, files)
	w.want("files come first", r, err, true, []string{"manifests/site.pp"}, "mistake manifests/site.pp:1 in the file [] 0")
	if after := len(w.compiler.Orders()); after != before {
		t.Errorf("%d nodes were compiled for", after-before)
	}
	w.most = 0
	files["manifests/site.pp"] = "3"
	if r, err = w.deploy(codecheck.Checked, files); err != nil || r.Compiled != 0 || len(w.compiler.Orders()) != before {
		t.Errorf("with no nodes: %+v %v", r, err)
	}
	if r.Sets != 5 {
		t.Errorf("%d sets of classes are left out, want 5", r.Sets)
	}
}

// A deploy of what is deployed reads and compiles nothing; its report takes the place of the one that did.
func TestWarningsRemainWhenAVersionIsDeployedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.classes = map[fleet.Certname]string{"a1": "a"}
	w.compiler.PlayFor("a1", gives([]string{"manifests/site.pp"}, compile.Log{Level: "warning", File: "site.pp", Line: 2, Message: "Unknown variable"}))
	files := map[string]string{"manifests/site.pp": "warning w"}
	r, err := w.deploy(codecheck.Checked, files)
	read, compiled := "warning manifests/site.pp:1 w [] 0", "warning site.pp:2 Unknown variable [a1] 1"
	w.want("the first", r, err, false, []string{"manifests/site.pp"}, compiled, read)
	w.stands = []fleet.Certname{"a1"}
	r, err = w.deploy(codecheck.Checked, files)
	w.want("again", r, err, false, nil, read, compiled)
	if kept, err := w.kept.Check(t.Context(), env, r.Version); err != nil || kept.Count(codecheck.Warning) != 2 || kept.Findings[0].New || kept.Findings[1].New {
		t.Errorf("of the version is kept %+v, %v", kept, err)
	}
	w.stands = nil
	w.compiler.PlayFor("a1", gives([]string{"manifests/site.pp"}))
	r, err = w.deploy(codecheck.Checked, files)
	w.want("and compiled anew without a warning", r, err, false, nil, read)
}

func TestWhatWasForcedIsNoExcuse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.classes = map[fleet.Certname]string{"a1": "a"}
	w.compiler.PlayFor("a1", fails(compile.CauseTimeout, "too long"))
	files := map[string]string{"manifests/site.pp": "1"}
	r, err := w.deploy(codecheck.Forced, files)
	w.want("forced", r, err, false, []string{"manifests/site.pp"}, "mistake site.pp:3 too long [a1] 1")
	w.failed["a1"] = compile.Compilation{Node: "a1", Err: &compile.Error{Cause: compile.CauseTimeout, Message: "too long", File: "site.pp", Line: 3}}
	files["manifests/site.pp"] = "2"
	r, err = w.deploy(codecheck.Checked, files)
	w.want("it fails as it did when it was forced", r, err, true, []string{"manifests/site.pp"}, "mistake site.pp:3 too long [a1] 1")
}

func TestCompilesThatCannotBeTried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.classes = map[fleet.Certname]string{"a1": "a"}
	w.compiler.PlayFor("a1", func(context.Context, compile.Order) (compile.Outcome, error) {
		return compile.Outcome{}, fault.New(fault.Unavailable, "the compilers are stopped")
	})
	_, err := w.deploy(codecheck.Forced, map[string]string{"manifests/site.pp": "1"})
	if fault.Of(err) != fault.Unavailable || !strings.Contains(fault.Detail(err), "a1 could not be compiled: the compilers are stopped") {
		t.Errorf("%v", err)
	}
}

func TestWhatCompilesCouldNotFollowIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.classes = map[fleet.Certname]string{"a1": "a", "b1": "b"}
	w.compiler.Play(func(context.Context, compile.Order) (compile.Outcome, error) {
		return compile.Outcome{Catalog: []byte("{}"), Reads: &compile.Reads{Volatile: []string{
			"runs a program in modules/m/lib/x.rb:7", "reads the clock", "generate() runs a program",
		}}}, nil
	})
	r, err := w.deploy(codecheck.Checked, map[string]string{"manifests/site.pp": "outside generate('/x') runs a program"})
	const used = ": a catalog that did so is used again for up to 1m (volatile_ttl)"
	w.want("notes", r, err, false, []string{"manifests/site.pp"},
		"note :0 reads the clock"+used+" [a1] 1", "note manifests/site.pp:1 generate('/x') runs a program"+used+" [] 0",
		"note modules/m/lib/x.rb:7 runs a program"+used+" [a1] 1")
}

func TestWhatTheCompilerWarnsOfIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.classes = map[fleet.Certname]string{"a1": "a", "a2": "a", "b1": "b", "c1": "c"}
	old := compile.Log{Level: "warning", Message: "Unknown variable: 'old'. (file: manifests/site.pp, line: 1, column: 9)", File: "manifests/site.pp", Line: 1}
	fresh := compile.Log{Level: "warning", Message: "Unknown variable: 'x'.", File: "manifests/site.pp", Line: 7}
	odd := compile.Log{Level: "err", Message: "odd"}
	staged := compile.Log{Level: "warning", Message: "only of a preview", File: "z.pp", Line: 1}
	w.logs = map[int64][]compile.Log{2: {old, {Level: "notice", Message: "n"}}, -2: {staged}}
	site := []string{"manifests/site.pp"}
	w.compiler.PlayFor("a1", gives(site, fresh, old, staged, compile.Log{Level: "notice", Message: "n"}))
	w.compiler.PlayFor("b1", gives(site, fresh, odd))
	w.compiler.PlayFor("c1", func(context.Context, compile.Order) (compile.Outcome, error) {
		return compile.Outcome{}, &compile.Error{
			Cause: compile.CauseCode, Message: "no", File: "c.pp", Line: 1, Logs: []compile.Log{fresh, {Level: "err", Message: "no (file: c.pp, line: 1)"}},
		}
	})
	r, err := w.deploy(codecheck.Forced, map[string]string{"manifests/site.pp": "warning Unknown variable: 'old'."})
	w.want("warnings", r, err, false, site, "mistake c.pp:1 no [c1] 1", "warning :0 odd [b1] 1", "warning manifests/site.pp:7 Unknown variable: 'x'. [a1 b1 c1] 4",
		"warning z.pp:1 only of a preview [a1] 2", "warning manifests/site.pp:1 Unknown variable: 'old'. [a1] 2")
	var marked []string
	for _, f := range r.Findings {
		if f.New {
			marked = append(marked, f.Message)
		}
	}
	if diff := cmp.Diff([]string{"odd", "Unknown variable: 'x'.", "only of a preview"}, marked); diff != "" {
		t.Errorf("new (-want +got):\n%s", diff)
	}
	if r.Forced = false; r.Count(codecheck.Warning) != 4 {
		t.Errorf("%d warnings", r.Count(codecheck.Warning))
	}
}

func TestManyWarningsAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.classes = map[fleet.Certname]string{}
	for n := range 3 {
		node := fleet.Certname(fmt.Sprint("n", n))
		w.classes[node] = string(node)
		var logs []compile.Log
		for i := range 400 {
			logs = append(logs, compile.Log{Level: "warning", Message: fmt.Sprint(n, " ", i), File: "x.pp", Line: i})
		}
		w.compiler.PlayFor(node, gives(nil, logs...))
	}
	r, err := w.deploy(codecheck.Checked, map[string]string{"manifests/site.pp": "1"})
	if err != nil || len(r.Findings)+r.Cut != 1200 || r.Cut != 200 {
		t.Errorf("%d findings and %d more, %v", len(r.Findings), r.Cut, err)
	}
}

// Nodes with the same classes read other files, above all of their data.
func TestChangedFilesThatOthersReadAreCompiled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.classes = map[fleet.Certname]string{"a1": "a", "a2": "a", "a3": "a", "a4": "a", "b1": "b"}
	hiera := "version: 5\nhierarchy:\n  - name: nodes\n    path: nodes/%{x}.yaml\n"
	files := map[string]string{
		"manifests/site.pp": "1", "hiera.yaml": hiera, "modules/m/manifests/unused.pp": "1", "modules/m/metadata.json": "{}", "plans/p.pp": "1",
	}
	for _, n := range []string{"a1", "a2", "a3", "a4"} {
		files["data/nodes/"+n+".yaml"] = "a: 1"
	}
	if _, err := w.deploy(codecheck.Checked, files); err != nil {
		t.Fatal(err)
	}
	same := func(files ...string) *compile.Reading { return &compile.Reading{Files: files} }
	rest := same("manifests/site.pp")
	w.reads = map[fleet.Certname]*compile.Reading{
		"a1": rest, "a2": same("data/nodes/a2.yaml", "manifests/site.pp"), "a3": rest, "a4": same("data/nodes/a4.yaml"), "b1": rest,
	}
	for _, n := range []fleet.Certname{"a1", "a2", "a4", "b1"} {
		w.compiler.PlayFor(n, gives(append([]string{"data/nodes/" + string(n) + ".yaml"}, "manifests/site.pp")))
	}
	change := func(text string) {
		for _, f := range []string{"manifests/site.pp", "data/nodes/a2.yaml", "data/nodes/a4.yaml", "modules/m/manifests/unused.pp", "plans/p.pp"} {
			files[f] = "x: " + text
		}
		files["modules/m/metadata.json"] = fmt.Sprintf("{%q: 1}", text)
	}
	change("all")
	read := []string{"data/nodes/a2.yaml", "data/nodes/a4.yaml", "manifests/site.pp", "modules/m/manifests/unused.pp", "modules/m/metadata.json", "plans/p.pp"}
	before := len(w.compiler.Orders())
	r, err := w.deploy(codecheck.Checked, files)
	w.want("room for all", r, err, false, read, "note :0 1 changed file is read by no checked node: modules/m/manifests/unused.pp [] 0")
	if got := w.compiled(before); !slices.Equal(got, []string{"a2", "a4", "b1"}) || r.Sets != 2 || r.Compiled != 2 || r.More != 1 {
		t.Errorf("compiled for %v: %d of %d sets and %d more", got, r.Compiled, r.Sets, r.More)
	}
	w.most, before = 2, len(w.compiler.Orders())
	change("some")
	r, err = w.deploy(codecheck.Checked, files)
	w.want("room for the sets", r, err, false, read,
		"warning :0 1 changed file is read by no checked node, but by catalogs of others (deploy_check_nodes): data/nodes/a4.yaml [] 0",
		"note :0 1 changed file is read by no checked node: modules/m/manifests/unused.pp [] 0")
	if got := w.compiled(before); !slices.Equal(got, []string{"a2", "b1"}) {
		t.Errorf("compiled for %v", got)
	}
	w.most = 20
	w.compiler.PlayFor("a4", fails(compile.CauseCode, "wrong data"))
	change("broken")
	if _, err = w.deploy(codecheck.Checked, files); err == nil || !strings.Contains(err.Error(), "wrong data") {
		t.Errorf("a mistake in what only another node of the set reads: %v", err)
	}
}
