package compiletest

import (
	stdcmp "cmp"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
)

// fairTests are about what one environment gets while others wait.
func fairTests() []suiteTest {
	return []suiteTest{
		{"ShareWhileOthersWait", testShareWhileOthersWait},
		{"ShareIsOfOneWorker", testShareIsOfOneWorker},
		{"ShareOfPreviews", testShareOfPreviews},
		{"StrictAndLast", testStrictAndLast},
		{"Lanes", testLanes},
		{"Slowdown", testSlowdown},
		{"SlowdownEndsInTime", testSlowdownEndsInTime},
		{"SlowdownEndsWithOtherCode", testSlowdownEndsWithOtherCode},
		{"SlowdownOfPreviews", testSlowdownOfPreviews},
	}
}

func (b bench) turns() compile.Turns {
	b.t.Helper()
	turns, ok := b.Queue.(compile.Turns)
	if !ok {
		b.t.Fatal("the queue does not tell whose turn it is")
	}
	return turns
}

// offers leases for o, which takes rows for a minute.
func (b bench) offers(o compile.Offer, want ...string) []compile.Compilation {
	b.t.Helper()
	if o.Now.IsZero() {
		o.Now = t0
	}
	o.Worst, o.Until = all, o.Now.Add(minute)
	cs, err := b.Queue.Lease(b.t.Context(), o)
	if err != nil {
		b.t.Fatal(err)
	}
	if diff := cmp.Diff(want, nodesOf(cs)); diff != "" {
		b.t.Errorf("leased for %+v (-want +got):\n%s", o, diff)
	}
	return cs
}

func testShareWhileOthersWait(b bench) {
	b.wantMany("bad", 9, compile.Waited, t0)
	b.wantMany("production", 3, compile.NewCode, t0)
	o := compile.Offer{Worker: worker1, Rows: 4, Most: 2}
	b.offers(o, "bad-00", "bad-01", "production-00", "production-01")
	o.Rows = 1
	b.offers(o, "bad-02") // both have their share
	o.Rows = 2
	b.offers(o, "bad-03", "bad-04")
}

func testShareIsOfOneWorker(b bench) {
	b.wantMany("bad", 9, compile.Waited, t0)
	b.wantMany("production", 1, compile.NewCode, t0)
	b.offers(compile.Offer{Worker: worker2, Rows: 1, Most: 1}, "bad-00")
	b.offers(compile.Offer{Worker: worker1, Rows: 3, Most: 1}, "bad-01", "production-00", "bad-02")
}

func testShareOfPreviews(b bench) {
	b.wantMany("a", 4, compile.Previewing, t0)
	o := compile.Offer{Worker: worker1, Rows: 2, Most: 1}
	b.offers(o, "a-00", "a-01") // nobody waits
	b.wantMany("a-catalog", 1, compile.NewCode, t0)
	b.want(compile.Want{Node: "mine", Environment: "a", Version: v1, Priority: compile.Waited, At: t0})
	b.offers(o, "mine", "a-catalog-00") // previews do not count
}

func testStrictAndLast(b bench) {
	b.wantMany("bad", 9, compile.Waited, t0)
	o := compile.Offer{Worker: worker1, Rows: 2, Most: 1, Strict: []fleet.Environment{"bad"}}
	b.offers(o, "bad-00")
	b.offers(o)
	o.Strict = nil
	b.offers(o, "bad-01", "bad-02")
	b.wantMany("production", 1, compile.NewCode, t0)
	b.offers(compile.Offer{Worker: worker2, Rows: 2, Most: 1, Last: []fleet.Environment{"bad"}}, "production-00", "bad-03")
}

func testLanes(b bench) {
	b.wantMany("bad", 4, compile.Waited, t0)
	b.wantMany("production", 1, compile.NewCode, t0.Add(minute))
	b.wantMany("paused", 1, compile.NewCode, t0)
	b.pause(compile.Pause{Environment: "paused", By: "alice", At: t0})
	b.offers(compile.Offer{Worker: worker2, Rows: 1}, "bad-00")
	rests := b.offers(compile.Offer{Worker: worker1, Rows: 2}, "bad-01", "bad-02")
	if err := b.Queue.Rest(b.t.Context(), rests[0], t0.Add(minute), "no room"); err != nil {
		b.t.Fatal(err)
	}
	got, err := b.turns().Lanes(b.t.Context(), compile.Offer{Worker: worker1, Worst: all, Now: t0})
	if err != nil {
		b.t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b compile.Lane) int { return stdcmp.Compare(a.Environment, b.Environment) })
	want := []compile.Lane{
		{Priority: compile.Waited, Environment: "bad", Running: 2, Kin: 2, Here: 1, Turn: 3, Oldest: t0.Add(3 * time.Second)},
		{Priority: compile.NewCode, Environment: "production", Oldest: t0.Add(minute)},
	}
	if diff := cmp.Diff(want, got, rowOptions); diff != "" {
		b.t.Errorf("lanes (-want +got):\n%s", diff)
	}
	if got, err = b.turns().Lanes(b.t.Context(), compile.Offer{Worker: worker1, Worst: compile.Waited, Now: t0}); err != nil || len(got) != 1 {
		b.t.Errorf("lanes up to waited: %+v, %v", got, err)
	}
}

