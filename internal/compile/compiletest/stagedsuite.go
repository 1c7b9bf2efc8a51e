package compiletest

import (
	"errors"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// staged is a want ahead of time: nobody's run asks for it.
func staged(node fleet.Certname) compile.Want {
	w := ask(node)
	w.Transaction, w.Priority, w.Staged = "", compile.NewCode, true
	return w
}

func testStagedJoinsStaged(b bench) {
	first := b.want(staged("a"))
	if !first.Staged || !b.row(first.ID).Staged {
		b.t.Fatalf("a staged want became %+v", first)
	}
	if again := b.want(staged("a")); again.ID != first.ID || !again.Staged {
		b.t.Errorf("the same again gave %+v, want row %d, staged", again, first.ID)
	}
	c := b.leaseOne(worker1)
	if joined := b.want(staged("a")); joined.ID != c.ID || !joined.Staged {
		b.t.Errorf("who joins the leased row gets %+v, want it staged", joined)
	}
	c = asDone(c, "a", t0)
	b.finish(c)
	same(b.t, b.row(c.ID), c)
}

func testStagedJoinedByPlain(b bench) {
	first := b.want(staged("a"))
	if joined := b.want(ask("a")); joined.ID != first.ID || joined.Staged {
		b.t.Errorf("a plain want made %+v, want row %d, plain", joined, first.ID)
	}
	if joined := b.want(staged("a")); joined.ID != first.ID || joined.Staged || b.row(first.ID).Staged {
		b.t.Errorf("a staged want made a plain row staged: %+v", joined)
	}
}

func testStagedLeasedThenWantedPlain(b bench) {
	b.want(staged("a"))
	leased := b.leaseOne(worker1)
	if joined := b.want(ask("a")); joined.ID != leased.ID || joined.Staged {
		b.t.Fatalf("a plain want made %+v, want the leased row %d, plain", joined, leased.ID)
	}
	done := asDone(leased, "a", t0)
	err := b.Queue.Finish(b.t.Context(), done)
	if fault.Of(err) != fault.Conflict || !errors.Is(err, compile.ErrUnstaged) {
		b.t.Errorf("finish it staged: %v, want a Conflict that is ErrUnstaged", err)
	}
	if got := b.row(leased.ID); got.State != compile.Leased {
		b.t.Fatalf("after that it is %+v, want it leased still", got)
	}
	done.Staged = false
	b.finish(done)

	b.want(staged("b"))
	failed := b.leaseOne(worker1)
	b.want(ask("b"))
	failed.State, failed.FinishedAt, failed.Err = compile.Failed, t0, compile.Exhausted(1)
	b.finish(failed) // no catalog: staged or plain is the same
	if got := b.row(failed.ID); got.State != compile.Failed || got.Staged {
		b.t.Errorf("the failed row is %+v, want it plain", got)
	}

	b.want(staged("c"))
	lost := b.leaseOne(worker1)
	lost.Attempts++
	if err := b.Queue.Finish(b.t.Context(), asDone(lost, "c", t0)); fault.Of(err) != fault.Conflict || errors.Is(err, compile.ErrUnstaged) {
		b.t.Errorf("finish a lease that is not held: %v, want a Conflict that is not ErrUnstaged", err)
	}
}

func testStagedDoesNotAnswerPlain(b bench) {
	w := staged("a")
	w.Transaction = "t-a"
	first := b.done(w, "a", t0)
	if again := b.want(w); again.ID != first.ID {
		b.t.Errorf("a staged want of the same transaction gave row %d, want %d", again.ID, first.ID)
	}
	if plain := b.want(ask("a")); plain.ID == first.ID || plain.State != compile.Wanted || plain.Staged {
		b.t.Errorf("a plain want was answered by %+v", plain)
	}
}

func testStagedIsReturnedStaged(b bench) {
	b.want(staged("a"))
	c := b.leaseOne(worker1)
	b.giveBack(worker1, t0)
	if got := b.row(c.ID); got.State != compile.Wanted || !got.Staged {
		b.t.Errorf("the returned row is %+v, want it staged", got)
	}
	fold := func(first, second compile.Want) compile.Compilation {
		b.t.Helper()
		gone := b.want(first).ID
		b.lease(worker1, 10)
		second.FactsSeq = 2
		kept := b.want(second).ID
		b.giveBack(worker1, t0)
		if !first.Staged && second.Staged { // the plain one's place is kept
			gone, kept = kept, gone
		}
		b.gone(gone)
		return b.row(kept)
	}
	if got := fold(staged("b"), staged("b")); !got.Staged {
		b.t.Errorf("two staged rows folded into %+v", got)
	}
	if got := fold(staged("c"), ask("c")); got.Staged {
		b.t.Errorf("a staged row folded into a plain one made %+v", got)
	}
	if got := fold(ask("d"), staged("d")); got.Staged {
		b.t.Errorf("a plain row folded into a staged one made %+v", got)
	}
}

// What is compiled with a reach is nobody else's: neither wanted nor leased rows are joined across reaches, and what is
// known of an environment's compilations leaves it out.
func testReachesAreApart(b bench) {
	w := staged("a")
	w.Priority = compile.Previewing
	whole := b.want(w)
	w.Reach = `certname = "a"`
	narrow := b.want(w)
	if narrow.ID == whole.ID || narrow.Reach != w.Reach || whole.Reach != "" {
		b.t.Fatalf("with a reach: %+v, without: %+v", narrow, whole)
	}
	if again := b.want(w); again.ID != narrow.ID || b.row(narrow.ID).Reach != w.Reach {
		b.t.Errorf("the same again gave %+v, want row %d", again, narrow.ID)
	}
	w.Reach = `certname = "b"`
	if other := b.want(w); other.ID == narrow.ID || other.ID == whole.ID {
		b.t.Errorf("another reach joined %+v", other)
	}
	if plain := b.want(ask("a")); plain.ID == narrow.ID || plain.Reach != "" {
		b.t.Errorf("a plain want joined %+v", plain)
	}
	leased, err := b.Queue.Lease(b.t.Context(), offer(worker1, 9, compile.Background))
	if err != nil || len(leased) != 3 {
		b.t.Fatalf("leased %+v, %v, want three rows", leased, err)
	}
	n, err := b.Queue.ReturnLeases(b.t.Context(), worker1, t0, 9)
	if err != nil || n != 3 || b.row(narrow.ID).State != compile.Wanted || b.row(narrow.ID).Reach != narrow.Reach {
		b.t.Fatalf("%d came back, %v, with %+v", n, err, b.row(narrow.ID))
	}
	leased, err = b.Queue.Lease(b.t.Context(), offer(worker1, 9, compile.Background))
	if err != nil || len(leased) != 3 {
		b.t.Fatalf("leased %+v, %v, want three rows again", leased, err)
	}
	for _, c := range leased {
		if c.Reach == "" {
			b.finish(asDone(c, "whole", t0))
			continue
		}
		c = asDone(c, "narrow", t0.Add(minute))
		if c.ID != narrow.ID {
			c.State, c.Catalog, c.UUID, c.Err, c.Order = compile.Failed, "", "", compile.Exhausted(1), "order"
		}
		b.finish(c)
	}
	if distinct, err := b.History.Distinct(b.t.Context(), env, 9); err != nil || len(distinct) != 1 || distinct[0].Reach != "" {
		b.t.Errorf("distinct catalogs: %+v, %v, want only what saw everything", distinct, err)
	}
	if c, err := b.History.LastFailure(b.t.Context(), "a", env, v1); fault.Of(err) != fault.NotFound {
		b.t.Errorf("last failure: %+v, %v, want none", c, err)
	}
}
