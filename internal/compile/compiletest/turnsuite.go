package compiletest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// wantMany wants n rows of an environment, wanted one second after the other.
func (b bench) wantMany(environment fleet.Environment, n int, priority compile.Priority, first time.Time) {
	b.t.Helper()
	for i := range n {
		b.want(compile.Want{
			Node: fleet.Certname(fmt.Sprintf("%s-%02d", environment, i)), Environment: environment, Version: v1, Priority: priority,
			At: first.Add(time.Duration(i) * time.Second),
		})
	}
}

func nodesOf(cs []compile.Compilation) (names []string) {
	for _, c := range cs {
		names = append(names, string(c.Node))
	}
	return names
}

func (b bench) leases(worker string, n int, want ...string) []compile.Compilation {
	b.t.Helper()
	cs := b.lease(worker, n)
	if diff := cmp.Diff(want, nodesOf(cs)); diff != "" {
		b.t.Errorf("leased (-want +got):\n%s", diff)
	}
	return cs
}

// testTurnsInABatch: environments take turns within one priority, and a better
// priority of any environment goes first.
func testTurnsInABatch(b bench) {
	b.wantMany("big", 10, compile.NewCode, t0)
	b.wantMany("late", 2, compile.NewCode, t0.Add(minute))
	b.wantMany("later", 1, compile.NewCode, t0.Add(2*minute))
	b.wantMany("waits", 1, compile.Waited, t0.Add(time.Hour))
	b.leases(worker1, 7, "waits-00", "big-00", "late-00", "later-00", "big-01", "late-01", "big-02")
	b.leases(worker1, 2, "big-03", "big-04")
}

// testTurnsOfOneSlot: who leases one row at a time alternates, too.
func testTurnsOfOneSlot(b bench) {
	b.wantMany("big", 4, compile.NewCode, t0)
	b.wantMany("small", 2, compile.NewCode, t0.Add(minute))
	var got []string
	for range 6 {
		c := b.leaseOne(worker1)
		got = append(got, string(c.Node))
		b.finish(asDone(c, string(c.Node), t0))
	}
	if diff := cmp.Diff([]string{"big-00", "small-00", "big-01", "small-01", "big-02", "big-03"}, got); diff != "" {
		b.t.Errorf("order of leases (-want +got):\n%s", diff)
	}
}

// testTurnsCountWhatRuns: an environment whose catalogs take long does not get all
// workers.
func testTurnsCountWhatRuns(b bench) {
	b.wantMany("slow", 10, compile.NewCode, t0)
	slow := b.leases(worker1, 2, "slow-00", "slow-01")
	b.wantMany("quick", 10, compile.NewCode, t0)
	b.leases(worker1, 1, "quick-00")
	b.leases(worker2, 1, "quick-01") // two of each run now
	if err := b.Queue.Rest(b.t.Context(), slow[0], t0.Add(minute), "no room"); err != nil {
		b.t.Fatal(err)
	}
	b.leases(worker2, 1, "slow-02") // what rests does not count
}

func testTurnsSkipPaused(b bench) {
	p := b.pauses()
	b.wantMany("a", 3, compile.Waited, t0)
	b.wantMany("b", 3, compile.NewCode, t0)
	b.pause(compile.Pause{Environment: "a", By: "alice", At: t0})
	b.leases(worker1, 1, "b-00")
	b.pause(compile.Pause{By: "bob", Reason: "disks", At: t0.Add(minute)})
	b.leases(worker1, 9)
	want := []compile.Pause{{By: "bob", Reason: "disks", At: t0.Add(minute)}, {Environment: "a", By: "alice", At: t0}}
	got, err := p.Pauses(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
		b.t.Errorf("pauses (-want +got):\n%s", diff)
	}
	b.resume("", nil)
	b.resume("", compile.NotPaused(""))
	b.leases(worker1, 9, "b-01", "b-02")
	b.pause(compile.Pause{Environment: "a", By: "carol", At: t0})
	if got, err := p.Pauses(b.t.Context()); err != nil || len(got) != 1 || got[0].By != "carol" {
		b.t.Errorf("after a second pause: %+v, %v", got, err)
	}
	b.resume("a", nil)
	b.leases(worker1, 9, "a-00", "a-01", "a-02")
}

func (b bench) pauses() compile.Pauses {
	b.t.Helper()
	p, ok := b.Queue.(compile.Pauses)
	if !ok {
		b.t.Fatal("the queue cannot be paused")
	}
	return p
}

