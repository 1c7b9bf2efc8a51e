package compiletest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// WantsBackend is one empty store under test.
type WantsBackend struct {
	ReuseBackend
	Wants     compile.Wants
	Standings compile.Standings
	Readings  compile.Readings
	// Home makes env the environment of an active node with facts.
	Home func(node fleet.Certname, env fleet.Environment)
	// Note notes a change.
	Note func(kind compile.ChangeKind, node fleet.Certname, details ...string)
	// Hold has the brake keep newer catalogs from a node that has given.
	Hold func(given compile.Compilation)
}

// RunWants is the conformance suite of compile.Wants.
func RunWants(t *testing.T, open func(t *testing.T) WantsBackend) {
	t.Helper()
	for name, test := range map[string]func(b wantsBench){
		"Standings": testStandings, "StagedBases": testStagedBases, "HeldBases": testHeldBases,
		"Footprints": testFootprints, "ConsiderMovesBases": testConsiderMovesBases,
		"ConsiderConflicts": testConsiderConflicts, "ConsiderMovesWhatIsAhead": testConsiderMovesWhatIsAhead, "ConsiderEndsSlowdown": testConsiderEndsSlowdown,
		"WhatIsMovedIsWantedLast": testWhatIsMovedIsWantedLast, "WhatIsMovedJoinsAPreview": testWhatIsMovedJoinsAPreview, "Changes": testChanges,
		"Chains": testChains, "Refresh": testRefresh, "Failures": testFailures, "Broken": testBroken, "FreshJoinsNoLease": testFreshJoinsNoLease,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			test(wantsBench{reuseBench{bench{t, b.Backend}, b.Reusables, b.Gave}, b})
		})
	}
}

type wantsBench struct {
	reuseBench
	store WantsBackend
}

