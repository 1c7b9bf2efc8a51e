// Package scheduletest has the conformance suite of schedule.Store, and the store in memory that tests use.
package scheduletest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/job/schedule"
	"github.com/tutti-project/tutti/internal/store/memory"
)

// Store keeps entries in memory.
type Store struct {
	mu   sync.Mutex
	rows *memory.Rows[schedule.Entry]
}

var _ schedule.Store = (*Store)(nil)

// NewStore returns an empty store.
func NewStore() *Store { return &Store{rows: memory.NewRows[schedule.Entry]("scheduled job")} }

// CreateSchedule implements schedule.Store.
func (s *Store) CreateSchedule(_ context.Context, e schedule.Entry) (schedule.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.rows.Add(func(id int64) *schedule.Entry { e.ID, e.Revision = id, 1; return &e }), nil
}

// SaveSchedule implements schedule.Store.
func (s *Store) SaveSchedule(_ context.Context, e schedule.Entry) (schedule.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row, err := s.rows.Find(e.ID)
	if err != nil {
		return e, err
	}
	if row.Revision != e.Revision {
		return e, fault.New(fault.Conflict, "somebody changed scheduled job %d meanwhile; look at it again", e.ID)
	}
	e.Revision++
	*row = e
	return e, nil
}

// Schedule implements schedule.Store.
func (s *Store) Schedule(_ context.Context, id int64) (schedule.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row, err := s.rows.Find(id)
	if err != nil {
		return schedule.Entry{}, err
	}
	return *row, nil
}

// Schedules implements schedule.Store.
func (s *Store) Schedules(context.Context) (list []schedule.Entry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, row := range s.rows.All() {
		list = append(list, *row)
	}
	return list, nil
}

// DueSchedules implements schedule.Store.
func (s *Store) DueSchedules(_ context.Context, now time.Time, n int) (list []schedule.Entry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, row := range s.rows.All() {
		if row.Enabled && !row.NextRun.IsZero() && !row.NextRun.After(now) {
			list = append(list, *row)
		}
	}
	slices.SortStableFunc(list, func(a, b schedule.Entry) int { return a.NextRun.Compare(b.NextRun) })
	return list[:min(n, len(list))], nil
}

// PruneSchedules implements schedule.Store.
func (s *Store) PruneSchedules(_ context.Context, before time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows.Delete(func(e *schedule.Entry) bool {
		return (!e.Enabled || e.NextRun.IsZero()) && e.Start.Before(before) && e.LastRun.Before(before)
	}), nil
}
