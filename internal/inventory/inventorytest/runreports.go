package inventorytest

import (
	"context"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// RunReport implements inventory.RunStore.
func (s *Fake) RunReport(_ context.Context, node fleet.Certname, transaction string) (inventory.Report, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found inventory.Report
	for _, r := range s.reports {
		if r.Certname == node && r.TransactionUUID == transaction && (found.ID == "" || newestFirst(r, found) < 0) {
			found = r
		}
	}
	if found.ID == "" {
		return found, fault.New(fault.NotFound, "there is no report of the run %s of %s", transaction, node)
	}
	return found, nil
}

// LatestReports implements inventory.RunStore.
func (s *Fake) LatestReports(_ context.Context, nodes []fleet.Certname) (map[fleet.Certname]inventory.Report, error) {
	if err := inventory.CheckNamed(nodes); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	latest := map[fleet.Certname]inventory.Report{}
	for _, name := range nodes {
		if r, there := s.reports[s.nodes[name].LatestReport]; there {
			r.Logs, r.Metrics, r.Resources = nil, nil, nil
			latest[name] = r
		}
	}
	return latest, nil
}

// PendingNodes implements inventory.RunStore.
func (s *Fake) PendingNodes(context.Context) (nodes []fleet.Certname, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, node := range s.nodes {
		if r, there := s.reports[node.LatestReport]; there && r.Noop && r.NoopPending {
			nodes = append(nodes, name)
		}
	}
	return nodes, nil
}

func runReports(t *testing.T, s Store) {
	t.Helper()
	of := func(node fleet.Certname, n int, run string) inventory.Report {
		r := report(node, n)
		r.TransactionUUID = run
		ok(t, s.SaveReport(t.Context(), r))
		return r
	}
	first, again, last := of("a.example", 1, "run-1"), of("a.example", 2, "run-1"), of("a.example", 3, "run-2")
	other := of("b.example", 4, "run-1")
	of("c.example", 5, "run-3")
	for run, want := range map[string]inventory.Report{"run-1": again, "run-2": last} {
		got, err := s.RunReport(t.Context(), "a.example", run)
		ok(t, err)
		same(t, run, want, got)
	}
	if _, err := s.RunReport(t.Context(), "a.example", "run-3"); fault.Of(err) != fault.NotFound {
		t.Errorf("the run of another node: %v", err)
	}
	got, err := s.LatestReports(t.Context(), []fleet.Certname{"a.example", "b.example", "stranger.example"})
	ok(t, err)
	for _, r := range []*inventory.Report{&last, &other} {
		r.Logs, r.Metrics, r.Resources = nil, nil, nil
	}
	same(t, "latest reports", map[fleet.Certname]inventory.Report{"a.example": last, "b.example": other}, got)
	if n, err := s.PruneReports(t.Context(), first.ReceivedAt.Add(time.Hour)); err != nil || n != 2 {
		t.Errorf("pruned %d: %v", n, err)
	}
	for i, at := range []struct {
		node fleet.Certname
		noop bool
	}{{"b.example", true}, {"b.example", false}, {"c.example", false}, {"a.example", true}} { // the last one of a node decides
		r := report(at.node, 6+i)
		r.Noop, r.NoopPending = at.noop, at.noop
		ok(t, s.SaveReport(t.Context(), r))
	}
	nodes, err := s.PendingNodes(t.Context())
	ok(t, err)
	same(t, "nodes that would have changed", []fleet.Certname{"a.example"}, nodes)
}
