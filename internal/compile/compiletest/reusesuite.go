package compiletest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// ReuseBackend is one empty store under test.
type ReuseBackend struct {
	Backend
	Reusables compile.Reusables
	// Gave says that a compilation gave its node's newest catalog, before the row is
	// finished.
	Gave func(c compile.Compilation)
}

// RunReusables is the conformance suite of compile.Reusables.
func RunReusables(t *testing.T, open func(t *testing.T) ReuseBackend) {
	t.Helper()
	for name, test := range map[string]func(b reuseBench){
		"NewestHasItsInputs": testNewestHasItsInputs, "NewestOfTheNodesCatalog": testNewestOfTheNodesCatalog,
		"Restate": testRestate, "RestateConflicts": testRestateConflicts, "GroupsAreShared": testGroupsAreShared,
		"StopReuse": testStopReuse, "ChecksAreKept": testChecksAreKept, "PruneKeepsInputs": testPruneKeepsInputs,
		"CandidatesAreNewest": testCandidatesAreNewest, "StopsOfMany": testStopsOfMany,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			test(reuseBench{bench{t, b.Backend}, b.Reusables, b.Gave})
		})
	}
}

type reuseBench struct {
	bench
	Reusables compile.Reusables
	Gave      func(c compile.Compilation)
}

func inputsOf(path string) *compile.InputSet {
	return &compile.InputSet{
		At: t0, Engine: "made-up 1", Given: fleet.DigestOf([]byte("given")), Volatile: []string{"reads the clock"},
		Values:  []compile.Value{{Pointer: "/facts/os/family", Digest: "d"}, {Pointer: "/facts/x", Seen: true}},
		Asked:   []compile.Question{{Kind: compile.AskedQuery, Text: "nodes {}", Rows: 2, Answer: fleet.DigestOf([]byte("rows"))}},
		Sources: compile.Sources{Files: []string{"manifests/site.pp", "modules/a/manifests/" + path}, Modules: []string{"a"}, Trees: []string{"modules/b/lib"}},
	}
}

// compiled makes a done compilation that gave the node's newest catalog.
func (b reuseBench) compiled(node fleet.Certname, version fleet.Digest, set *compile.InputSet, at time.Time) compile.Compilation {
	b.t.Helper()
	w := ask(node)
	w.Version = version
	c := b.want(w)
	for _, leased := range b.lease(worker1, 100) {
		if leased.ID == c.ID {
			c = leased
		}
	}
	c = asDone(c, string(node)+string(version), at)
	c.Inputs = set
	b.Gave(c)
	b.finish(c)
	return c
}

