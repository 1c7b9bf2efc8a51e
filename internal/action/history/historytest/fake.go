// Package historytest has the store of calls in memory, and the suite that every store passes.
//
// Concurrency: a Store is safe for concurrent use.
package historytest

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/action/history"
	"github.com/tutti-project/tutti/internal/fault"
)

// Store is history.Store in memory.
type Store struct {
	mu    sync.Mutex
	last  int64
	calls []history.Call // the oldest first
}

var _ history.Store = (*Store)(nil)

// NewStore is empty.
func NewStore() *Store { return &Store{} }

// SaveCall implements history.Store.
func (s *Store) SaveCall(_ context.Context, c history.Call) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	c.ID, c.Counts = s.last, maps.Clone(c.Counts)
	s.calls = append(s.calls, c)
	s.forget(func(old history.Call) bool { return old.ID <= s.last-history.MaxCalls })
	return c.ID, nil
}

func (s *Store) forget(gone func(history.Call) bool) int {
	before := len(s.calls)
	s.calls = slices.DeleteFunc(s.calls, gone)
	return before - len(s.calls)
}

// Calls implements history.Store.
func (s *Store) Calls(_ context.Context, p history.Page) (page []history.Call, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range slices.Backward(s.calls) {
		if len(page) < p.Limit && (p.Before == 0 || c.ID < p.Before) && (p.Actor == "" || c.Actor == p.Actor) && (p.Module == "" || c.Module == p.Module) {
			page = append(page, c)
		}
	}
	return page, nil
}

// Call implements history.Store.
func (s *Store) Call(_ context.Context, id int64) (history.Call, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.ID == id {
			return c, nil
		}
	}
	return history.Call{}, fault.New(fault.NotFound, "there is no record of a call c%d", id)
}

// PruneCalls implements history.Store.
func (s *Store) PruneCalls(_ context.Context, before time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forget(func(c history.Call) bool { return c.Ended.Before(before) }), nil
}