func (b bench) pause(p compile.Pause) {
	b.t.Helper()
	if err := b.pauses().Pause(b.t.Context(), p); err != nil {
		b.t.Fatal(err)
	}
}

func (b bench) resume(env fleet.Environment, want error) {
	b.t.Helper()
	err := b.pauses().Resume(b.t.Context(), env)
	if (err == nil) != (want == nil) || err != nil && (fault.Of(err) != fault.NotFound || fault.Detail(err) != fault.Detail(want)) {
		b.t.Errorf("resume %q: %v, want %v", env, err, want)
	}
}

func testRest(b bench) {
	b.want(ask("a"))
	c := b.leaseOne(worker1)
	until := t0.Add(5 * time.Second)
	if err := b.Queue.Rest(b.t.Context(), c, until, "the disk is full"); err != nil {
		b.t.Fatal(err)
	}
	want := c
	want.Trouble, want.RestsUntil, want.LeasedUntil = "the disk is full", until, until
	same(b.t, b.row(c.ID), want)
	if held, err := b.Queue.Renew(b.t.Context(), worker1, []int64{c.ID}, t0.Add(time.Hour)); err != nil || len(held) != 0 {
		b.t.Errorf("a resting row was renewed: %v, %v", held, err)
	}
	for what, err := range map[string]error{
		"rest again": b.Queue.Rest(b.t.Context(), c, t0.Add(time.Hour), "x"), "finish": b.Queue.Finish(b.t.Context(), asDone(c, "a", t0)),
	} {
		if fault.Of(err) != fault.Conflict {
			b.t.Errorf("%s: %v, want Conflict", what, err)
		}
	}
	if n := b.giveBack("", until.Add(-time.Second)); n != 0 {
		b.t.Error("the row came back too early")
	}
	if n := b.giveBack("", until); n != 1 {
		b.t.Error("the row did not come back")
	}
	again := b.leaseOne(worker2)
	if again.ID != c.ID || again.Attempts != 2 || again.Trouble != "the disk is full" || !again.RestsUntil.IsZero() {
		b.t.Errorf("the second lease is %+v", again)
	}
	if err := b.Queue.Rest(b.t.Context(), c, until, "x"); fault.Of(err) != fault.Conflict {
		b.t.Errorf("rest by a lease that is over: %v, want Conflict", err)
	}
}

// testRestIsNoDeath: a row that rested however often is not taken for one that killed those who leased it, when a lease of it is lost later.
func testRestIsNoDeath(b bench) {
	b.want(ask("a"))
	for i := range 3 * tries {
		c := b.leaseOne(worker1)
		until := t0.Add(time.Duration(i) * minute)
		if err := b.Queue.Rest(b.t.Context(), c, until, "the store does not answer"); err != nil {
			b.t.Fatal(err)
		}
		b.giveBack("", until)
	}
	c := b.leaseOne(worker1)
	b.giveBack(worker1, t0)
	if got := b.row(c.ID); got.State != compile.Wanted || got.Err != nil {
		b.t.Errorf("after one lost lease the row is %s: %v", got.State, got.Err)
	}
}

// testRestFolds: a resting row whose node has newer facts by now tells its twin of the
// trouble.
func testRestFolds(b bench) {
	b.want(ask("a"))
	c := b.leaseOne(worker1)
	w := ask("a")
	w.FactsSeq = 2
	twin := b.want(w)
	if err := b.Queue.Rest(b.t.Context(), c, t0, "the disk is full"); err != nil {
		b.t.Fatal(err)
	}
	b.giveBack("", t0)
	b.gone(c.ID)
	if got := b.row(twin.ID); got.Trouble != "the disk is full" || got.Attempts != 1 || !got.RestsUntil.IsZero() {
		b.t.Errorf("the twin is %+v", got)
	}
}

// turnTests are about who is leased next.
func turnTests() []suiteTest {
	return []suiteTest{
		{"TurnsInABatch", testTurnsInABatch},
		{"TurnsOfOneSlot", testTurnsOfOneSlot},
		{"TurnsCountWhatRuns", testTurnsCountWhatRuns},
		{"TurnsSkipPaused", testTurnsSkipPaused},
		{"Rest", testRest},
		{"RestIsNoDeath", testRestIsNoDeath},
		{"RestFolds", testRestFolds},
	}
}

// suiteTest is one test of the suite.
type suiteTest struct {
	name string
	test func(b bench)
}

func run(t *testing.T, tests []suiteTest, open func(t *testing.T) Backend) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.test(bench{t, open(t)})
		})
	}
}
