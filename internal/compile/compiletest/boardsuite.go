package compiletest

import (
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

func boardTests() []suiteTest {
	return []suiteTest{
		{"Counts", testCounts},
		{"List", testList},
		{"Troubles", testTroubles},
		{"Record", testRecord},
		{"Ended", testEnded},
		{"LastFailure", testLastFailure},
	}
}

func (b bench) board() compile.Board {
	b.t.Helper()
	board, ok := b.Queue.(compile.Board)
	if !ok {
		b.t.Fatal("the queue cannot be shown")
	}
	return board
}

func (b bench) fail(w compile.Want, order string, at time.Time) compile.Compilation {
	b.t.Helper()
	b.want(w)
	c := b.leaseOne(worker1)
	c.State, c.FinishedAt, c.Err = compile.Failed, at, &compile.Error{Cause: compile.CauseCode, Message: "no such class", File: "site.pp", Line: 3}
	if order != "" {
		c.Order = fleet.DigestOf([]byte(order))
	}
	b.finish(c)
	return c
}

func testCounts(b bench) {
	b.done(ask("done"), "c", t0)
	b.wantMany("a", 3, compile.NewCode, t0)
	b.wantMany("b", 1, compile.NewCode, t0)
	b.wantMany("a-slow", 1, compile.Waited, t0.Add(minute))
	first := b.leases(worker1, 3, "a-slow-00", "a-00", "b-00")
	if err := b.Queue.Rest(b.t.Context(), first[2], t0, "no room"); err != nil {
		b.t.Fatal(err)
	}
	got, err := b.board().Counts(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	want := []compile.Count{
		{Priority: compile.Waited, Environment: "a-slow", Running: 1},
		{Priority: compile.NewCode, Environment: "a", Wanted: 2, Running: 1, Oldest: t0.Add(time.Second)},
		{Priority: compile.NewCode, Environment: "b", Resting: 1},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
		b.t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func testList(b bench) {
	done := b.done(ask("a"), "a", t0)
	failed := b.fail(ask("b"), "", t0)
	other := ask("a")
	other.Environment, other.Transaction = "testing", ""
	leased := b.want(other)
	b.leaseOne(worker1)
	wanted := b.want(ask("c"))
	for name, tt := range map[string]struct {
		f    compile.Filter
		want []int64
	}{
		"all":         {compile.Filter{Limit: 10}, []int64{wanted.ID, leased.ID, failed.ID, done.ID}},
		"page":        {compile.Filter{Limit: 2}, []int64{wanted.ID, leased.ID}},
		"next page":   {compile.Filter{Limit: 2, Before: leased.ID}, []int64{failed.ID, done.ID}},
		"node":        {compile.Filter{Limit: 10, Node: "a"}, []int64{leased.ID, done.ID}},
		"environment": {compile.Filter{Limit: 10, Environment: "testing"}, []int64{leased.ID}},
		"state":       {compile.Filter{Limit: 10, State: compile.Failed}, []int64{failed.ID}},
		"both":        {compile.Filter{Limit: 10, Node: "a", State: compile.Done}, []int64{done.ID}},
		"ids":         {compile.Filter{Limit: 10, IDs: []int64{done.ID, wanted.ID, 99999}}, []int64{wanted.ID, done.ID}},
		"no ids":      {compile.Filter{Limit: 10, IDs: []int64{}}, nil},
	} {
		rows, err := b.board().List(b.t.Context(), tt.f)
		if err != nil {
			b.t.Fatal(err)
		}
		var got []int64
		for _, c := range rows {
			got = append(got, c.ID)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			b.t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	rows, err := b.board().List(b.t.Context(), compile.Filter{Limit: 1, State: compile.Failed})
	if err != nil || len(rows) != 1 {
		b.t.Fatal(rows, err)
	}
	same(b.t, rows[0], failed)
}

// testTroubles: what waits since it could not be tried is counted with its reason, whether it still rests or waits for a worker again.
func testTroubles(b bench) {
	troubles := func(most int, want ...compile.Trouble) {
		b.t.Helper()
		got, err := b.board().Troubles(b.t.Context(), most)
		if err != nil {
			b.t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) }), cmpopts.EquateEmpty()); diff != "" {
			b.t.Errorf("troubles (-want +got):\n%s", diff)
		}
	}
	b.done(ask("done"), "c", t0)
	b.wantMany("a", 5, compile.NewCode, t0)
	rows := b.leases(worker1, 4, "a-00", "a-01", "a-02", "a-03")
	troubles(5)
	for i, why := range []string{"the disk is full", "the store is away", "the store is away"} {
		if err := b.Queue.Rest(b.t.Context(), rows[i], t0.Add(time.Duration(10-i)*minute), why); err != nil {
			b.t.Fatal(err)
		}
	}
	disk := compile.Trouble{Text: "the disk is full", Rows: 1, Next: t0.Add(10 * minute)}
	troubles(5, compile.Trouble{Text: "the store is away", Rows: 2, Next: t0.Add(8 * minute)}, disk)
	for name, tt := range map[string]struct {
		f    compile.Filter
		want []int64
	}{
		"runs":           {compile.Filter{Limit: 9, Runs: true}, []int64{rows[3].ID}},
		"rests":          {compile.Filter{Limit: 9, Rests: true}, []int64{rows[2].ID, rows[1].ID, rows[0].ID}},
		"leased, rests":  {compile.Filter{Limit: 1, State: compile.Leased, Rests: true}, []int64{rows[2].ID}},
		"rests, of none": {compile.Filter{Limit: 9, Node: rows[3].Node, Rests: true}, nil},
	} {
		listed, err := b.board().List(b.t.Context(), tt.f)
		var got []int64
		for _, c := range listed {
			got = append(got, c.ID)
		}
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			b.t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	b.giveBack("", t0.Add(8*minute))
	troubles(5, compile.Trouble{Text: "the store is away", Rows: 2}, disk)
	troubles(1, compile.Trouble{Text: "the store is away", Rows: 2})
	b.finish(asDone(b.leaseOne(worker1), "a", t0)) // the one that came back is the oldest
	troubles(5, disk, compile.Trouble{Text: "the store is away", Rows: 1, Next: t0.Add(9 * minute)})
}

func testRecord(b bench) {
	b.want(ask("a"))
	c := asDone(b.leaseOne(worker1), "a", t0)
	c.Inputs, c.Logs = inputsOf("x.pp"), []compile.Log{{Level: "warning", Message: "deprecated", File: "site.pp", Line: 2}}
	b.finish(c)
	got, err := b.board().Record(b.t.Context(), c.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	same(b.t, got, c)
	bare := b.fail(ask("b"), "order", t0)
	b.want(ask("c"))
	quiet := asDone(b.leaseOne(worker1), "c", t0)
	quiet.Cost.CPU = time.Second
	b.finish(quiet)
	b.want(ask("d"))
	pointing := asDone(b.leaseOne(worker1), "d", t0)
	pointing.Cost.CPU = 0
	b.finish(pointing)
	logs, err := b.board().Logs(b.t.Context(), []int64{99999, pointing.ID, quiet.ID, c.ID})
	if diff := cmp.Diff(map[int64][]compile.Log{c.ID: c.Logs, quiet.ID: nil}, logs); diff != "" || err != nil {
		b.t.Errorf("logs (-want +got), %v:\n%s", err, diff)
	}
	if logs, err = b.board().Logs(b.t.Context(), nil); len(logs) != 0 || err != nil {
		b.t.Errorf("logs of none: %v, %v", logs, err)
	}
	if got, err = b.board().Record(b.t.Context(), bare.ID); err != nil || got.Inputs != nil || got.Logs != nil {
		b.t.Errorf("a failed one: %+v, %v", got, err)
	}
	same(b.t, got, bare)
	if _, err := b.board().Record(b.t.Context(), 99999); fault.Of(err) != fault.NotFound {
		b.t.Errorf("one that is not there: %v, want NotFound", err)
	}
}

func testEnded(b bench) {
	b.done(ask("early"), "x", t0.Add(-time.Second))
	b.done(ask("a"), "a", t0)
	b.fail(ask("b"), "", t0.Add(minute))
	b.want(ask("c"))
	reused := asDone(b.leaseOne(worker1), "a", t0)
	reused.Cost = compile.Cost{}
	b.finish(reused)
	other := ask("d")
	other.Environment = "testing"
	b.done(other, "d", t0)
	got, err := b.board().Ended(b.t.Context(), t0)
	if err != nil {
		b.t.Fatal(err)
	}
	want := []compile.Ended{{Environment: env, Compiled: 1, Reused: 1, Failed: 1}, {Environment: "testing", Compiled: 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Errorf("ended (-want +got):\n%s", diff)
	}
}

func testLastFailure(b bench) {
	none := func(node fleet.Certname, v fleet.Digest) {
		b.t.Helper()
		if c, err := b.History.LastFailure(b.t.Context(), node, env, v); fault.Of(err) != fault.NotFound || err == nil {
			b.t.Errorf("last failure of %s: %+v, %v, want NotFound", node, c, err)
		}
	}
	none("a", v1)
	w := ask("a")
	w.Transaction = ""
	b.fail(w, "one", t0)
	second := b.fail(w, "two", t0.Add(minute))
	b.fail(w, "", t0.Add(2*minute)) // was not compiled
	b.done(w, "x", t0.Add(3*minute))
	got, err := b.History.LastFailure(b.t.Context(), "a", env, v1)
	if err != nil {
		b.t.Fatal(err)
	}
	same(b.t, got, second)
	none("a", v2)
	none("b", v1)
}
