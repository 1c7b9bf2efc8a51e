package compiletest

import (
	"encoding/json"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
)

// testWantedLastHasTheHighestID goes back and forth between versions: what is wanted last must be able to become the newest catalog.
func testWantedLastHasTheHighestID(b bench) {
	of := func(node fleet.Certname, version fleet.Digest) compile.Want {
		return compile.Want{Node: node, Environment: env, Version: version, FactsSeq: 1, Priority: compile.NewCode, At: t0}
	}
	first := b.want(of("a", v1))
	second := b.want(of("a", v2))
	w := of("a", v1)
	w.Priority, w.FactsSeq, w.Transaction, w.Trusted = compile.Waited, 2, "t-later", json.RawMessage(`{"authenticated":"remote"}`)
	third := b.want(w)
	want := first
	want.ID, want.Priority, want.FactsSeq, want.Transaction, want.Trusted = third.ID, w.Priority, w.FactsSeq, w.Transaction, w.Trusted
	same(b.t, third, want)
	same(b.t, b.row(third.ID), want)
	if third.ID <= second.ID {
		b.t.Errorf("what was wanted last has ID %d, below %d", third.ID, second.ID)
	}
	b.gone(first.ID)
	if again := b.want(w); again.ID != third.ID {
		b.t.Errorf("wanted again it has ID %d, had %d", again.ID, third.ID)
	}
	b.depth(2, 0, 0, t0)

	// A leased row is not joined then.
	leased := b.leaseOne(worker1) // the one that somebody waits for
	if leased.ID != third.ID {
		b.t.Fatalf("row %d is leased, want %d", leased.ID, third.ID)
	}
	last := b.want(of("a", v2)) // overtaken by the leased one
	again := b.want(w)
	if last.ID <= third.ID || again.ID <= last.ID || again.State != compile.Wanted {
		b.t.Errorf("wanted one after the other are %d, %d and %d (%s)", third.ID, last.ID, again.ID, again.State)
	}
	b.finish(asDone(leased, "old", t0))

	// What becomes no newest catalog overtakes nothing: staged rows, and those that failed.
	plain := b.want(of("b", v1))
	aside := of("b", v2)
	aside.Staged = true
	b.want(aside)
	if got := b.want(of("b", v1)); got.ID != plain.ID {
		b.t.Errorf("behind a staged row, row %d became %d", plain.ID, got.ID)
	}
	b.want(of("d", v2))
	second = b.want(of("d", v1))
	aside.Node = "d"
	if got := b.want(aside); got.ID >= second.ID {
		b.t.Errorf("a staged want made row %d of one that was wanted before row %d", got.ID, second.ID)
	}
	row := b.want(of("c", v1))
	b.want(of("c", v2))
	for _, c := range b.lease(worker1, 10) {
		if c.Node == "c" && c.Version == v2 {
			c.State, c.FinishedAt, c.Err = compile.Failed, t0, compile.Exhausted(1)
			b.finish(c)
		}
	}
	if got := b.want(of("c", v1)); got.ID != row.ID {
		b.t.Errorf("behind a row that failed, row %d became %d", row.ID, got.ID)
	}
}
