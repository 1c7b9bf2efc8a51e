package inventorytest

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// report makes the n-th report of a node.
func report(node fleet.Certname, n int) inventory.Report {
	at := start.Add(time.Duration(n) * time.Minute)
	return inventory.Report{
		ID: fleet.DigestOf(fmt.Appendf(nil, "%s %d", node, n)), Certname: node, Environment: "production",
		Origin: inventory.Origin{Producer: "tutti.example", ProducedAt: at.Add(-time.Millisecond)}, Type: "agent",
		Status: "changed", Noop: true, NoopPending: true, CorrectiveChange: true, Completed: true,
		PuppetVersion: "7.23.0", ReportFormat: 12, ConfigVersion: "v1", TransactionUUID: "tx", CatalogUUID: "cat",
		CodeID: "code", JobID: "7", CachedCatalog: "not_used", Server: "puppet.example:8140",
		StartedAt: at.Add(-time.Minute), EndedAt: at.Add(-time.Second), ReceivedAt: at,
		Metrics: json.RawMessage(`{"changes":{"name":"changes","label":"Changes","values":[["total","Total",1]]}}`),
		Logs: []inventory.RunLog{{
			Level: "notice", Message: "Applied", Source: "Puppet", Tags: []string{"notice"},
			Time: at.Add(-2 * time.Second), File: "site.pp", Line: 4,
		}},
		Resources: []inventory.ResourceStatus{
			{Type: "File", Title: "/same", Time: at, ContainmentPath: []string{"Stage[main]", "File[/same]"}, EvaluationTime: 0.25},
			{
				Type: "File", Title: "/motd", File: "site.pp", Line: 2, ContainmentPath: []string{"Stage[main]"},
				Changed: true, OutOfSync: true, CorrectiveChange: true, Time: at,
				Events: []inventory.Event{{
					Property: "content", Previous: json.RawMessage(`"{md5}1"`), Desired: json.RawMessage(`["x",1]`),
					Message: "changed", Name: "content_changed", Status: "success", Time: at, CorrectiveChange: true,
				}, {
					Property: "owner", Message: "hidden", Name: "owner_changed", Status: "noop", Time: at, Redacted: true,
				}},
			},
			{Type: "Exec", Title: "no", Time: at, Skipped: true, Failed: true, FailedToRestart: true},
		},
		Counts: inventory.Counts{Resources: 3, Changed: 1, Failed: 1, Skipped: 1, Unchanged: 1, Noop: 1, Corrective: 1},
	}
}

func reportRoundTrip(t *testing.T, s Store) {
	t.Helper()
	want := report("a.example", 1)
	ok(t, s.SaveReport(t.Context(), want))
	got, err := s.Report(t.Context(), string(want.ID))
	ok(t, err)
	same(t, "report", want, got)
	bare := inventory.Report{ID: fleet.DigestOf([]byte("bare")), Certname: "b.example", Status: "failed", ReceivedAt: start}
	ok(t, s.SaveReport(t.Context(), bare))
	got, err = s.Report(t.Context(), string(bare.ID))
	ok(t, err)
	bare.Type, bare.ProducedAt = "agent", start
	same(t, "bare report", bare, got)
}

// reportsAtOnce: reports of runs and of plans, of several nodes, each sent twice, some of them stored before.
func reportsAtOnce(t *testing.T, s Store) {
	t.Helper()
	const nodes, runs = 10, 3
	all := map[fleet.Digest]inventory.Report{}
	for n := range nodes {
		node := fleet.Certname(fmt.Sprintf("n%02d.example", n))
		for i := range runs {
			r := report(node, n*100+i)
			all[r.ID] = r
		}
		plan := report(node, n*100+50)
		plan.Type = "plan"
		all[plan.ID] = plan
		if n%2 == 0 {
			ok(t, s.SaveReport(t.Context(), report(node, n*100)))
			ok(t, s.SaveReport(t.Context(), plan))
		}
	}
	var wg sync.WaitGroup
	for range 2 {
		for _, r := range all {
			wg.Go(func() {
				if err := s.SaveReport(t.Context(), r); err != nil {
					t.Errorf("%s: %v", r.Certname, err)
				}
			})
		}
	}
	wg.Wait()
	list, err := s.Reports(t.Context(), inventory.ReportFilter{Page: inventory.Page{Limit: 1000}})
	ok(t, err)
	same(t, "how many there are", len(all), len(list))
	for id, want := range all {
		got, err := s.Report(t.Context(), string(id))
		ok(t, err)
		same(t, "report", want, got)
	}
	for n := range nodes {
		name := fleet.Certname(fmt.Sprintf("n%02d.example", n))
		node, err := s.Node(t.Context(), name)
		ok(t, err)
		same(t, "the latest report of "+string(name), report(name, n*100+runs-1).ID, node.LatestReport)
	}
}

func reportTwice(t *testing.T, s Store) {
	t.Helper()
	r := report("a.example", 1)
	ok(t, s.SaveReport(t.Context(), r))
	again := r
	again.ReceivedAt = r.ReceivedAt.Add(time.Hour)
	ok(t, s.SaveReport(t.Context(), again))
	list, err := s.Reports(t.Context(), inventory.ReportFilter{Page: inventory.Page{Limit: 10}})
	ok(t, err)
	r.Logs, r.Metrics, r.Resources = nil, nil, nil
	same(t, "reports", []inventory.Report{r}, list)
}