// ok fails the test on an error.
func (b wantsBench) ok(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// settled forgets all changes.
func (b wantsBench) settled() {
	b.t.Helper()
	changes, err := b.store.Wants.NotedChanges(b.t.Context(), 1000)
	b.ok(err)
	b.ok(b.store.Wants.Settle(b.t.Context(), changes, nil, nil))
}

func (b wantsBench) standing(node fleet.Certname) compile.Standing {
	b.t.Helper()
	list, err := b.store.Standings.StandingsNamed(b.t.Context(), []fleet.Certname{node})
	b.ok(err)
	if len(list) != 1 {
		b.t.Fatalf("standings of %s: %+v", node, list)
	}
	return list[0]
}

func testStandings(b wantsBench) {
	b.store.Home("a.example", env)
	b.store.Home("b.example", env)
	b.store.Home("c.example", "other")
	c := b.compiled("a.example", v1, inputsOf("x.pp"), t0)
	got, err := b.store.Standings.Standings(b.t.Context(), env)
	b.ok(err)
	if len(got) != 2 || got[0].Node != "a.example" || got[0].FactsSeq == 0 || got[0].Plain != (compile.Base{Compilation: c.ID, Inputs: c.ID, Version: v1}) ||
		!got[0].Volatile || !got[0].CompiledAt.Equal(t0) || got[1].Plain.Compilation != 0 {
		b.t.Errorf("standings %+v", got)
	}
	all, err := b.store.Standings.Standings(b.t.Context(), "")
	b.ok(err)
	if len(all) != 3 || all[2].Environment != "other" {
		b.t.Errorf("all standings %+v", all)
	}
	made, err := b.restate(c, v2)
	b.ok(err)
	if got := b.standing("a.example"); got.Plain != (compile.Base{Compilation: made.ID, Inputs: c.ID, Version: v2}) {
		b.t.Errorf("after it was restated: %+v", got)
	}
}

// stagedly makes a done staged compilation.
func (b wantsBench) stagedly(node fleet.Certname, priority compile.Priority) compile.Compilation {
	b.t.Helper()
	w := ask(node)
	w.Staged, w.Priority, w.Transaction = true, priority, ""
	b.want(w)
	c := asDone(b.leaseOne(worker1), "staged", t0)
	c.Inputs = inputsOf("s.pp")
	b.finish(c)
	return c
}

func testStagedBases(b wantsBench) {
	b.store.Home("a.example", env)
	b.stagedly("a.example", compile.Previewing)
	if got := b.standing("a.example"); got.Staged.Compilation != 0 {
		b.t.Errorf("a preview is a base: %+v", got)
	}
	c := b.stagedly("a.example", compile.NewCode)
	got := b.standing("a.example")
	if got.Staged.Compilation != c.ID || got.Plain.Compilation != 0 {
		b.t.Errorf("standing %+v, want the staged base %d", got, c.ID)
	}
	newest, err := b.Reusables.NewestStaged(b.t.Context(), "a.example", env)
	b.ok(err)
	if newest.ID != c.ID || !newest.Staged || cmp.Diff(inputsOf("s.pp"), newest.Inputs) != "" {
		b.t.Errorf("newest staged %+v", newest)
	}
	made, err := b.restate(c, v1)
	b.ok(err)
	if made.Staged || made.Catalog != c.Catalog || made.ID == c.ID {
		b.t.Errorf("promoted %+v", made)
	}
}

// testHeldBases: what the brake holds ends as a staged row though it was wanted plain; the plain base stays.
func testHeldBases(b wantsBench) {
	b.store.Home("a.example", env)
	given := b.compiled("a.example", v1, inputsOf("x.pp"), t0)
	if got := b.standing("a.example"); got.Held {
		b.t.Errorf("held without a reason: %+v", got)
	}
	w := ask("a.example")
	w.Version, w.Transaction, w.Priority = v2, "", compile.NewCode
	b.want(w)
	c := b.leaseOne(worker1)
	c.State, c.Catalog, c.UUID, c.FinishedAt, c.Inputs = compile.Done, fleet.DigestOf([]byte("empty")), "held", t0, inputsOf("s.pp")
	c.Staged, c.Held = true, true
	b.finish(c)
	b.store.Hold(given)
	if row := b.row(c.ID); row.State != compile.Done || !row.Staged || row.Catalog != c.Catalog {
		b.t.Errorf("the held row is %+v, want it staged", row)
	}
	got := b.standing("a.example")
	if !got.Held || got.Plain.Compilation != given.ID || got.Staged.Compilation != c.ID {
		b.t.Errorf("standing %+v, want held, the plain base %d and the staged one %d", got, given.ID, c.ID)
	}
}

func testFootprints(b wantsBench) {
	b.store.Home("a.example", env)
	c := b.compiled("a.example", v1, inputsOf("x.pp"), t0)
	found, err := b.store.Readings.Footprints(b.t.Context(), []int64{c.ID, c.ID + 100})
	b.ok(err)
	left, ok := found[c.ID]
	if len(found) != 1 || !ok || len(left.Set.Values) != 2 || left.Set.Sources.Count() != 0 {
		b.t.Fatalf("found %+v", found)
	}
	var whole compile.Sources
	for _, group := range left.Groups {
		text, err := b.store.Readings.SourceGroup(b.t.Context(), group)
		b.ok(err)
		b.ok(whole.AddGroup(text))
	}
	whole.Sort()
	if diff := cmp.Diff(inputsOf("x.pp").Sources, whole); diff != "" {
		b.t.Errorf("sources (-want +got):\n%s", diff)
	}
	if _, err := b.store.Readings.SourceGroup(b.t.Context(), v1); fault.Of(err) != fault.NotFound || err == nil {
		b.t.Errorf("a group that is not there: %v", err)
	}
}

func testConsiderMovesBases(b wantsBench) {
	for _, node := range []fleet.Certname{"a.example", "b.example", "c.example"} {
		b.store.Home(node, env)
		b.compiled(node, v1, inputsOf("x.pp"), t0)
	}
	stands, err := b.store.Standings.Standings(b.t.Context(), env)
	b.ok(err)
	other := fleet.DigestOf([]byte("version 3"))
	later := b.compiled("b.example", other, inputsOf("y.pp"), t0.Add(minute)) // after it was judged
	to := compile.Mark{Environment: env, Version: v2, Upto: "b.example", Nodes: 3, Touched: 1, BeganAt: t0, KnownFor: time.Second}
	want := ask("c.example")
	want.Version, want.Transaction, want.Priority = v2, "", compile.NewCode
	b.ok(b.store.Wants.Consider(b.t.Context(), compile.Step{To: to, Stands: stands[:2], Wants: []compile.Want{want}}))
	if got := b.standing("a.example"); got.Plain.Version != v2 {
		b.t.Errorf("a base that stands: %+v", got)
	}
	if got := b.standing("b.example"); got.Plain.Version != other || got.Plain.Compilation != later.ID {
		b.t.Errorf("a base that came meanwhile: %+v", got)
	}
	if c := b.newest("a.example"); c.Version != v1 || c.Stands != v2 {
		b.t.Errorf("newest %+v, want one that stands for another version", c)
	}
	waiting, err := b.store.Standings.Waiting(b.t.Context(), env, v2)
	b.ok(err)
	if diff := cmp.Diff([]fleet.Certname{"c.example"}, waiting); diff != "" {
		b.t.Errorf("waiting (-want +got):\n%s", diff)
	}
	marks, err := b.store.Wants.Marks(b.t.Context())
	b.ok(err)
	if diff := cmp.Diff([]compile.Mark{to}, marks); diff != "" {
		b.t.Errorf("marks (-want +got):\n%s", diff)
	}
}

func testConsiderConflicts(b wantsBench) {
	ctx := b.t.Context()
	first := compile.Mark{Environment: env, Version: v1, Upto: "a"}
	second := compile.Mark{Environment: env, Version: v1, Upto: "b", Done: true}
	b.ok(b.store.Wants.Consider(ctx, compile.Step{To: first}))
	for _, from := range []compile.Mark{{}, {Environment: env, Version: v2, Upto: "a"}, {Environment: env, Version: v1, Upto: "z"}} {
		if err := b.store.Wants.Consider(ctx, compile.Step{From: from, To: second}); fault.Of(err) != fault.Conflict || err == nil {
			b.t.Errorf("from %+v: %v, want Conflict", from, err)
		}
	}
	b.ok(b.store.Wants.Consider(ctx, compile.Step{From: first, To: second}))
	if err := b.store.Wants.Consider(ctx, compile.Step{From: first, To: second}); fault.Of(err) != fault.Conflict || err == nil {
		b.t.Errorf("twice: %v, want Conflict", err)
	}
}

func testConsiderMovesWhatIsAhead(b wantsBench) {
	ahead := ask("a.example")
	ahead.Transaction, ahead.Priority = "", compile.NewFacts
	row := b.want(ahead)
	other := ahead
	other.Node = "b.example"
	b.want(other)
	there := other
	there.Version = v2
	b.want(there) // wanted of both
	waited := ask("c.example")
	kept := b.want(waited)
	preview := ahead
	preview.Node, preview.Priority = "d.example", compile.Previewing
	previewed := b.want(preview)
	b.ok(b.store.Wants.Consider(b.t.Context(), compile.Step{To: compile.Mark{Environment: env, Version: v2, Done: true}}))
	if got := b.row(row.ID); got.Version != v2 || got.Priority != compile.NewFacts {
		b.t.Errorf("what was wanted ahead is %+v", got)
	}
	for _, c := range []compile.Compilation{kept, previewed} {
		if got := b.row(c.ID); got.Version != v1 {
			b.t.Errorf("what somebody asked for is %+v", got)
		}
	}
	waiting, err := b.store.Standings.Waiting(b.t.Context(), env, v2)
	b.ok(err)
	if diff := cmp.Diff([]fleet.Certname{"a.example", "b.example"}, waiting); diff != "" {
		b.t.Errorf("waiting (-want +got):\n%s", diff)
	}
}

// testConsiderEndsSlowdown has rows moved to new code, so that nothing is wanted anew.
func testConsiderEndsSlowdown(b wantsBench) {
	for _, node := range []fleet.Certname{"a.example", "b.example", "c.example", "d.example"} {
		w := ask(node)
		w.Transaction, w.Priority = "", compile.NewCode
		b.want(w)
	}
	b.tooLate(3, t0)
	b.slowed(compile.Slowdown{Environment: env, Version: v1, Timeouts: 3, Since: t0, RestsUntil: t0.Add(30 * time.Second)})
	b.ok(b.store.Wants.Consider(b.t.Context(), compile.Step{To: compile.Mark{Environment: env, Version: v2, Done: true}}))
	b.slowed()
}

// testWhatIsMovedIsWantedLast has a row that waits overtaken by one that somebody asks for. When the first is moved to a new version, its
// catalog must be able to become the newest.
func testWhatIsMovedIsWantedLast(b wantsBench) {
	waits := ask("a.example")
	waits.Transaction, waits.Priority = "", compile.NewFacts
	b.want(waits)
	asked := ask("a.example")
	asked.Version, asked.Priority = v2, compile.Waited
	b.want(asked)
	leased := b.leaseOne(worker1)
	alone := ask("b.example")
	alone.Transaction, alone.Priority = "", compile.NewFacts
	kept := b.want(alone)
	v3 := fleet.DigestOf([]byte("version 3"))
	b.ok(b.store.Wants.Consider(b.t.Context(), compile.Step{To: compile.Mark{Environment: env, Version: v3, Done: true}}))
	rows := map[fleet.Certname]compile.Compilation{}
	for _, c := range b.lease(worker1, 10) {
		rows[c.Node] = c
	}
	if moved := rows["a.example"]; moved.Version != v3 || moved.ID <= leased.ID {
		b.t.Errorf("row %d of version %s goes before row %d", moved.ID, moved.Version.Short(), leased.ID)
	}
	if got := rows["b.example"]; got.Version != v3 || got.ID != kept.ID {
		b.t.Errorf("row %d, which nothing has overtaken, became %d of version %s", kept.ID, got.ID, got.Version.Short())
	}
}

// testWhatIsMovedJoinsAPreview has new facts wait while previews of the next version wait, too: deploying it must not forget the facts. A
// preview that is told of some nodes only is no twin.
func testWhatIsMovedJoinsAPreview(b wantsBench) {
	for _, node := range []fleet.Certname{"a.example", "b.example"} {
		facts := ask(node)
		facts.Transaction, facts.Priority = "", compile.NewFacts
		b.want(facts)
		preview := facts
		preview.Version, preview.Priority, preview.Staged = v2, compile.Previewing, true
		if node == "b.example" {
			preview.Reach = "certname = \"b.example\""
		}
		b.want(preview)
	}
	b.ok(b.store.Wants.Consider(b.t.Context(), compile.Step{To: compile.Mark{Environment: env, Version: v2, Done: true}}))
	got := map[fleet.Certname]int{}
	for _, c := range b.lease(worker1, 10) {
		switch {
		case c.Version != v2:
			b.t.Errorf("row %d of %s is still of version %s", c.ID, c.Node, c.Version.Short())
		case c.Priority == compile.NewFacts && !c.Staged && c.Reach == "":
			got[c.Node]++
		}
	}
	if got["a.example"] != 1 || got["b.example"] != 1 {
		b.t.Errorf("the new facts are wanted of %v", got)
	}
}

func testChanges(b wantsBench) {
	ctx := b.t.Context()
	b.store.Home("a.example", env)
	b.settled()
	b.store.Note(compile.FactsChanged, "a.example", "os", "role")
	b.store.Note(compile.FactsChanged, "a.example", "os", "uptime")
	b.store.Note(compile.NewlySigned, "a.example")
	changes, err := b.store.Wants.NotedChanges(ctx, 10)
	b.ok(err)
	want := []compile.Change{
		{Kind: compile.FactsChanged, Node: "a.example", Details: []string{"os", "role", "uptime"}, Count: 2},
		{Kind: compile.NewlySigned, Node: "a.example", Count: 1},
	}
	if diff := cmp.Diff(want, changes); diff != "" {
		b.t.Errorf("changes (-want +got):\n%s", diff)
	}
	b.store.Note(compile.NewlySigned, "a.example") // while it is considered
	next := ask("a.example")
	next.Transaction = ""
	b.ok(b.store.Wants.Settle(ctx, changes, []compile.Want{next}, nil))
	changes, err = b.store.Wants.NotedChanges(ctx, 10)
	b.ok(err)
	if len(changes) != 1 || changes[0].Kind != compile.NewlySigned || changes[0].Count != 2 {
		b.t.Errorf("left %+v", changes)
	}
	b.leaseOne(worker1)
}

func testChains(b wantsBench) {
	ctx := b.t.Context()
	chain := compile.Chain{Node: "a.example", Environment: env, Rounds: 2, Because: "exports of b.example"}
	w := ask("a.example")
	expect := func(what string, want ...compile.Chain) {
		b.t.Helper()
		got, err := b.store.Wants.Chains(ctx)
		b.ok(err)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			b.t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	b.ok(b.store.Wants.Settle(ctx, nil, []compile.Want{w}, []compile.Chain{chain}))
	expect("a want that follows", chain)
	b.ok(b.store.Wants.Settle(ctx, nil, []compile.Want{w}, nil))
	expect("a want with another cause")
	chain.StoppedAt = t0
	b.ok(b.store.Wants.SaveChains(ctx, []compile.Chain{chain}))
	expect("stopped", chain)
	chain.Rounds = 0
	b.ok(b.store.Wants.SaveChains(ctx, []compile.Chain{chain}))
	expect("settled")
}

func testRefresh(b wantsBench) {
	ctx := b.t.Context()
	for i, node := range []fleet.Certname{"c.example", "b.example", "a.example"} {
		b.store.Home(node, env)
		set := inputsOf("x.pp")
		set.At = t0.Add(time.Duration(i) * minute)
		if node != "c.example" {
			set.Volatile = nil
		}
		b.compiled(node, v1, set, set.At)
	}
	names := func(old, volatile time.Time, n int) string {
		b.t.Helper()
		list, err := b.store.Wants.Oldest(ctx, old, volatile, n)
		b.ok(err)
		var text strings.Builder
		for _, s := range list {
			text.WriteByte(s.Node[0])
		}
		return text.String()
	}
	if got := fmt.Sprint(names(t0.Add(2*minute), time.Time{}, 10), " ", names(time.Time{}, t0.Add(time.Hour), 10), " ",
		names(t0.Add(time.Hour), time.Time{}, 1)); got != "cb c c" {
		b.t.Errorf("oldest %s", got)
	}
	w := ask("c.example")
	w.Transaction, w.Priority, w.At = "", compile.Background, t0.Add(time.Hour)
	b.ok(b.store.Wants.Refresh(ctx, []compile.Want{w}))
	if n, err := b.store.Wants.Backgrounds(ctx); err != nil || n != 1 {
		b.t.Errorf("%d backgrounds, %v", n, err)
	}
	if got := names(t0.Add(30*minute), t0.Add(30*minute), 10); got != "ba" {
		b.t.Errorf("oldest after one was tried: %s", got)
	}
}

func testFailures(b wantsBench) {
	ctx := b.t.Context()
	for _, node := range []fleet.Certname{"a.example", "b.example"} {
		b.store.Home(node, env)
		b.compiled(node, v1, inputsOf("x.pp"), t0)
		w := ask(node)
		w.Version, w.Transaction = v2, "fails"
		b.want(w)
		c := b.leaseOne(worker1)
		c.State, c.FinishedAt, c.Err = compile.Failed, t0.Add(minute), &compile.Error{Cause: compile.CauseCode, Message: "wrong", File: "x.pp", Line: 3}
		b.finish(c)
	}
	b.compiled("b.example", v2, inputsOf("x.pp"), t0.Add(2*minute))
	failed, err := b.store.Standings.Failures(ctx, env, v2)
	b.ok(err)
	if len(failed) != 1 || failed[0].Node != "a.example" || failed[0].Err == nil || failed[0].Err.Line != 3 {
		b.t.Errorf("failures %+v", failed)
	}
	failing, err := b.store.Standings.Failing(ctx, env)
	b.ok(err)
	if diff := cmp.Diff([]fleet.Certname{"a.example"}, failing); diff != "" {
		b.t.Errorf("failing (-want +got):\n%s", diff)
	}
	if got := b.standing("a.example"); got.Plain.Version != v1 {
		b.t.Errorf("a failure moved the base: %+v", got)
	}
}

func testBroken(b wantsBench) {
	names := []fleet.Certname{"a.example", "b.example", "c.example", "d.example"}
	fails := func(node fleet.Certname, staged bool, at time.Time) {
		w := ask(node)
		w.Version, w.Transaction, w.Staged = v2, "fails", staged
		b.want(w)
		c := b.leaseOne(worker1)
		c.State, c.FinishedAt, c.Err = compile.Failed, at, &compile.Error{Cause: compile.CauseCode, Message: "wrong", File: "x.pp", Line: 3}
		b.finish(c)
	}
	for _, node := range names {
		b.store.Home(node, env)
		b.compiled(node, v1, inputsOf("x.pp"), t0)
	}
	fails("a.example", false, t0.Add(minute))
	fails("b.example", false, t0.Add(minute))
	b.compiled("b.example", v2, inputsOf("x.pp"), t0.Add(2*minute)) // mended
	fails("c.example", true, t0.Add(minute))                        // only staged
	fails("d.example", false, t0.Add(minute))                       // nobody asks for it
	broken, err := b.store.Queue.(compile.Breakages).Broken(b.t.Context(), append(names[:3:3], "stranger.example"))
	b.ok(err)
	if len(broken) != 1 || broken["a.example"].Err == nil || broken["a.example"].Err.Line != 3 {
		b.t.Errorf("broken: %+v", broken)
	}
	all, err := b.store.Queue.(compile.Breakages).BrokenNodes(b.t.Context())
	b.ok(err)
	if slices.Sort(all); !slices.Equal(all, []fleet.Certname{"a.example", "d.example"}) {
		b.t.Errorf("all that are broken: %v", all)
	}
}

func testFreshJoinsNoLease(b wantsBench) {
	w := ask("a.example")
	w.Transaction = ""
	b.want(w)
	leased := b.leaseOne(worker1)
	if joined := b.want(w); joined.ID != leased.ID {
		b.t.Errorf("joined %d, want %d", joined.ID, leased.ID)
	}
	w.Fresh = true
	fresh := b.want(w)
	if fresh.ID == leased.ID || fresh.State != compile.Wanted {
		b.t.Errorf("a fresh want joined %+v", fresh)
	}
	if again := b.want(w); again.ID != fresh.ID {
		b.t.Errorf("two wanted rows: %d and %d", fresh.ID, again.ID)
	}
}
