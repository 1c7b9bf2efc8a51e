package compiletest

import (
	"fmt"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

func testLeaseOrder(b bench) {
	for i, w := range []struct {
		node     fleet.Certname
		priority compile.Priority
		age      time.Duration
	}{
		{"refresh-old", compile.Background, time.Hour},
		{"waited-young", compile.Waited, 0},
		{"waited-old", compile.Waited, minute},
		{"code", compile.NewCode, 2 * time.Hour},
		{"waited-young-too", compile.Waited, 0},
	} {
		b.want(compile.Want{Node: w.node, Environment: env, Version: v1, FactsSeq: int64(i), Priority: w.priority, At: t0.Add(-w.age)})
	}
	var got []fleet.Certname
	for _, n := range []int{0, 2, 2, 2, 2} {
		for _, c := range b.lease(worker1, n) {
			if c.State != compile.Leased || c.LeasedBy != worker1 || !c.LeasedUntil.Equal(t0.Add(minute)) || c.Attempts != 1 {
				b.t.Errorf("a lease is %+v", c)
			}
			same(b.t, b.row(c.ID), c)
			got = append(got, c.Node)
		}
	}
	want := []fleet.Certname{"waited-old", "waited-young", "waited-young-too", "code", "refresh-old"}
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Errorf("order of leases (-want +got):\n%s", diff)
	}
}

func testLeaseCeiling(b bench) {
	w := ask("a")
	w.Priority = compile.Background
	b.want(w)
	w = ask("b")
	w.Priority = compile.NewCode
	b.want(w)
	cs, err := b.Queue.Lease(b.t.Context(), offer(worker1, 10, compile.NewCode))
	if err != nil || len(cs) != 1 || cs[0].Node != "b" {
		b.t.Errorf("Lease up to new code gave %+v, %v; want b only", cs, err)
	}
}

func testLeaseSetsFacts(b bench) {
	b.SetFacts("a", 7)
	b.want(ask("a"))
	b.want(ask("factless"))
	for _, c := range b.lease(worker1, 2) {
		want := map[fleet.Certname]int64{"a": 7, "factless": 1}[c.Node]
		if c.FactsSeq != want || b.row(c.ID).FactsSeq != want {
			b.t.Errorf("%s was leased with facts %d, want %d", c.Node, c.FactsSeq, want)
		}
	}
}

