package eventtest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Backend is a store, and what stands beside it.
type Backend struct {
	Store event.Store
	// Report stores the report of a run.
	Report func(node fleet.Certname, run string, r event.Report, at time.Time)
	// Job makes a job with one run, of this PXP transaction, on a node.
	Job func(node fleet.Certname, transaction string) int64
}

// Fake is a Backend of a Store in memory.
func Fake() Backend {
	s := NewStore()
	return Backend{Store: s, Report: s.Report, Job: s.Job}
}

// RunStore tests a store of events; each test gets an empty one.
func RunStore(t *testing.T, open func(t *testing.T) Backend) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Backend){
		"stored as sent":                      storedAsSent,
		"once and without gaps":               onceWithoutGaps,
		"numbers by commit":                   numbersByCommit,
		"filtered":                            filtered,
		"linked to jobs":                      linkedToJobs,
		"pruned":                              pruned,
		"made from reports":                   madeFromReports,
		"compared with reports":               comparedWithReports,
		"reports wait for streams":            reportsWait,
		"changed while settled":               changedMeanwhile,
		"what was told twice is settled once": toldTwice,
		"nothing after it is ended":           nothingAfterTheEnd,
		"of agents":                           ofAgents,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// At is the n-th second of the tests.
func At(n int) time.Time { return time.Date(2026, 11, 22, 1, 0, n, 123456000, time.UTC) }

// Begin is the event with which a run begins.
func Begin(n int) pxp.RunEvent {
	return pxp.RunEvent{N: n, Kind: pxp.RunBegan, At: At(n), Environment: "production"}
}

// Resource is an event of a resource.
func Resource(n int, status, kind, title string) pxp.RunEvent {
	return pxp.RunEvent{
		N: n, Kind: pxp.ResourceEvent, At: At(n), Environment: "production", Status: status, Type: kind, Title: title, Property: "ensure",
		Message: "naïve \"text\"", Old: jsontext.Value(`"absent"`), New: jsontext.Value(`["a",1]`), File: "/m/init.pp", Line: 7,
		Containment: []string{"Stage[main]", "Main"}, Corrective: true, Name: "ensure_changed",
	}
}

// End is the end of a run.
func End(n int) pxp.RunEvent {
	return pxp.RunEvent{N: n, Kind: pxp.RunEnded, At: At(n), Environment: "production", Status: event.Changed, Version: "v1"}
}

func take(t *testing.T, s event.Store, now int, batches ...event.Batch) []event.Taken {
	t.Helper()
	taken, err := s.TakeEvents(t.Context(), batches, At(now))
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

func read(t *testing.T, s event.Store, f event.Filter) []event.Event {
	t.Helper()
	if f.Limit == 0 {
		f.Limit = 1000
	}
	rows, err := s.Events(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func batch(node, run string, events ...pxp.RunEvent) event.Batch {
	return event.Batch{Node: fleet.Certname(node), Run: run, Events: events}
}

func storedAsSent(t *testing.T, b Backend) {
	sent := []pxp.RunEvent{
		Begin(1), Resource(2, event.Success, "File", "/etc/motd"), {N: 3, Kind: pxp.EventsMissing, Missing: 4, At: At(3), Environment: "production"}, End(7),
	}
	same(t, "taken", []event.Taken{{Node: "a", Run: "r", Last: 7, New: 4}}, take(t, b.Store, 9, batch("a", "r", sent...)))
	var want []event.Event
	for i, e := range sent {
		want = append(want, event.Event{Number: int64(i + 1), Node: "a", Run: "r", StoredAt: At(9), RunEvent: e})
	}
	same(t, "rows", want, read(t, b.Store, event.Filter{}))
	span, err := b.Store.EventSpan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "span", event.Span{First: 1, Last: 4}, span)
}

func onceWithoutGaps(t *testing.T, b Backend) {
	last := func(events ...pxp.RunEvent) (int, int) {
		taken := take(t, b.Store, 1, batch("a", "r", events...))
		return taken[0].Last, taken[0].New
	}
	for i, step := range []struct {
		events []pxp.RunEvent
		last   int
		fresh  int
	}{
		{[]pxp.RunEvent{Resource(3, event.Success, "File", "/3")}, 0, 0},
		{[]pxp.RunEvent{Begin(1), Resource(2, event.Success, "File", "/2")}, 2, 2},
		{[]pxp.RunEvent{Begin(1), Resource(2, event.Success, "File", "/2")}, 2, 0},
		{[]pxp.RunEvent{Resource(2, event.Success, "File", "/2"), Resource(3, event.Success, "File", "/3")}, 3, 1},
		{[]pxp.RunEvent{Resource(5, event.Success, "File", "/5")}, 3, 0},
		{[]pxp.RunEvent{{N: 2, Kind: pxp.EventsMissing, Missing: 4, At: At(2)}, Resource(6, event.Success, "File", "/6")}, 6, 2},
	} {
		if last, fresh := last(step.events...); last != step.last || fresh != step.fresh {
			t.Errorf("step %d: %d stored up to %d, want %d up to %d", i, fresh, last, step.fresh, step.last)
		}
	}
	var ns []int
	for _, e := range read(t, b.Store, event.Filter{}) {
		ns = append(ns, e.N)
	}
	same(t, "the node's numbers", []int{1, 2, 3, 4, 6}, ns)
	both := take(t, b.Store, 2, batch("b", "r", Begin(1)), batch("b", "r", Begin(1), Resource(2, event.Noop, "File", "/2")))
	same(t, "two batches of a run together", []event.Taken{{Node: "b", Run: "r", Last: 1, New: 1}, {Node: "b", Run: "r", Last: 2, New: 1}}, both)
}

// numbersByCommit has a reader that follows while many write: what it reads has no holes, ever.
func numbersByCommit(t *testing.T, b Backend) {
	const writers, batches = 6, 8
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range batches {
				node, n := fmt.Sprintf("n%d", w), 2*i+1
				both := []event.Batch{
					batch(node, "r", Resource(n, event.Success, "File", "/a"), Resource(n+1, event.Success, "File", "/b")),
					batch("shared", fmt.Sprintf("r%d-%d", w, i), Begin(1)),
				}
				if _, err := b.Store.TakeEvents(t.Context(), both, At(1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	const want = writers * batches * 3
	after := int64(0)
	for deadline := time.Now().Add(time.Minute); after < want && !t.Failed(); {
		for _, e := range read(t, b.Store, event.Filter{After: after}) {
			if e.Number != after+1 {
				t.Fatalf("number %d was read after %d", e.Number, after)
			}
			after = e.Number
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d numbers came", after, want)
		}
	}
	all.Wait()
}

func filtered(t *testing.T, b Backend) {
	take(t, b.Store, 1,
		batch("a", "r1", Begin(1), Resource(2, event.Success, "File", "/1"), Resource(3, event.Failure, "Service", "ntp"), End(4)),
		batch("b", "r2", Begin(1), Resource(2, event.Noop, "File", "/2")))
	for name, c := range map[string]struct {
		filter event.Filter
		want   []int64
	}{
		"all":           {event.Filter{}, []int64{1, 2, 3, 4, 5, 6}},
		"between":       {event.Filter{After: 2, Before: 5}, []int64{3, 4}},
		"newest":        {event.Filter{Newest: true, Limit: 2}, []int64{6, 5}},
		"newest before": {event.Filter{Newest: true, Before: 5, Limit: 2}, []int64{4, 3}},
		"limit":         {event.Filter{Limit: 2}, []int64{1, 2}},
		"node":          {event.Filter{Node: "b"}, []int64{5, 6}},
		"run":           {event.Filter{Node: "a", Run: "r1", Kinds: []string{pxp.RunEnded}}, []int64{4}},
		"status":        {event.Filter{Statuses: []string{event.Failure, event.Noop}}, []int64{3, 6}},
		"type":          {event.Filter{Types: []string{"File"}}, []int64{2, 6}},
		"environment":   {event.Filter{Environment: "test"}, nil},
		"kind":          {event.Filter{Kinds: []string{pxp.RunBegan}, Environment: "production"}, []int64{1, 5}},
	} {
		var got []int64
		for _, e := range read(t, b.Store, c.filter) {
			got = append(got, e.Number)
		}
		same(t, name, c.want, got)
	}
}

func linkedToJobs(t *testing.T, b Backend) {
	id := b.Job("a", "transaction-1")
	begin := Begin(1)
	begin.Transaction = "transaction-1"
	take(t, b.Store, 1, batch("a", "r1", begin), batch("b", "r2", begin)) // b names what is a's
	take(t, b.Store, 1, batch("a", "r1", Resource(2, event.Success, "File", "/1")))
	rows := read(t, b.Store, event.Filter{Job: id})
	if len(rows) != 2 || rows[0].Node != "a" || rows[1].Run != "r1" || rows[1].Job != id {
		t.Errorf("events of the job: %+v", rows)
	}
}

func pruned(t *testing.T, b Backend) {
	for i := range 3 {
		take(t, b.Store, 10*i+1, batch("a", fmt.Sprintf("r%d", i), Begin(1), End(2)))
	}
	for _, c := range []struct {
		at   int
		want int64
	}{{0, 1}, {1, 1}, {2, 3}, {21, 5}, {22, 7}} {
		if number, err := b.Store.EventsSince(t.Context(), At(c.at)); err != nil || number != c.want {
			t.Errorf("since second %d: %d, %v; want %d", c.at, number, err, c.want)
		}
	}
	if n, err := b.Store.PruneEvents(t.Context(), At(11)); err != nil || n != 2 {
		t.Errorf("pruned %d, %v", n, err)
	}
	if span, err := b.Store.EventSpan(t.Context()); err != nil || span != (event.Span{First: 3, Last: 6}) {
		t.Errorf("span %+v, %v", span, err)
	}
	if n, err := b.Store.PruneEvents(t.Context(), At(50)); err != nil || n != 4 {
		t.Errorf("pruned %d, %v", n, err)
	}
	if span, err := b.Store.EventSpan(t.Context()); err != nil || span != (event.Span{First: 7, Last: 6}) {
		t.Errorf("span of nothing %+v, %v", span, err)
	}
	take(t, b.Store, 51, batch("b", "r", Begin(1)))
	if rows := read(t, b.Store, event.Filter{}); len(rows) != 1 || rows[0].Number != 7 {
		t.Errorf("numbers go on: %+v", rows)
	}
}

// ofAgents: events that belong to no run are numbered, found and forgotten as all others.
func ofAgents(t *testing.T, b Backend) {
	take(t, b.Store, 1, batch("web-1", "run-1", Begin(1)))
	added := []event.Event{
		{Node: "web-2", RunEvent: pxp.RunEvent{Kind: event.Connect, At: At(1), Message: "tutti-agent/1"}},
		{Node: "web-1", RunEvent: pxp.RunEvent{Kind: event.Disconnect, At: At(2), Missing: 7}},
	}
	if err := b.Store.AddEvents(t.Context(), added, At(3)); err != nil {
		t.Fatal(err)
	}
	take(t, b.Store, 4, batch("web-1", "run-1", pxp.RunEvent{N: 2, Kind: pxp.EventsMissing, At: At(4), Missing: 1}))
	all, err := b.Store.Events(t.Context(), event.Filter{Limit: 10})
	if err != nil || len(all) != 4 {
		t.Fatalf("%+v, %v", all, err)
	}
	for i, want := range added {
		want.Number, want.StoredAt = all[0].Number+int64(i)+1, At(3)
		if diff := cmp.Diff(want, all[i+1], cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	found, err := b.Store.Events(t.Context(), event.Filter{Node: "web-1", Kinds: []string{event.Connect, event.Disconnect}, Limit: 10})
	if err != nil || len(found) != 1 || found[0].Kind != event.Disconnect {
		t.Errorf("%+v, %v", found, err)
	}
	if n, err := b.Store.PruneEvents(t.Context(), At(4)); n != 3 || err != nil {
		t.Errorf("%d forgotten, %v", n, err)
	}
}
