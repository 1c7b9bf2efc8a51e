package server

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// A connected node is a node: it is listed, once and in order, whatever the pages are, and shown before anything is stored of it.
func TestConnectedNodesAreListed(t *testing.T) {
	t.Parallel()
	s := newOrderer(t, io.Discard)
	for _, name := range []fleet.Certname{"b", "d", "f"} {
		saveFacts(t, s.parts, name)
	}
	for _, name := range []fleet.Certname{"a", "c", "d", "e", "g"} {
		newAgent(name, manner{}).join(t, s.broker, &s.serving)
	}
	known := s.knownNodes()
	for limit := 1; limit <= 8; limit++ {
		var names []string
		for after := ""; ; {
			nodes, err := known.Nodes(t.Context(), inventory.Page{After: after, Limit: limit})
			if err != nil {
				t.Fatal(err)
			}
			if len(nodes) == 0 {
				break
			}
			for _, n := range nodes {
				names = append(names, string(n.Certname))
			}
			after = names[len(names)-1]
		}
		if diff := cmp.Diff("a b c d e f g", strings.Join(names, " ")); diff != "" {
			t.Errorf("by %d (-want +got):\n%s", limit, diff)
		}
	}
	if n, err := known.Node(t.Context(), "c"); err != nil || n.Certname != "c" || n.CreatedAt.IsZero() {
		t.Errorf("a connected node: %+v, %v", n, err)
	}
	if _, err := known.Node(t.Context(), "x"); fault.Of(err) != fault.NotFound {
		t.Errorf("a node that nobody knows: %v", err)
	}
}

func saveFacts(t *testing.T, p *parts, name fleet.Certname) {
	t.Helper()
	if _, _, err := p.store.Facts.SaveFacts(t.Context(), inventory.FactSet{
		Certname: name, Environment: "production", Values: json.RawMessage(`{"a":1}`),
	}); err != nil {
		t.Fatal(err)
	}
}

// Who is revoked or purged holds no job, and who is revoked is not among all nodes.
func TestNodesThatLeaveEndTheirRuns(t *testing.T) {
	t.Parallel()
	s := newOrderer(t, io.Discard)
	holds := make(chan struct{})
	defer close(holds)
	for _, name := range []fleet.Certname{"revoked.example", "purged.example", "cleaned.example", "good.example", "again.example"} {
		enrolled(t, s.parts, name)
		saveFacts(t, s.parts, name)
		newAgent(name, manner{holds: holds}).join(t, s.broker, &s.serving)
	}
	j := s.order(uptime("cleaned.example", "good.example", "purged.example", "revoked.example"))
	s.until(j.ID, func(j job.Job) bool { return j.Counts[job.Running] == 4 })
	ctx := context.WithoutCancel(t.Context())
	if err := s.ca.Revoke(ctx, "revoked.example"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ca.Clean(ctx, "cleaned.example", "again.example"); err != nil {
		t.Fatal(err)
	}
	enrolled(t, s.parts, "again.example")
	if err := (keeper{s.housekeeper, s.knownNodes()}).PurgeNode(ctx, "purged.example"); err != nil {
		t.Fatal(err)
	}
	_, runs := s.until(j.ID, func(j job.Job) bool { return j.Counts[job.Lost] == 3 })
	var got []string
	for _, r := range runs {
		got = append(got, string(r.State)+": "+r.Reason)
	}
	want := []string{
		"lost: its node's certificate was revoked, and it may still run there", "running: ",
		"lost: its node was purged, and it may still run there", "lost: its node's certificate was revoked, and it may still run there",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	all, err := s.resolver.Resolve(ctx, job.Targets{All: true})
	if diff := cmp.Diff([]fleet.Certname{"again.example", "good.example", "purged.example"}, all); diff != "" || err != nil {
		t.Errorf("all nodes, %v (-want +got):\n%s", err, diff)
	}
}

// While a node is away its runs say since when, and no more when it is back.
func TestARunSaysThatItsNodeIsAway(t *testing.T) {
	t.Parallel()
	s := newOrderer(t, io.Discard, func(c *settings.Config) { c.JobReconnect, c.JobPollInterval = time.Hour, 100*time.Millisecond })
	holds := make(chan struct{})
	a := newAgent("n.example", manner{holds: holds})
	l := a.join(t, s.broker, &s.serving)
	j := s.order(uptime("n.example"))
	s.until(j.ID, func(j job.Job) bool { return j.Counts[job.Running] == 1 })
	reason := func(fits func(string) bool) {
		t.Helper()
		s.until(j.ID, func(job.Job) bool {
			runs, err := s.jobs.Runs(t.Context(), j.ID, job.RunPage{Limit: 1})
			return err == nil && fits(runs[0].Reason)
		})
	}
	l.session.Leave(broker.Farewell{Code: 1006})
	l.drop()
	reason(func(r string) bool { return strings.HasPrefix(r, "its node is not connected since 20") })
	a.join(t, s.broker, &s.serving)
	reason(func(r string) bool { return r == "" })
	close(holds)
	s.until(j.ID, ended)
}