// tooLate has the next rows end too late, at the given time.
func (b bench) tooLate(n int, at time.Time) {
	b.t.Helper()
	for range n {
		cs, err := b.Queue.Lease(b.t.Context(), compile.Offer{Worker: worker1, Rows: 1, Worst: all, Now: at, Until: at.Add(minute)})
		if err != nil || len(cs) != 1 {
			b.t.Fatalf("nothing to lease: %v, %v", cs, err)
		}
		c := cs[0]
		c.State, c.FinishedAt, c.Err = compile.Failed, at, &compile.Error{Cause: compile.CauseTimeout, Message: "too long"}
		b.finish(c)
	}
}

func (b bench) slowed(want ...compile.Slowdown) {
	b.t.Helper()
	got, err := b.turns().Slowdowns(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, rowOptions); diff != "" {
		b.t.Errorf("slowed (-want +got):\n%s", diff)
	}
}

func testSlowdown(b bench) {
	b.wantMany("bad", 9, compile.Waited, t0)
	b.tooLate(2, t0)
	b.slowed()
	b.tooLate(1, t0)
	b.slowed(compile.Slowdown{Environment: "bad", Version: v1, Timeouts: 3, Since: t0, RestsUntil: t0.Add(30 * time.Second)})
	b.wantMany("production", 1, compile.NewCode, t0)
	b.offers(compile.Offer{Worker: worker1, Rows: 9}, "production-00")
	late := t0.Add(30 * time.Second)
	b.offers(compile.Offer{Worker: worker1, Rows: 9, Now: late}, "bad-03")
	b.offers(compile.Offer{Worker: worker2, Rows: 9, Now: late}) // one at a time, of all servers
	b.giveBack(worker1, late)
	b.tooLate(1, late)
	b.slowed(compile.Slowdown{Environment: "bad", Version: v1, Timeouts: 4, Since: t0, RestsUntil: late.Add(minute)})
}

func testSlowdownEndsInTime(b bench) {
	b.wantMany("bad", 9, compile.Waited, t0)
	b.tooLate(3, t0)
	c := b.offers(compile.Offer{Worker: worker1, Rows: 9, Now: t0.Add(minute)}, "bad-03")[0]
	b.finish(asDone(c, "x", t0.Add(minute)))
	b.slowed()
	b.offers(compile.Offer{Worker: worker1, Rows: 2, Now: t0.Add(minute)}, "bad-04", "bad-05")
}

func testSlowdownEndsWithOtherCode(b bench) {
	b.wantMany("bad", 5, compile.Waited, t0)
	b.tooLate(3, t0)
	b.want(compile.Want{Node: "p", Environment: "bad", Version: v2, Priority: compile.Previewing, At: t0}) // a preview says nothing of catalogs
	w := compile.Want{Node: "new", Environment: "bad", Version: v1, Priority: compile.Waited, At: t0}
	b.want(w)
	b.slowed(compile.Slowdown{Environment: "bad", Version: v1, Timeouts: 3, Since: t0, RestsUntil: t0.Add(30 * time.Second)})
	w.Version = v2
	b.want(w)
	b.slowed()
	b.offers(compile.Offer{Worker: worker1, Rows: 3}, "new", "new", "bad-03")
}

func testSlowdownOfPreviews(b bench) {
	b.wantMany("bad", 5, compile.Previewing, t0)
	b.tooLate(3, t0)
	b.slowed(compile.Slowdown{Environment: "bad", Apart: true, Version: v1, Timeouts: 3, Since: t0, RestsUntil: t0.Add(30 * time.Second)})
	b.want(compile.Want{Node: "catalog", Environment: "bad", Version: v1, Priority: compile.Waited, At: t0})
	b.offers(compile.Offer{Worker: worker1, Rows: 9}, "catalog")
}
