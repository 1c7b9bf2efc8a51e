//go:build soak

package e2e_test

import (
	"context"
	"database/sql"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/sim"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// seenEvents is what somebody has seen who follows the stream of events from its beginning, whatever becomes of the server.
type seenEvents struct {
	mu     sync.Mutex
	events []api.Event
	pruned bool
}

func followEvents(t *testing.T, s *server) *seenEvents {
	t.Helper()
	seen, client := &seenEvents{}, apiClient(t, s)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() {
		ended <- client.FollowEvents(ctx, api.EventStreamRequest{After: "0", Kind: runKinds}, func(e api.Event) error {
			seen.mu.Lock()
			defer seen.mu.Unlock()
			seen.events = append(seen.events, e)
			return nil
		}, func(api.EventSpan) { seen.pruned = true }, func(error) {}, func() {})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; ctx.Err() == nil || seen.pruned {
			t.Errorf("who follows the events: %v, pruned: %t", err, seen.pruned)
		}
	})
	return seen
}

// upto waits until everything up to a number is seen.
func (s *seenEvents) upto(t *testing.T, number int64) []api.Event {
	t.Helper()
	var seen []api.Event
	if !within(patience, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		seen = slices.Clone(s.events)
		return len(seen) > 0 && seen[len(seen)-1].Number >= number
	}) {
		t.Errorf("who follows the events has seen %d of them, not that of number %d", len(seen), number)
	}
	return seen
}

// judgeRuns looks whether every node applied last what it may have, and compares what the runs said with the
// stream of events, with what was seen of it while it came, and with the reports.
func (s *storm) judgeRuns(t *testing.T) {
	t.Helper()
	db := openDatabase(t, s.server)
	want, reports := map[string]said{}, map[string]said{}
	interrupted := map[string]bool{}
	s.each(t, func(i int) error { return s.awaitApplied(t, s.nodes[i]) })
	for _, n := range s.nodes {
		for _, a := range s.fleet.Recorder().Applied(n.name) {
			s.expect(want, reports, n.name, a)
			interrupted[n.name+" "+a.Report] = a.Interrupted
		}
	}
	var got map[string]said
	var events []api.Event
	if !within(patience, func() bool {
		events = listEvents(t, apiClient(t, s.server))
		got = runsIn(events)
		return cmp.Equal(want, got) && count(t, db, "SELECT COUNT(*) FROM event_runs WHERE settled = 0 AND status <> 'interrupted'") == 0
	}) {
		t.Errorf("what runs said, and the stream of events (-want +got):\n%.3000s", cmp.Diff(want, got))
		t.Errorf("%d runs are not compared with their reports", count(t, db, "SELECT COUNT(*) FROM event_runs WHERE settled = 0 AND status <> 'interrupted'"))
	}
	if len(events) > 0 {
		seen := s.seen.upto(t, events[len(events)-1].Number)
		if diff := cmp.Diff(events, seen); diff != "" {
			t.Errorf("the stream of events, and who followed it (-want +got):\n%.3000s", diff)
		}
	}
	if diff := cmp.Diff(reports, reportsIn(t, db)); diff != "" {
		t.Errorf("what runs did, and their reports (-want +got):\n%.3000s", diff)
	}
	killed, late := 0, 0
	for _, yes := range interrupted {
		if yes {
			killed++
		}
	}
	for _, e := range events {
		if e.Reported && e.Kind == pxp.RunBegan {
			late++
		}
	}
	t.Logf("%d events of %d runs, of which %d were killed; %d reports, of which %d were there before a word of the stream", len(events), len(interrupted),
		killed, len(reports), late)
	if killed == 0 || late > len(reports)/10 {
		t.Error("the storm has not touched what it should")
	}
	for _, name := range []string{"tutti_events_only_in_report_total", "tutti_events_only_in_stream_total", "tutti_events_missing_total"} {
		if n := s.server.metric(t, name); n != 0 {
			t.Errorf("%s is %g", name, n)
		}
	}
}

// awaitApplied waits until a node has applied what it may have.
func (s *storm) awaitApplied(t *testing.T, n *stormNode) error {
	t.Helper()
	may, err := n.pointer(t.Context(), s.url)
	if err != nil {
		return err
	}
	var last sim.Application
	if !within(patience, func() bool {
		if all := s.fleet.Recorder().Applied(n.name); len(all) > 0 {
			last = all[len(all)-1]
		}
		return last.Catalog == string(may.Catalog) && !last.Interrupted && last.Over()
	}) {
		t.Errorf("%s may have %s; it applied last %.12s", n.name, may.Catalog.Short(), last.Catalog)
	}
	return nil
}

// expect notes what the stream and the report of an application have to say.
func (s *storm) expect(stream, reports map[string]said, node string, a sim.Application) {
	run := node + " " + a.Report
	if all := streamOf(a); len(all) > 0 {
		stream[run] = all
	}
	for _, e := range a.Events {
		if e.Kind == pxp.ResourceEvent && !a.Interrupted {
			reports[run] = append(reports[run], line(0, "", e.Status, e.Type, e.Title, e.At))
		}
	}
	slices.Sort(reports[run])
}

// listEvents lists the events of runs, the oldest first.
func listEvents(t *testing.T, client *api.Client) (events []api.Event) {
	t.Helper()
	request := api.EventListRequest{Limit: 1000, Kind: runKinds}
	for {
		page, err := api.EventList.Call(t.Context(), client, request)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, page.Items...)
		if request.After = page.Next; page.Next == "" {
			slices.Reverse(events)
			return events
		}
	}
}

// runsIn is what runs said, as the stream has it.
func runsIn(events []api.Event) map[string]said {
	runs := map[string]said{}
	for _, e := range events {
		run := e.Node + " " + e.Run
		runs[run] = append(runs[run], line(e.N, e.Kind, e.Status, e.Type, e.Title, e.Time))
	}
	return runs
}

// reportsIn is what the reports say of resources. A report that is there twice says everything twice.
func reportsIn(t *testing.T, db *sql.DB) map[string]said {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT n.certname, r.transaction_uuid, e.status, e.type, e.title, e.happened_at
		FROM reports r JOIN nodes n ON n.id = r.node_id JOIN events e ON e.report_id = r.id WHERE n.certname LIKE 'sim-%'`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	reports := map[string]said{}
	for rows.Next() {
		var node, run, status, kind, title string
		var micros int64
		if err := rows.Scan(&node, &run, &status, &kind, &title, &micros); err != nil {
			t.Fatal(err)
		}
		reports[node+" "+run] = append(reports[node+" "+run], line(0, "", status, kind, title, time.UnixMicro(micros)))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, lines := range reports {
		slices.Sort(lines)
	}
	return reports
}
