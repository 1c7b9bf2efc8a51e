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
	reads    map[fleet.Certname]*compile.Reading
	supplied []codecheck.Finding
	logs     map[int64][]compile.Log
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
		Log:    slog.New(slog.DiscardHandler),
		Open:   func(ctx context.Context, d fleet.Digest) ([]byte, error) { return cas.Bytes(ctx, w.blobs, d, 1<<20) },
		Survey: func(fleet.Environment, fleet.Digest) codecheck.Survey { return w },
		Supplied: func(context.Context, fleet.Environment, fleet.Digest) ([]codecheck.Finding, error) {
			return w.supplied, w.broken
		},
	}, codecheck.Config{Nodes: func() int { return w.most }, Reuses: func() bool { return true }, VolatileTTL: func() time.Duration { return w.ttl }})
	return w
}

// Readers is codecheck.Survey.
func (w *world) Readers(_ context.Context, nodes []fleet.Certname, all bool) (readers []compile.Reader, err error) {
	for _, node := range nodes {
		if all || !slices.Contains(w.stands, node) {
			readers = append(readers, compile.Reader{Node: node, Read: w.reads[node]})
		}
	}
	return readers, nil
}

// Candidates is codecheck.Fleet: each node has a catalog of the compilation whose number is the length of its name, and one that it does not have.
func (w *world) Candidates(_ context.Context, _ fleet.Environment, nodes []fleet.Certname) (map[fleet.Certname][]compile.Candidate, error) {
	has := map[fleet.Certname][]compile.Candidate{}
	for _, node := range nodes {
		has[node] = []compile.Candidate{{Read: int64(len(node))}, {Compilation: compile.Compilation{Staged: true}, Read: -int64(len(node))}}
	}
	return has, nil
}

// Logs is codecheck.Fleet.
func (w *world) Logs(_ context.Context, ids []int64) (map[int64][]compile.Log, error) {
	logs := map[int64][]compile.Log{}
	for _, id := range ids {
		logs[id] = w.logs[id]
	}
	return logs, nil
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

// compiled is whom was compiled for since.
func (w *world) compiled(since int) (nodes []string) {
	for _, o := range w.compiler.Orders()[since:] {
		nodes = append(nodes, string(o.Node))
	}
	slices.Sort(nodes)
	return nodes
}

// gives is a compilation that reads files and writes warnings.
func gives(reads []string, logs ...compile.Log) compiletest.Script {
	return func(context.Context, compile.Order) (compile.Outcome, error) {
		return compile.Outcome{Catalog: []byte("{}"), Logs: logs, Reads: &compile.Reads{Sources: compile.Sources{Files: reads}}}, nil
	}
}

// fails is a compiler's answer for a node.
func fails(cause compile.Cause, message string) compiletest.Script {
	return func(context.Context, compile.Order) (compile.Outcome, error) {
		return compile.Outcome{}, &compile.Error{Cause: cause, Message: message + " (file: /x/site.pp, line: 3)", File: "site.pp", Line: 3}
	}
}
