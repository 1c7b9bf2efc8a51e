package compiletest

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Backend is one empty queue under test.
type Backend struct {
	Queue   compile.Queue
	History compile.History
	// SetFacts makes seq the node's current facts sequence, which Lease copies.
	SetFacts func(node fleet.Certname, seq int64)
}

const (
	env     = fleet.Environment("production")
	all     = compile.Background // every priority may be leased
	minute  = time.Minute
	tries   = 3
	worker1 = "w1"
	worker2 = "w2"
)

var (
	v1 = fleet.DigestOf([]byte("version 1"))
	v2 = fleet.DigestOf([]byte("version 2"))
	t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// RunQueue is the conformance suite. open gives an empty queue of its own to
// every test.
func RunQueue(t *testing.T, open func(t *testing.T) Backend) {
	t.Helper()
	tests := []suiteTest{
		{"WantMakesARow", testWantMakesARow},
		{"WantJoinsWanted", testWantJoinsWanted},
		{"WantKeepsTheBetter", testWantKeepsTheBetter},
		{"WantTellsKeysApart", testWantTellsKeysApart},
		{"WantJoinsLeasedWithItsFacts", testWantJoinsLeasedWithItsFacts},
		{"WantAfterLeaseWithNewerFacts", testWantAfterLeaseWithNewerFacts},
		{"WantedLastHasTheHighestID", testWantedLastHasTheHighestID},
		{"WantFindsFinishedOfTransaction", testWantFindsFinishedOfTransaction},
		{"WantFindsFailedOfTransaction", testWantFindsFailedOfTransaction},
		{"LeaseOrder", testLeaseOrder},
		{"LeaseCeiling", testLeaseCeiling},
		{"LeaseSetsFacts", testLeaseSetsFacts},
		{"LeaseIsExclusive", testLeaseIsExclusive},
		{"WantIsOneRow", testWantIsOneRow},
		{"FinishStores", testFinishStores},
		{"FinishConflicts", testFinishConflicts},
		{"Renew", testRenew},
		{"ReturnExpired", testReturnExpired},
		{"ReturnOfAClockAhead", testReturnOfAClockAhead},
		{"ReturnWorker", testReturnWorker},
		{"ReturnFailsAfterMaxAttempts", testReturnFailsAfterMaxAttempts},
		{"ReturnFoldsIntoWanted", testReturnFoldsIntoWanted},
		{"ReturnFoldsTwoLeases", testReturnFoldsTwoLeases},
		{"ReturnFoldsIntoLater", testReturnFoldsIntoLater},
		{"StagedJoinsStaged", testStagedJoinsStaged},
		{"StagedJoinedByPlain", testStagedJoinedByPlain},
		{"StagedLeasedThenWantedPlain", testStagedLeasedThenWantedPlain},
		{"StagedDoesNotAnswerPlain", testStagedDoesNotAnswerPlain},
		{"StagedIsReturnedStaged", testStagedIsReturnedStaged},
		{"ReachesAreApart", testReachesAreApart},
		{"CompilationNotFound", testCompilationNotFound},
		{"Depth", testDepth},
		{"Prune", testPrune},
		{"Distinct", testDistinct},
		{"RandomWalk", testRandomWalk},
		{"SameAsModel", testSameAsModel},
	}
	run(t, slices.Concat(tests, turnTests(), fairTests(), boardTests()), open)
}

// offer takes rows for a minute, without a share.
func offer(worker string, n int, worst compile.Priority) compile.Offer {
	return compile.Offer{Worker: worker, Rows: n, Worst: worst, Now: t0, Until: t0.Add(minute)}
}

// bench is a backend with helpers that end the test on an error.
type bench struct {
	t *testing.T
	Backend
}

func ask(node fleet.Certname) compile.Want {
	return compile.Want{
		Node: node, Environment: env, Version: v1, FactsSeq: 1, Transaction: "t-" + string(node),
		Trusted: json.RawMessage(`{"authenticated":"remote"}`), Priority: compile.Waited, At: t0,
	}
}

func (b bench) want(w compile.Want) compile.Compilation {
	b.t.Helper()
	c, err := b.Queue.Want(b.t.Context(), w)
	if err != nil {
		b.t.Fatalf("Want(%s): %v", w.Node, err)
	}
	return c
}

func (b bench) lease(worker string, n int) []compile.Compilation {
	b.t.Helper()
	cs, err := b.Queue.Lease(b.t.Context(), offer(worker, n, all))
	if err != nil {
		b.t.Fatalf("Lease: %v", err)
	}
	return cs
}

func (b bench) leaseOne(worker string) compile.Compilation {
	b.t.Helper()
	cs := b.lease(worker, 1)
	if len(cs) != 1 {
		b.t.Fatalf("Lease gave %d rows, want 1", len(cs))
	}
	return cs[0]
}

func (b bench) finish(c compile.Compilation) {
	b.t.Helper()
	if err := b.Queue.Finish(b.t.Context(), c); err != nil {
		b.t.Fatalf("Finish: %v", err)
	}
}

// done wants, leases and finishes a compilation of node at the given time.
func (b bench) done(w compile.Want, catalog string, at time.Time) compile.Compilation {
	b.t.Helper()
	b.want(w)
	c := asDone(b.leaseOne(worker1), catalog, at)
	b.finish(c)
	return c
}

func asDone(c compile.Compilation, catalog string, at time.Time) compile.Compilation {
	c.State, c.FinishedAt = compile.Done, at
	c.Catalog, c.UUID = fleet.DigestOf([]byte(catalog)), "5a1c3f0e-0000-4000-8000-000000000001"
	c.Cost = compile.Cost{Wall: 3 * time.Second, CPU: 2 * time.Second, PeakBytes: 1 << 31}
	return c
}

func (b bench) giveBack(worker string, now time.Time) int {
	b.t.Helper()
	n, err := b.Queue.ReturnLeases(b.t.Context(), worker, now, tries)
	if err != nil {
		b.t.Fatalf("ReturnLeases: %v", err)
	}
	return n
}

func (b bench) row(id int64) compile.Compilation {
	b.t.Helper()
	c, err := b.Queue.Compilation(b.t.Context(), id)
	if err != nil {
		b.t.Fatalf("Compilation(%d): %v", id, err)
	}
	return c
}

func (b bench) gone(id int64) {
	b.t.Helper()
	if _, err := b.Queue.Compilation(b.t.Context(), id); fault.Of(err) != fault.NotFound {
		b.t.Errorf("Compilation(%d): %v, want NotFound", id, err)
	}
}

func (b bench) depth(wanted, leased int, oldest time.Duration, now time.Time) {
	b.t.Helper()
	w, l, o, err := b.Queue.Depth(b.t.Context(), now)
	if err != nil {
		b.t.Fatalf("Depth: %v", err)
	}
	if w != wanted || l != leased || o != oldest {
		b.t.Errorf("Depth: %d wanted, %d leased, oldest %s; want %d, %d, %s", w, l, o, wanted, leased, oldest)
	}
}

// rowOptions compare rows.
var rowOptions = cmp.Options{
	cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) }),
	cmp.Comparer(func(a, b json.RawMessage) bool {
		var x, y any
		_, _ = json.Unmarshal(a, &x), json.Unmarshal(b, &y)
		return cmp.Equal(x, y)
	}),
	cmp.FilterPath(func(p cmp.Path) bool { return p.Last().Type() != reflect.TypeFor[json.RawMessage]() }, cmpopts.EquateEmpty()),
}

