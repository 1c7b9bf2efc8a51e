package eventtest

import (
	"testing"

	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// report is what the report of a run says.
func report(events ...pxp.RunEvent) event.Report {
	return event.Report{Environment: "production", Status: event.Changed, Version: "v1", Started: At(1), Ended: At(30), Events: events}
}

// settle settles what can be, and returns what was found.
func settle(t *testing.T, s event.Store, reportedBefore int) []event.Settlement {
	t.Helper()
	runs, err := s.Unsettled(t.Context(), At(reportedBefore), 10)
	if err != nil {
		t.Fatal(err)
	}
	var all []event.Settlement
	for _, u := range runs {
		all = append(all, event.Settle(u))
	}
	if settled, err := s.SettleRuns(t.Context(), all, At(59)); err != nil || len(settled) != len(all) {
		t.Fatalf("%d of %d runs are settled, %v", len(settled), len(all), err)
	}
	if again, err := s.Unsettled(t.Context(), At(reportedBefore), 10); err != nil || len(again) > 0 {
		t.Errorf("what was settled is not: %+v, %v", again, err)
	}
	return all
}

// reported is the events of a report as they are read back: a store of reports does not keep all of it.
func reported(events ...pxp.RunEvent) []pxp.RunEvent {
	for i := range events {
		events[i].N, events[i].Environment = 0, ""
	}
	return events
}

func madeFromReports(t *testing.T, b Backend) {
	id := b.Job("a", "x")
	again := Resource(6, event.Noop, "File", "/b")
	again.Property = "mode"
	r := report(reported(Resource(3, event.Failure, "Service", "ntp"), Resource(2, event.Success, "File", "/etc/motd"),
		Resource(4, event.Noop, "File", "/a"), Resource(5, event.Noop, "File", "/b"), again)...)
	r.Job, r.Noop = "1", true
	b.Report("a", "r", r, At(31))
	b.Report("b", "q", r, At(32)) // the job is a's
	all := settle(t, b.Store, 0)
	if len(all) != 2 || all[0].Lacked+all[0].Extra > 0 {
		t.Errorf("settled %+v", all)
	}
	rows := read(t, b.Store, event.Filter{Node: "a"})
	want := []pxp.RunEvent{
		{N: 1, Kind: pxp.RunBegan, At: At(1), Environment: "production", Noop: true},
		Resource(2, event.Success, "File", "/etc/motd"),
		Resource(3, event.Failure, "Service", "ntp"),
		Resource(4, event.Noop, "File", "/a"),
		Resource(5, event.Noop, "File", "/b"),
		again,
		{N: 7, Kind: pxp.RunEnded, At: At(30), Environment: "production", Status: event.Changed, Version: "v1", Noop: true, Pending: 2},
	}
	var got []pxp.RunEvent
	for _, e := range rows {
		got = append(got, e.RunEvent)
		if !e.Reported || e.Job != id || e.StoredAt != At(59) {
			t.Errorf("row %+v", e)
		}
	}
	same(t, "made from the report", want, got)
	if rows := read(t, b.Store, event.Filter{Node: "b"}); len(rows) != 7 || rows[0].Job != 0 {
		t.Errorf("another node's job: %+v", rows)
	}
	if taken := take(t, b.Store, 60, batch("a", "r", Begin(1), Resource(2, event.Success, "File", "/etc/motd"))); taken[0].Last < 2 || taken[0].New > 0 {
		t.Errorf("its stream came later: %+v", taken)
	}
}

func comparedWithReports(t *testing.T, b Backend) {
	file, service, late := Resource(2, event.Success, "File", "/1"), Resource(3, event.Failure, "Service", "ntp"), Resource(9, event.Success, "File", "/late")
	take(t, b.Store, 5, batch("a", "agrees", Begin(1), file, service, End(4)))
	take(t, b.Store, 5, batch("a", "differs", Begin(1), file, service, End(4)))
	take(t, b.Store, 5, batch("a", "dropped", Begin(1), pxp.RunEvent{N: 2, Kind: pxp.EventsMissing, Missing: 1, At: At(2)}, service, End(4)))
	b.Report("a", "agrees", report(reported(file, service)...), At(31))
	b.Report("a", "differs", report(reported(file, late)...), At(32))
	b.Report("a", "dropped", report(reported(file, service)...), At(33))
	all := settle(t, b.Store, 0)
	if len(all) != 3 {
		t.Fatalf("settled %+v", all)
	}
	for i, want := range []struct{ add, lacked, extra int }{{0, 0, 0}, {1, 1, 1}, {1, 0, 0}} {
		if s := all[i]; len(s.Add) != want.add || s.Lacked != want.lacked || s.Extra != want.extra {
			t.Errorf("%s: %d added, %d lacked, %d extra, want %+v", s.Run.ID, len(s.Add), s.Lacked, s.Extra, want)
		}
	}
	rows := read(t, b.Store, event.Filter{Run: "differs", Node: "a"})
	if len(rows) != 5 || rows[4].Title != "/late" || !rows[4].Reported || rows[4].N != 5 || rows[3].Reported {
		t.Errorf("rows %+v", rows)
	}
}

func reportsWait(t *testing.T, b Backend) {
	file, service := Resource(2, event.Success, "File", "/1"), Resource(3, event.Failure, "Service", "ntp")
	take(t, b.Store, 5, batch("a", "r", Begin(1), file))
	b.Report("a", "r", report(reported(file, service)...), At(31))
	if runs, err := b.Store.Unsettled(t.Context(), At(31), 10); err != nil || len(runs) > 0 {
		t.Errorf("the stream may go on: %+v, %v", runs, err)
	}
	if all := settle(t, b.Store, 32); len(all) != 1 || len(all[0].Add) != 2 {
		t.Errorf("settled %+v", all)
	}
	if rows := read(t, b.Store, event.Filter{}); len(rows) != 4 || rows[2].Title != "ntp" || rows[3].Kind != pxp.RunEnded {
		t.Errorf("rows %+v", rows)
	}
}

// changedMeanwhile has a stream go on between the look at a run and its settlement.
func changedMeanwhile(t *testing.T, b Backend) {
	file, service := Resource(2, event.Success, "File", "/1"), Resource(3, event.Failure, "Service", "ntp")
	take(t, b.Store, 5, batch("a", "r", Begin(1), file))
	b.Report("a", "r", report(reported(file, service)...), At(31))
	runs, err := b.Store.Unsettled(t.Context(), At(32), 10)
	if err != nil || len(runs) != 1 {
		t.Fatal(runs, err)
	}
	take(t, b.Store, 40, batch("a", "r", service))
	if settled, err := b.Store.SettleRuns(t.Context(), []event.Settlement{event.Settle(runs[0])}, At(41)); err != nil || len(settled) > 0 {
		t.Errorf("settled though it went on: %+v, %v", settled, err)
	}
	take(t, b.Store, 42, batch("a", "r", End(4)))
	if all := settle(t, b.Store, 0); len(all) != 1 || len(all[0].Add) > 0 {
		t.Errorf("settled %+v", all)
	}
}

// toldTwice has an agent tell all anew that it has told, and go on: it heard nothing of what was taken.
func toldTwice(t *testing.T, b Backend) {
	file, service := Resource(2, event.Success, "File", "/1"), Resource(3, event.Failure, "Service", "ntp")
	take(t, b.Store, 5, batch("a", "r", Begin(1), file))
	take(t, b.Store, 6, batch("a", "r", Begin(1), file))
	take(t, b.Store, 7, batch("a", "r", service, End(4)))
	b.Report("a", "r", report(reported(file, service)...), At(31))
	if all := settle(t, b.Store, 0); len(all) != 1 || len(all[0].Add)+all[0].Lacked+all[0].Extra > 0 {
		t.Errorf("settled %+v", all)
	}
	if rows := read(t, b.Store, event.Filter{}); len(rows) != 4 {
		t.Errorf("rows %+v", rows)
	}
}

func nothingAfterTheEnd(t *testing.T, b Backend) {
	take(t, b.Store, 5, batch("a", "r", Begin(1), End(2)))
	taken := take(t, b.Store, 6, batch("a", "r", Resource(3, event.Success, "File", "/1")))
	if taken[0].Last != 3 || taken[0].New != 0 {
		t.Errorf("taken %+v", taken)
	}
	if rows := read(t, b.Store, event.Filter{}); len(rows) != 2 {
		t.Errorf("rows %+v", rows)
	}
}