func testLeaseIsExclusive(b bench) {
	const rows, workers = 40, 4
	for i := range rows {
		b.want(ask(fleet.Certname(fmt.Sprintf("n%02d", i))))
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	owners := map[int64]string{}
	for i := range workers {
		worker := fmt.Sprintf("w%d", i)
		wg.Go(func() {
			for {
				cs, err := b.Queue.Lease(b.t.Context(), offer(worker, 3, all))
				if err != nil {
					b.t.Errorf("Lease: %v", err)
					return
				}
				if len(cs) == 0 {
					return
				}
				mu.Lock()
				for _, c := range cs {
					if other, twice := owners[c.ID]; twice {
						b.t.Errorf("row %d is leased by %s and %s", c.ID, other, worker)
					}
					owners[c.ID] = worker
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(owners) != rows {
		b.t.Errorf("%d of %d rows were leased", len(owners), rows)
	}
}

func testWantIsOneRow(b bench) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	ids := map[int64]bool{}
	for i := range 8 {
		wg.Go(func() {
			w := ask("a")
			w.FactsSeq = int64(i)
			c, err := b.Queue.Want(b.t.Context(), w)
			if err != nil {
				b.t.Errorf("Want: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			ids[c.ID] = true
		})
	}
	wg.Wait()
	if len(ids) != 1 {
		b.t.Errorf("eight wants at once gave %d rows", len(ids))
	}
	for id := range ids {
		if got := b.row(id).FactsSeq; got != 7 {
			b.t.Errorf("the row has facts %d, want the highest, 7", got)
		}
	}
}

func testFinishStores(b bench) {
	b.want(ask("a"))
	c := b.leaseOne(worker1)
	c.FactsSeq = 4 // the compiler read newer facts than the lease saw
	c = asDone(c, "a", t0.Add(minute))
	b.finish(c)
	same(b.t, b.row(c.ID), c)
	b.depth(0, 0, 0, t0)
}

func testFinishConflicts(b bench) {
	wanted := b.want(ask("a"))
	refuse := func(why string, c compile.Compilation) {
		b.t.Helper()
		if err := b.Queue.Finish(b.t.Context(), asDone(c, "a", t0)); fault.Of(err) != fault.Conflict {
			b.t.Errorf("Finish of %s: %v, want Conflict", why, err)
		}
	}
	wanted.LeasedBy = worker1
	refuse("a row that is only wanted", wanted)
	c := b.leaseOne(worker1)
	other := c
	other.LeasedBy = worker2
	refuse("somebody else's lease", other)
	b.giveBack(worker1, t0)
	refuse("a returned lease", c)
	second := b.leaseOne(worker1)
	refuse("the lease before this one", c)
	b.finish(asDone(second, "a", t0))
	refuse("a finished row", second)
	second.ID += 1000
	refuse("a row that is not there", second)
}

func testRenew(b bench) {
	for _, node := range []fleet.Certname{"a", "b", "c"} {
		b.want(ask(node))
	}
	mine, other := b.lease(worker1, 2), b.leaseOne(worker2)
	until := t0.Add(10 * minute)
	held, err := b.Queue.Renew(b.t.Context(), worker1, []int64{mine[1].ID, other.ID, mine[0].ID, 99999}, until)
	if err != nil {
		b.t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{mine[0].ID, mine[1].ID}, held); diff != "" {
		b.t.Errorf("held leases (-want +got):\n%s", diff)
	}
	if got := b.row(mine[0].ID).LeasedUntil; !got.Equal(until) {
		b.t.Errorf("a renewed lease runs until %s, want %s", got, until)
	}
	if n := b.giveBack("", t0.Add(5*minute)); n != 1 {
		b.t.Errorf("%d leases ran out, want 1", n)
	}
	if held, err := b.Queue.Renew(b.t.Context(), worker1, nil, until); err != nil || len(held) != 0 {
		b.t.Errorf("Renew of nothing: %v, %v", held, err)
	}
}

func testReturnExpired(b bench) {
	first := b.want(ask("a"))
	c := b.leaseOne(worker1)
	if n := b.giveBack("", t0.Add(minute-time.Second)); n != 0 {
		b.t.Errorf("%d leases returned before their time", n)
	}
	if n := b.giveBack("", t0.Add(minute)); n != 1 {
		b.t.Errorf("%d leases returned, want 1", n)
	}
	want := first
	want.Attempts = 1
	same(b.t, b.row(c.ID), want)
	if again := b.leaseOne(worker2); again.ID != c.ID || again.Attempts != 2 {
		b.t.Errorf("the second lease is %+v", again)
	}
}

// The clock that leased a row was ahead, and is right again: its worker may be gone, and nobody waits for that clock's time.
func testReturnOfAClockAhead(b bench) {
	b.want(ask("a"))
	b.leaseOne(worker1)
	ahead := time.Hour
	if n := b.giveBack("", t0.Add(minute-compile.LongestLease)); n != 0 {
		b.t.Errorf("%d leases returned that the longest allows", n)
	}
	if n := b.giveBack("", t0.Add(-ahead)); n != 1 {
		b.t.Errorf("%d leases returned, want the one of a clock that was %s ahead", n, ahead)
	}
}

func testReturnWorker(b bench) {
	b.want(ask("a"))
	b.want(ask("b"))
	mine := b.leaseOne(worker1)
	theirs := b.leaseOne(worker2)
	if n := b.giveBack(worker1, t0); n != 1 {
		b.t.Errorf("%d leases returned, want 1", n)
	}
	if mineIs, theirsIs := b.row(mine.ID).State, b.row(theirs.ID).State; mineIs != compile.Wanted || theirsIs != compile.Leased {
		b.t.Errorf("after the return mine is %s and theirs %s", mineIs, theirsIs)
	}
}

func testReturnFailsAfterMaxAttempts(b bench) {
	b.want(ask("a"))
	var c compile.Compilation
	for range tries {
		c = b.leaseOne(worker1)
		b.giveBack(worker1, t0.Add(minute))
	}
	got := b.row(c.ID)
	if got.State != compile.Failed || got.Err == nil || got.Err.Cause != compile.CauseCrash || !got.FinishedAt.Equal(t0.Add(minute)) {
		b.t.Errorf("after %d leases the row is %+v", tries, got)
	}
	if got.Err != nil && got.Err.Message == "" {
		b.t.Error("the error says nothing; use compile.Exhausted")
	}
	if cs := b.lease(worker1, 1); len(cs) != 0 {
		b.t.Errorf("a failed row was leased again: %+v", cs)
	}
}

func testReturnFoldsIntoWanted(b bench) {
	b.want(ask("a"))
	leased := b.leaseOne(worker1)
	w := ask("a")
	w.FactsSeq, w.Priority, w.At, w.Transaction = 2, compile.Background, t0.Add(minute), ""
	w.Trusted = nil
	wanted := b.want(w)
	if n := b.giveBack(worker1, t0); n != 1 {
		b.t.Errorf("%d leases returned, want 1", n)
	}
	b.gone(leased.ID)
	got := b.row(wanted.ID)
	if got.State != compile.Wanted || got.FactsSeq != 2 || got.Priority != compile.Waited || !got.WantedAt.Equal(t0) || got.Attempts != 1 {
		b.t.Errorf("the wanted row is %+v; want facts 2, priority, age and attempts of the one that returned", got)
	}
	if got.Transaction != "t-a" || len(got.Trusted) == 0 {
		b.t.Errorf("transaction %q and trusted data %s got lost", got.Transaction, got.Trusted)
	}
	b.depth(1, 0, 0, t0)
}

func testReturnFoldsTwoLeases(b bench) {
	b.want(ask("a"))
	b.leaseOne(worker1)
	w := ask("a")
	w.FactsSeq = 2
	b.want(w)
	b.leaseOne(worker1)
	b.giveBack(worker1, t0)
	b.depth(1, 0, 0, t0)
	if got := b.leaseOne(worker1); got.FactsSeq != 2 || got.Attempts != 2 {
		b.t.Errorf("what is left of two leases is %+v, want facts 2 and attempt 2", got)
	}
}

func testReturnFoldsIntoLater(b bench) {
	b.want(ask("a"))
	first := b.leaseOne(worker1)
	w := ask("a")
	w.FactsSeq, w.Transaction = 2, "t-later"
	b.want(w)
	second := b.leaseOne(worker2)
	b.giveBack(worker1, t0)
	b.giveBack(worker2, t0)
	b.gone(first.ID)
	if got := b.row(second.ID); got.State != compile.Wanted || got.FactsSeq != 2 || got.Transaction != "t-a" || got.Attempts != 1 {
		b.t.Errorf("what is left of two leases is %+v, want facts 2, attempt 1 and the transaction of the one that was wanted", got)
	}
}

func testCompilationNotFound(b bench) { b.gone(12345) }

func testDepth(b bench) {
	b.depth(0, 0, 0, t0)
	w := ask("a")
	w.At = t0.Add(-minute)
	b.want(w)
	b.want(ask("b"))
	b.depth(2, 0, minute, t0)
	c := b.leaseOne(worker1)
	b.depth(1, 1, time.Second, t0.Add(time.Second))
	b.finish(asDone(c, "a", t0))
	b.lease(worker1, 1)
	b.depth(0, 1, 0, t0.Add(minute))
}

func testPrune(b bench) {
	var ids []int64
	for i := range 3 {
		w := ask("a")
		w.FactsSeq = int64(i + 1)
		ids = append(ids, b.done(w, "a", t0.Add(time.Duration(i)*minute)).ID)
	}
	lone := b.done(ask("b"), "b", t0).ID
	open := b.want(ask("c")).ID
	n, err := b.Queue.Prune(b.t.Context(), t0.Add(minute))
	if err != nil || n != 1 {
		b.t.Errorf("Prune: %d, %v; want 1", n, err)
	}
	b.gone(ids[0])
	for _, id := range []int64{ids[1], ids[2], lone, open} {
		b.row(id)
	}
	n, err = b.Queue.Prune(b.t.Context(), t0.Add(time.Hour))
	if err != nil || n != 1 {
		b.t.Errorf("the second Prune: %d, %v; want 1", n, err)
	}
	b.gone(ids[1])
	b.row(ids[2])
}

func testDistinct(b bench) {
	at := func(i int) time.Time { return t0.Add(time.Duration(i) * minute) }
	w := ask("a")
	b.done(w, "old", at(1))
	w.FactsSeq = 2
	a := b.done(w, "one", at(2))
	b.done(ask("twin"), "shared", at(3))
	twin := b.done(ask("twin2"), "shared", at(4))
	other := ask("elsewhere")
	other.Environment = "testing"
	b.done(other, "two", at(5))
	b.want(ask("broken"))
	c := b.leaseOne(worker1)
	c.State, c.FinishedAt, c.Err = compile.Failed, at(6), compile.Exhausted(1)
	b.finish(c)

	got, err := b.History.Distinct(b.t.Context(), env, 10)
	if err != nil {
		b.t.Fatal(err)
	}
	if len(got) != 2 {
		b.t.Fatalf("Distinct gave %d rows, want 2: %+v", len(got), got)
	}
	same(b.t, got[0], twin)
	same(b.t, got[1], a)
	if got, err := b.History.Distinct(b.t.Context(), env, 1); err != nil || len(got) != 1 || got[0].ID != twin.ID {
		b.t.Errorf("Distinct of one: %+v, %v", got, err)
	}
}