// same compares two rows, times as moments and JSON as values. What is only
// meant while a row is leased counts only then.
func same(t *testing.T, got, want compile.Compilation) {
	t.Helper()
	if want.State != compile.Leased {
		got.LeasedBy, got.LeasedUntil, want.LeasedBy, want.LeasedUntil = "", time.Time{}, "", time.Time{}
	}
	if diff := cmp.Diff(want, got, rowOptions); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
}

func testWantMakesARow(b bench) {
	w := ask("a")
	c := b.want(w)
	if c.ID == 0 {
		b.t.Error("the row has no ID")
	}
	want := compile.Compilation{
		ID: c.ID, Node: "a", Environment: env, Version: v1, FactsSeq: 1, Transaction: "t-a", Trusted: w.Trusted,
		Priority: compile.Waited, State: compile.Wanted, WantedAt: t0,
	}
	same(b.t, c, want)
	same(b.t, b.row(c.ID), want)

	bare := b.want(compile.Want{Node: "bare", Environment: env, Version: v1, Priority: compile.Background, At: t0})
	if got := b.row(bare.ID); got.Transaction != "" || len(got.Trusted) != 0 || got.FactsSeq != 0 {
		b.t.Errorf("a bare want became %+v", got)
	}
}

func testWantJoinsWanted(b bench) {
	first := b.want(ask("a"))
	w := ask("a")
	w.FactsSeq, w.Transaction, w.At = 2, "t-later", t0.Add(minute)
	w.Trusted = json.RawMessage(`{"authenticated":"local"}`)
	second := b.want(w)
	want := first
	want.FactsSeq, want.Transaction, want.Trusted = 2, "t-later", w.Trusted
	same(b.t, second, want)
	same(b.t, b.row(first.ID), want)
	b.depth(1, 0, minute, t0.Add(minute))
}

