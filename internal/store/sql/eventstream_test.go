package sql

import (
	"strconv"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/event/eventtest"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/job"
)

func TestEventStream(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		eventtest.RunStore(t, func(t *testing.T) eventtest.Backend {
			t.Helper()
			s := open(t)
			return eventtest.Backend{
				Store: s.Events,
				Report: func(node fleet.Certname, run string, r event.Report, at time.Time) {
					saveReportOf(t, s, node, run, r, at)
				},
				Job: func(node fleet.Certname, transaction string) int64 { return jobOn(t, s, node, transaction) },
			}
		})
	})
}

// saveReportOf stores what the inventory would have of a run's report.
func saveReportOf(t *testing.T, s *Store, node fleet.Certname, run string, r event.Report, at time.Time) {
	t.Helper()
	report := inventory.Report{
		ID: fleet.DigestOf([]byte(string(node) + run)), Certname: node, Environment: fleet.Environment(r.Environment), Status: r.Status, Noop: r.Noop,
		ConfigVersion: r.Version, TransactionUUID: run, JobID: r.Job, StartedAt: r.Started, EndedAt: r.Ended, ReceivedAt: at,
	}
	for _, e := range r.Events {
		old, _ := json.Marshal(e.Old)
		now, _ := json.Marshal(e.New)
		report.Resources = append(report.Resources, inventory.ResourceStatus{
			Type: e.Type, Title: e.Title, File: e.File, Line: e.Line, ContainmentPath: e.Containment, Time: e.At,
			Events: []inventory.Event{{
				Property: e.Property, Name: e.Name, Status: e.Status, Time: e.At, Message: e.Message, CorrectiveChange: e.Corrective, Previous: old, Desired: now,
			}},
		})
	}
	if err := s.Reports.SaveReport(t.Context(), report); err != nil {
		t.Fatal(err)
	}
}

// jobOn makes a job with one run.
func jobOn(t *testing.T, s *Store, node fleet.Certname, transaction string) int64 {
	t.Helper()
	j, err := s.Jobs.CreateJob(t.Context(), job.Job{Spec: job.Spec{Kind: job.Puppet}, Status: job.Queued, CreatedAt: eventtest.At(1)},
		[]job.Run{{ID: transaction, Number: 1, Node: node, State: job.Waiting}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return j.ID
}

// A purged node's events go with it, and a report that comes twice is noted once.
func TestEventsOfAPurgedNode(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		for i, node := range []fleet.Certname{"a", "b"} {
			saveReportOf(t, s, node, "r"+strconv.Itoa(i), event.Report{Started: eventtest.At(1), Ended: eventtest.At(2)}, eventtest.At(3))
		}
		runs, err := s.Events.Unsettled(t.Context(), eventtest.At(9), 10)
		if err != nil || len(runs) != 2 {
			t.Fatalf("%+v, %v", runs, err)
		}
		if settled, err := s.Events.SettleRuns(t.Context(), []event.Settlement{event.Settle(runs[0]), event.Settle(runs[1])},
			eventtest.At(9)); err != nil || len(settled) != 2 {
			t.Fatalf("%d runs, %v", len(settled), err)
		}
		if err := s.Nodes.PurgeNode(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		rows, err := s.Events.Events(t.Context(), event.Filter{Limit: 10})
		if err != nil || len(rows) != 2 || rows[0].Node != "b" {
			t.Errorf("%+v, %v", rows, err)
		}
	})
}
