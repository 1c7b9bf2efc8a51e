package codecheck_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/code/codetest"
	"github.com/tutti-project/tutti/internal/codecheck"
	"github.com/tutti-project/tutti/internal/codecheck/codechecktest"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/yamljson"
)

func TestFake(t *testing.T) {
	t.Parallel()
	codechecktest.RunStore(t, func(*testing.T) codecheck.Store { return codechecktest.NewStore() })
}

const env fleet.Environment = "production"

// world is a service over fakes: a parser that finds what files say of themselves, and nodes with classes.
type world struct {
	*codecheck.Service
	t        *testing.T
	blobs    *castest.Store
	library  *code.Library
	kept     *codechecktest.Store
	compiler *compiletest.Compiler
	engine   string   // of what is deployed
	read     []string // by the parser, in the last check
	broken   error    // of the parser
	most     int
	ttl      time.Duration
	classes  map[fleet.Certname]string // of every node; "": it has no catalog
	failed   map[fleet.Certname]compile.Compilation
	stands   []fleet.Certname // whose catalogs no version touches
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, blobs: castest.New(), kept: codechecktest.NewStore(), compiler: compiletest.NewCompiler(), most: 20, ttl: time.Minute,
		classes: map[fleet.Certname]string{}, failed: map[fleet.Certname]compile.Compilation{},
	}
	versions := codetest.New()
	w.library = code.NewLibrary(versions, w.blobs)
	w.Service = codecheck.New(codecheck.Parts{
		Code: w.library, ToJSON: yamljson.ToJSON, Versions: versions, Store: w.kept, Parser: w, Compiler: w.compiler, Orders: w, Fleet: w,
		Log:  slog.New(slog.DiscardHandler),
		Open: func(ctx context.Context, d fleet.Digest) ([]byte, error) { return cas.Bytes(ctx, w.blobs, d, 1<<20) },
		Touched: func(_ context.Context, _ fleet.Environment, _ fleet.Digest, nodes []fleet.Certname) ([]fleet.Certname, error) {
			return slices.DeleteFunc(slices.Clone(nodes), func(n fleet.Certname) bool { return slices.Contains(w.stands, n) }), nil
		},
	}, codecheck.Config{Nodes: func() int { return w.most }, VolatileTTL: func() time.Duration { return w.ttl }})
	return w
}

// Parse is codecheck.Parser: a line "level words" of a file is a finding there.
func (w *world) Parse(ctx context.Context, in codecheck.Input, tell func(codecheck.Finding)) error {
	for _, f := range in.Files {
		w.read = append(w.read, f.Path)
		text, err := in.Open(ctx, f)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			if level, words, found := strings.Cut(line, " "); found && slices.Contains([]string{"mistake", "warning", "note", "outside"}, level) {
				tell(codecheck.Finding{Level: codecheck.Level(level), File: f.Path, Line: i + 1, Message: words})
			}
		}
	}
	return w.broken
}

// Build is codecheck.Orders.
func (w *world) Build(_ context.Context, c compile.Compilation) (compile.Order, int64, error) {
	return compile.Order{Node: c.Node, Environment: c.Environment, Version: c.Version}, 1, nil
}

// Standings is codecheck.Fleet.
func (w *world) Standings(context.Context, fleet.Environment) ([]compile.Standing, error) {
	var list []compile.Standing
	for node := range w.classes {
		list = append(list, compile.Standing{Node: node, Environment: env, FactsSeq: 1})
	}
	slices.SortFunc(list, func(a, b compile.Standing) int { return strings.Compare(string(a.Node), string(b.Node)) })
	return append(list, compile.Standing{Node: "without-facts"}), nil
}

// Broken is codecheck.Fleet.
func (w *world) Broken(context.Context, []fleet.Certname) (map[fleet.Certname]compile.Compilation, error) {
	return w.failed, nil
}

// ClassesOf is codecheck.Fleet.
func (w *world) ClassesOf(_ context.Context, nodes []fleet.Certname) (map[fleet.Certname]fleet.Digest, error) {
	sets := map[fleet.Certname]fleet.Digest{}
	for _, node := range nodes {
		if w.classes[node] != "" {
			sets[node] = fleet.DigestOf([]byte(w.classes[node]))
		}
	}
	return sets, nil
}

// deploy admits a version and deploys it if it may be.
func (w *world) deploy(mode codecheck.Mode, files map[string]string) (*codecheck.Report, error) {
	w.t.Helper()
	m := code.Manifest{ModulePath: []string{"modules"}, Engine: w.engine}
	for p, text := range files {
		d, _, err := w.blobs.Put(w.t.Context(), strings.NewReader(text))
		if err != nil {
			w.t.Fatal(err)
		}
		m.Files = append(m.Files, code.File{Path: p, Digest: d, Size: int64(len(text))})
	}
	slices.SortFunc(m.Files, func(a, b code.File) int { return strings.Compare(a.Path, b.Path) })
	d := code.Deployment{Environment: env, Manifest: m, At: time.Now()}
	v, err := w.library.Stage(w.t.Context(), d)
	if err != nil {
		w.t.Fatal(err)
	}
	w.read = nil
	r, err := w.Admit(w.t.Context(), env, v.ID, mode)
	if err != nil {
		return r, err
	}
	if _, err := w.library.Deploy(w.t.Context(), d); err != nil {
		w.t.Fatal(err)
	}
	if r != nil {
		if err := w.kept.SaveCheck(w.t.Context(), *r); err != nil {
			w.t.Fatal(err)
		}
	}
	return r, nil
}

// found is a report's findings as text.
func found(r *codecheck.Report) []string {
	var list []string
	for _, f := range r.Findings {
		list = append(list, fmt.Sprintf("%s %s:%d %s %v %d", f.Level, f.File, f.Line, f.Message, f.Nodes, f.Alike))
	}
	return list
}

// want compares what a deploy came to.
func (w *world) want(what string, r *codecheck.Report, err error, refused bool, read []string, findings ...string) {
	w.t.Helper()
	if no, ok := errors.AsType[*codecheck.Refused](err); ok != refused || err != nil && !ok {
		w.t.Fatalf("%s: %v, want it refused: %v", what, err, refused)
	} else if ok {
		r = &no.Report
		if fault.Of(err) != fault.Conflict {
			w.t.Errorf("%s: the error is %s", what, fault.Of(err))
		}
	}
	if diff := cmp.Diff(read, w.read); diff != "" {
		w.t.Errorf("%s: read (-want +got):\n%s", what, diff)
	}
	if diff := cmp.Diff(findings, found(r)); diff != "" {
		w.t.Errorf("%s: found (-want +got):\n%s", what, diff)
	}
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
		"note manifests/site.pp:2 generate('/x'): a catalog that did so is used again for up to 1m0s (volatile_ttl) [] 0")
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

// fails is a compiler's answer for a node.
func fails(cause compile.Cause, message string) compiletest.Script {
	return func(context.Context, compile.Order) (compile.Outcome, error) {
		return compile.Outcome{}, &compile.Error{Cause: cause, Message: message + " (file: /x/site.pp, line: 3)", File: "site.pp", Line: 3}
	}
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
	const used = ": a catalog that did so is used again for up to 1m0s (volatile_ttl)"
	w.want("notes", r, err, false, []string{"manifests/site.pp"},
		"note :0 reads the clock"+used+" [a1] 1", "note manifests/site.pp:1 generate('/x') runs a program"+used+" [] 0",
		"note modules/m/lib/x.rb:7 runs a program"+used+" [a1] 1")
}