func (b reuseBench) newest(node fleet.Certname) compile.Compilation {
	b.t.Helper()
	c, err := b.Reusables.Newest(b.t.Context(), node, env)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

func (b reuseBench) noNewest(node fleet.Certname, in fleet.Environment) {
	b.t.Helper()
	if c, err := b.Reusables.Newest(b.t.Context(), node, in); err == nil || fault.Of(err) != fault.NotFound {
		b.t.Errorf("newest of %s in %s: %+v, %v, want NotFound", node, in, c, err)
	}
}

func testNewestHasItsInputs(b reuseBench) {
	b.noNewest("a.example", env)
	set := inputsOf("x.pp")
	c := b.compiled("a.example", v1, set, t0)
	got := b.newest("a.example")
	if diff := cmp.Diff(set, got.Inputs); diff != "" {
		b.t.Errorf("inputs (-want +got):\n%s", diff)
	}
	if got.ID != c.ID || got.Catalog != c.Catalog || got.Version != v1 {
		b.t.Errorf("got %+v, want %+v", got, c)
	}
	b.noNewest("a.example", "other")
	b.compiled("b.example", v1, nil, t0)
	b.noNewest("b.example", env) // nobody knows what it read
}

func testNewestOfTheNodesCatalog(b reuseBench) {
	b.compiled("a.example", v1, inputsOf("x.pp"), t0)
	second := b.compiled("a.example", v2, inputsOf("y.pp"), t0.Add(-time.Hour)) // clocks differ
	got := b.newest("a.example")
	if got.ID != second.ID || got.Inputs.Sources.Files[1] != "modules/a/manifests/y.pp" {
		b.t.Errorf("got %+v with %+v, want %d", got, got.Inputs, second.ID)
	}
}

func (b reuseBench) restate(from compile.Compilation, version fleet.Digest) (compile.Compilation, error) {
	return b.Reusables.Restate(b.t.Context(), from.ID, compile.Compilation{
		Node: from.Node, Environment: from.Environment, Version: version, FactsSeq: 7, Transaction: "t", Priority: compile.Waited,
		State: compile.Done, WantedAt: t0, FinishedAt: t0.Add(minute), UUID: "again", Catalog: from.Catalog,
	})
}

func testRestate(b reuseBench) {
	set := inputsOf("x.pp")
	from := b.compiled("a.example", v1, set, t0)
	made, err := b.restate(from, v2)
	if err != nil {
		b.t.Fatal(err)
	}
	if made.ID == from.ID || made.Version != v2 || made.Catalog != from.Catalog || made.UUID != "again" || made.State != compile.Done || made.FactsSeq != 7 {
		b.t.Errorf("made %+v of %+v", made, from)
	}
	got := b.newest("a.example")
	if got.ID != made.ID {
		b.t.Errorf("newest is %d, want %d", got.ID, made.ID)
	}
	if diff := cmp.Diff(set, got.Inputs); diff != "" {
		b.t.Errorf("inputs (-want +got):\n%s", diff)
	}
	same(b.t, b.row(made.ID), made)
}

func testRestateConflicts(b reuseBench) {
	from := b.compiled("a.example", v1, inputsOf("x.pp"), t0)
	later := b.compiled("a.example", v2, inputsOf("y.pp"), t0.Add(minute))
	if _, err := b.restate(from, v1); err == nil || fault.Of(err) != fault.NotFound {
		b.t.Errorf("restate what is not the newest: %v, want NotFound", err)
	}
	if got := b.newest("a.example"); got.ID != later.ID {
		b.t.Errorf("newest is %d, want %d", got.ID, later.ID)
	}
}

func testGroupsAreShared(b reuseBench) {
	for _, node := range []fleet.Certname{"a.example", "b.example", "c.example"} {
		b.compiled(node, v1, inputsOf("x.pp"), t0)
	}
	for _, node := range []fleet.Certname{"a.example", "b.example", "c.example"} {
		if diff := cmp.Diff(inputsOf("x.pp"), b.newest(node).Inputs); diff != "" {
			b.t.Errorf("inputs of %s (-want +got):\n%s", node, diff)
		}
	}
}

func testStopReuse(b reuseBench) {
	ctx := b.t.Context()
	stop := compile.ReuseStop{
		Node: "a.example", Environment: env, Version: v1, At: t0, Reused: v1, Fresh: v2, Differs: []string{"File[/x]"}, Inputs: v1,
	}
	later := stop
	later.Version, later.At = v2, t0.Add(minute)
	again := stop
	again.Differs = []string{"File[/y]"}
	for _, s := range []compile.ReuseStop{stop, later, again} {
		if err := b.Reusables.StopReuse(ctx, s); err != nil {
			b.t.Fatal(err)
		}
	}
	got, err := b.Reusables.ReuseStops(ctx, "a.example", env)
	if err != nil {
		b.t.Fatal(err)
	}
	if diff := cmp.Diff([]compile.ReuseStop{later, again}, got); diff != "" {
		b.t.Errorf("stops (-want +got):\n%s", diff)
	}
	if got, err := b.Reusables.ReuseStops(ctx, "b.example", env); err != nil || len(got) != 0 {
		b.t.Errorf("another node has %v, %v", got, err)
	}
}

func testChecksAreKept(b reuseBench) {
	w := ask("a.example")
	w.Checks = 42
	if c := b.want(w); c.Checks != 42 {
		b.t.Errorf("checks %d, want 42", c.Checks)
	}
	w.Checks = 0
	if c := b.want(w); c.Checks != 42 {
		b.t.Errorf("who joins takes the check away: %d", c.Checks)
	}
	if c := b.leaseOne(worker1); c.Checks != 42 {
		b.t.Errorf("leased row checks %d, want 42", c.Checks)
	}
	other := ask("b.example")
	b.want(other)
	other.Checks = 7
	if c := b.want(other); c.Checks != 7 {
		b.t.Errorf("a check that joins is lost: %d", c.Checks)
	}
}

func testPruneKeepsInputs(b reuseBench) {
	first := b.compiled("a.example", v1, inputsOf("x.pp"), t0)
	made, err := b.restate(first, v2)
	if err != nil {
		b.t.Fatal(err)
	}
	b.compiled("b.example", v1, inputsOf("y.pp"), t0)
	if _, err := b.Queue.Prune(b.t.Context(), t0.Add(time.Hour)); err != nil {
		b.t.Fatal(err)
	}
	b.gone(first.ID)
	if got := b.newest("a.example"); got.ID != made.ID || cmp.Diff(inputsOf("x.pp"), got.Inputs) != "" {
		b.t.Errorf("after pruning: %+v with %+v", got, got.Inputs)
	}
	if diff := cmp.Diff(inputsOf("y.pp"), b.newest("b.example").Inputs); diff != "" {
		b.t.Errorf("inputs (-want +got):\n%s", diff)
	}
}

// Of many nodes is read what is read of one.
func testCandidatesAreNewest(b reuseBench) {
	b.compiled("a.example", v1, inputsOf("x.pp"), t0)
	b.compiled("a.example", v2, inputsOf("y.pp"), t0)
	first := b.compiled("b.example", v1, inputsOf("x.pp"), t0)
	if _, err := b.restate(first, v2); err != nil {
		b.t.Fatal(err)
	}
	nodes := []fleet.Certname{"a.example", "b.example", "c.example"}
	found, err := b.Reusables.Candidates(b.t.Context(), env, nodes)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, node := range nodes[:2] {
		want := b.newest(node)
		want.Inputs = nil
		read := map[fleet.Certname]int64{"a.example": want.ID, "b.example": first.ID}[node]
		if diff := cmp.Diff([]compile.Candidate{{Compilation: want, Read: read}}, found[node]); diff != "" {
			b.t.Errorf("candidates of %s (-want +got):\n%s", node, diff)
		}
	}
	if other, err := b.Reusables.Candidates(b.t.Context(), "other", nodes); err != nil || len(found) != 2 || len(other) != 0 {
		b.t.Errorf("candidates of nobody: %v, %v, %v", found["c.example"], other, err)
	}
}

func testStopsOfMany(b reuseBench) {
	for i, node := range []fleet.Certname{"a.example", "b.example", "a.example"} {
		stop := compile.ReuseStop{
			Node: node, Environment: env, Version: []fleet.Digest{v1, v1, v2}[i], At: t0.Add(time.Duration(i) * minute), Differs: []string{"File[x]"},
		}
		if err := b.Reusables.StopReuse(b.t.Context(), stop); err != nil {
			b.t.Fatal(err)
		}
	}
	nodes := []fleet.Certname{"a.example", "b.example", "c.example"}
	found, err := b.Reusables.ReuseStopsOf(b.t.Context(), env, nodes)
	if err != nil || len(found) != 2 {
		b.t.Errorf("stops of %d nodes, %v", len(found), err)
	}
	for _, node := range nodes {
		want, err := b.Reusables.ReuseStops(b.t.Context(), node, env)
		if diff := cmp.Diff(want, found[node], cmpopts.EquateEmpty()); err != nil || diff != "" {
			b.t.Errorf("stops of %s: %v (-want +got):\n%s", node, err, diff)
		}
	}
	if other, err := b.Reusables.ReuseStopsOf(b.t.Context(), "other", nodes); err != nil || len(other) != 0 {
		b.t.Errorf("stops elsewhere: %v, %v", other, err)
	}
}