func testWantKeepsTheBetter(b bench) {
	w := ask("a")
	w.Priority = compile.Background
	first := b.want(w)
	w.Priority = compile.Waited
	if got := b.want(w).Priority; got != compile.Waited {
		b.t.Errorf("a better want left priority %d", got)
	}
	got := b.want(compile.Want{Node: "a", Environment: env, Version: v1, Priority: compile.Background, At: t0})
	want := first
	want.Priority = compile.Waited
	same(b.t, got, want) // neither priority, facts, transaction nor trusted data got worse
}

func testWantTellsKeysApart(b bench) {
	ids := map[int64]bool{b.want(ask("a")).ID: true, b.want(ask("b")).ID: true}
	w := ask("a")
	w.Version = v2
	ids[b.want(w).ID] = true
	w = ask("a")
	w.Environment = "testing"
	ids[b.want(w).ID] = true
	if len(ids) != 4 {
		b.t.Errorf("four different wants gave %d rows", len(ids))
	}
}

func testWantJoinsLeasedWithItsFacts(b bench) {
	w := ask("a")
	w.Transaction, w.Priority = "", compile.Background
	b.want(w)
	leased := b.leaseOne(worker1)
	joined := b.want(ask("a"))
	want := leased
	want.Transaction, want.Priority = "t-a", compile.Waited
	same(b.t, joined, want)
	b.finish(asDone(leased, "a", t0))
	again := b.want(ask("a"))
	if again.ID != leased.ID || again.State != compile.Done {
		b.t.Errorf("the transaction that joined was given row %d (%s), want %d done", again.ID, again.State, leased.ID)
	}
}

func testWantAfterLeaseWithNewerFacts(b bench) {
	b.want(ask("a"))
	leased := b.leaseOne(worker1)
	w := ask("a")
	w.FactsSeq = 2
	second := b.want(w)
	if second.ID == leased.ID || second.State != compile.Wanted {
		b.t.Fatalf("newer facts joined a compilation of older ones: %+v", second)
	}
	b.depth(1, 1, 0, t0)
	if third := b.want(w); third.ID != second.ID {
		b.t.Errorf("the same want again gave row %d, want %d", third.ID, second.ID)
	}
}

func testWantFindsFinishedOfTransaction(b bench) {
	first := b.done(ask("a"), "a", t0)
	same(b.t, b.want(ask("a")), first)

	older := ask("a")
	older.FactsSeq = 0
	if got := b.want(older); got.ID != first.ID {
		b.t.Error("a catalog of newer facts did not answer its own transaction")
	}
	newer := ask("a")
	newer.FactsSeq = 2
	if got := b.want(newer); got.ID == first.ID {
		b.t.Error("a catalog of older facts answered")
	}
	b.lease(worker1, 1)
	other := ask("a")
	other.Transaction, other.FactsSeq = "t-other", 3
	if got := b.want(other); got.State != compile.Wanted {
		b.t.Error("another transaction was given a finished compilation")
	}
	nobody := b.done(compile.Want{Node: "n", Environment: env, Version: v1, Priority: compile.Waited, At: t0.Add(-minute)}, "n", t0)
	if got := b.want(compile.Want{Node: "n", Environment: env, Version: v1, Priority: compile.Waited, At: t0}); got.ID == nobody.ID {
		b.t.Error("a want without transaction was given a finished compilation")
	}
}

func testWantFindsFailedOfTransaction(b bench) {
	b.want(ask("a"))
	c := b.leaseOne(worker1)
	c.State, c.FinishedAt = compile.Failed, t0
	c.Err = &compile.Error{
		Cause: compile.CauseCode, Message: "no such class", File: "manifests/site.pp", Line: 3, Pos: 7,
		Logs: []compile.Log{{Level: "warning", Message: "deprecated", File: "manifests/site.pp", Line: 1}},
	}
	b.finish(c)
	same(b.t, b.want(ask("a")), c)
}
