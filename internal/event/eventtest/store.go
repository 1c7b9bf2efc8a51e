// Package eventtest has the in-memory store of the stream of events, and the suite that every store of
// it passes.
//
// Concurrency: a Store is safe for concurrent use.
package eventtest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Store is an event.Store in memory.
type Store struct {
	mu      sync.Mutex
	rows    []event.Event
	last    int64
	runs    map[key]event.Run
	reports map[key]event.Report
	jobs    map[key]int64 // by node and PXP transaction
}

type key struct {
	node fleet.Certname
	id   string
}

var _ event.Store = (*Store)(nil)

// NewStore returns an empty one.
func NewStore() *Store {
	return &Store{runs: map[key]event.Run{}, reports: map[key]event.Report{}, jobs: map[key]int64{}}
}

// Report stores a report, as a server's inventory does.
func (s *Store) Report(node fleet.Certname, run string, r event.Report, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key{node, run}
	was := s.runs[k]
	was.Node, was.ID, was.ReportedAt = node, run, at
	if was.Report == "" {
		was.Report = fleet.DigestOf([]byte(run))
	}
	s.runs[k], s.reports[k] = was, r
}

// Job makes a node's run of a job.
func (s *Store) Job(node fleet.Certname, transaction string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := int64(len(s.jobs) + 1)
	s.jobs[key{node, transaction}] = id
	return id
}

// TakeEvents implements event.Store.
func (s *Store) TakeEvents(_ context.Context, batches []event.Batch, now time.Time) ([]event.Taken, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := make([]event.Taken, len(batches))
	for i, b := range batches {
		k := key{b.Node, b.Run}
		run := s.runs[k]
		run.Node, run.ID = b.Node, b.Run
		after, fresh, last := run.Take(b.Events)
		for _, e := range fresh {
			if id := s.jobs[key{b.Node, e.Transaction}]; id > 0 {
				after.Job = id
			}
		}
		s.runs[k] = s.add(after, after.Rows(fresh, s.last+1, false, now))
		taken[i] = event.Taken{Node: b.Node, Run: b.Run, Last: last, New: len(fresh)}
	}
	return taken, nil
}

// AddEvents implements event.Store.
func (s *Store) AddEvents(_ context.Context, events []event.Event, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		s.last++
		e.Number, e.StoredAt = s.last, now
		s.rows = append(s.rows, e)
	}
	return nil
}

// add stores rows of a run.
func (s *Store) add(run event.Run, rows []event.Event) event.Run {
	if len(rows) > 0 {
		run.First = cmp.Or(run.First, rows[0].Number)
		s.last = rows[len(rows)-1].Number
		s.rows = append(s.rows, rows...)
	}
	return run
}

// Events implements event.Store.
func (s *Store) Events(_ context.Context, f event.Filter) ([]event.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []event.Event
	for _, e := range s.rows {
		if e.Number > f.After && (f.Before <= 0 || e.Number < f.Before) && matches(f, e) {
			found = append(found, e)
		}
	}
	if f.Newest {
		slices.Reverse(found)
	}
	return found[:min(len(found), f.Limit)], nil
}

func matches(f event.Filter, e event.Event) bool {
	among := func(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }
	return (f.Node == "" || e.Node == f.Node) && (f.Run == "" || e.Run == f.Run) && (f.Job == 0 || e.Job == f.Job) &&
		(f.Environment == "" || e.Environment == f.Environment) &&
		among(f.Kinds, e.Kind) && among(f.Statuses, e.Status) && among(f.Types, e.Type)
}

// EventSpan implements event.Store.
func (s *Store) EventSpan(context.Context) (event.Span, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	span := event.Span{First: s.last + 1, Last: s.last}
	if len(s.rows) > 0 {
		span.First = s.rows[0].Number
	}
	return span, nil
}

// EventsSince implements event.Store.
func (s *Store) EventsSince(_ context.Context, t time.Time) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.rows {
		if !e.StoredAt.Before(t) {
			return e.Number, nil
		}
	}
	return s.last + 1, nil
}

// PruneEvents implements event.Store.
func (s *Store) PruneEvents(_ context.Context, before time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := slices.IndexFunc(s.rows, func(e event.Event) bool { return !e.StoredAt.Before(before) })
	if n < 0 {
		n = len(s.rows)
	}
	s.rows = slices.Clone(s.rows[n:])
	return n, nil
}

// Unsettled implements event.Settler.
func (s *Store) Unsettled(_ context.Context, reportedBefore time.Time, n int) ([]event.Unsettled, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []event.Unsettled
	byReport := func(a, b key) int {
		return cmp.Or(s.runs[a].ReportedAt.Compare(s.runs[b].ReportedAt), cmp.Compare(a.node, b.node), cmp.Compare(a.id, b.id))
	}
	for _, k := range slices.SortedFunc(maps.Keys(s.runs), byReport) {
		run := s.runs[k]
		if run.Report == "" || run.Settled || run.Last > 0 && run.Ended.IsZero() && !run.ReportedAt.Before(reportedBefore) || len(all) == n {
			continue
		}
		u := event.Unsettled{Run: run, Report: s.reports[k]}
		for _, e := range s.rows {
			if e.Node == run.Node && e.Run == run.ID && e.Type != "" {
				u.Stream = append(u.Stream, e.RunEvent)
			}
		}
		all = append(all, u)
	}
	return all, nil
}

// SettleRuns implements event.Settler.
func (s *Store) SettleRuns(_ context.Context, settlements []event.Settlement, now time.Time) (settled []event.Settlement, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range settlements {
		k := key{one.Run.Node, one.Run.ID}
		was := s.runs[k]
		if was.Last != one.Was || was.Settled {
			continue
		}
		run := one.Run
		if id := event.JobNumber(one.Job); id > 0 && s.hasRun(run.Node, id) {
			run.Job = id
		}
		settled = append(settled, one)
		s.runs[k] = s.add(run, run.Rows(one.Add, s.last+1, true, now))
	}
	return settled, nil
}

func (s *Store) hasRun(node fleet.Certname, job int64) bool {
	for k, id := range s.jobs {
		if k.node == node && id == job {
			return true
		}
	}
	return false
}