func reportPages(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	want := map[string][]fleet.Digest{}
	for n := 6; n >= 0; n-- {
		node := fleet.Certname(fmt.Sprintf("n%d.example", n%2))
		r := report(node, n)
		if n%3 == 0 {
			r.Status = "failed"
			want["failed"] = append(want["failed"], r.ID)
		}
		if n%2 == 0 {
			want["n0"] = append(want["n0"], r.ID)
		}
		want["all"] = append(want["all"], r.ID)
		ok(t, s.SaveReport(ctx, r))
	}
	filters := map[string]inventory.ReportFilter{
		"all": {}, "failed": {Status: "failed"}, "n0": {Certname: "n0.example"}, "none": {Certname: "x", Status: "failed"},
	}
	for name, filter := range filters {
		var got []fleet.Digest
		filter.Page.Limit = 2
		for {
			list, err := s.Reports(ctx, filter)
			ok(t, err)
			if len(list) == 0 {
				break
			}
			for _, r := range list {
				got = append(got, r.ID)
			}
			filter.Page.After = string(got[len(got)-1])
		}
		same(t, name, want[name], got)
	}
	_, err := s.Reports(ctx, inventory.ReportFilter{Page: inventory.Page{Limit: 1, After: "nonsense"}})
	isKind(t, "after nonsense", err, fault.Invalid)
}

func reportPrefix(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	a, b := report("a.example", 1), report("a.example", 2)
	b.ID = a.ID[:10] + fleet.DigestOf([]byte("tail"))[:54]
	ok(t, s.SaveReport(ctx, a))
	ok(t, s.SaveReport(ctx, b))
	got, err := s.Report(ctx, string(b.ID[:20]))
	ok(t, err)
	same(t, "by prefix", b, got)
	_, err = s.Report(ctx, string(a.ID[:6]))
	isKind(t, "ambiguous", err, fault.Conflict)
	for _, id := range []string{"", "abcde", "%%%%%%", "g00000", string(a.ID) + "0"} {
		_, err = s.Report(ctx, id)
		isKind(t, "id "+id, err, fault.Invalid)
	}
}

func reportLate(t *testing.T, s Store) {
	t.Helper()
	ok(t, s.SaveReport(t.Context(), report("a.example", 5)))
	late := report("a.example", 1)
	late.Status = "failed"
	ok(t, s.SaveReport(t.Context(), late))
	node, err := s.Node(t.Context(), "a.example")
	ok(t, err)
	same(t, "latest", report("a.example", 5).ID, node.LatestReport)
	same(t, "status", "changed", node.LatestStatus)
}

func prune(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	for n := range 5 {
		ok(t, s.SaveReport(ctx, report("a.example", n)))
	}
	ok(t, s.SaveReport(ctx, report("old.example", 0)))
	count, err := s.PruneReports(ctx, start.Add(3*time.Minute))
	ok(t, err)
	same(t, "count", 3, count)
	list, err := s.Reports(ctx, inventory.ReportFilter{Page: inventory.Page{Limit: 10}})
	ok(t, err)
	var got []fleet.Digest
	for _, r := range list {
		got = append(got, r.ID)
	}
	same(t, "left", []fleet.Digest{report("a.example", 4).ID, report("a.example", 3).ID, report("old.example", 0).ID}, got)
	count, err = s.PruneReports(ctx, start.Add(time.Hour))
	ok(t, err)
	same(t, "count", 1, count)
}

// Reports in short keep what lists show of them; each node's newest stays whole.
func shorten(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	for n := range 4 {
		ok(t, s.SaveReport(ctx, report("a.example", n)))
	}
	ok(t, s.SaveReport(ctx, report("old.example", 0)))
	list := func() []inventory.Report {
		t.Helper()
		reports, err := s.Reports(ctx, inventory.ReportFilter{Page: inventory.Page{Limit: 10}})
		ok(t, err)
		return reports
	}
	before := list()
	shortened, err := s.ShortenReports(ctx, start.Add(2*time.Minute))
	ok(t, err)
	same(t, "count", 2, shortened)
	again, err := s.ShortenReports(ctx, start.Add(2*time.Minute))
	ok(t, err)
	same(t, "count", 0, again)
	after := list()
	for i := range before {
		short := before[i].Certname == "a.example" && before[i].ReceivedAt.Before(start.Add(2*time.Minute))
		want := before[i]
		want.Short = short
		same(t, "listed", want, after[i])
		whole, err := s.Report(ctx, string(before[i].ID))
		ok(t, err)
		same(t, "short", short, whole.Short)
		same(t, "its resources are gone", short, len(whole.Resources) == 0)
		if short {
			same(t, "log", []inventory.RunLog{inventory.InShort(whole)}, whole.Logs)
			same(t, "metrics", "", string(whole.Metrics))
		}
	}
	ok(t, s.SaveReport(ctx, report("a.example", 0))) // sent once more: it is known
	same(t, "listed", after, list())
	last, err := s.ShortenReports(ctx, start.Add(time.Hour))
	ok(t, err)
	same(t, "count", 1, last)
	count, err := s.PruneReports(ctx, start.Add(time.Hour))
	ok(t, err)
	same(t, "pruned", 3, count)
}
