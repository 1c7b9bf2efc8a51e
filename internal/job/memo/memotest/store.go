// Package memotest has the conformance suite of memo.Store, and the store in memory that tests use.
package memotest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/job/memo"
	"github.com/tutti-project/tutti/internal/store/memory"
)

// Store keeps notes in memory.
type Store struct {
	mu      sync.Mutex
	plans   *memory.Rows[memo.Plan]
	targets *memory.Rows[memo.TaskTarget]
}

var _ memo.Store = (*Store)(nil)

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{plans: memory.NewRows[memo.Plan]("plan job"), targets: memory.NewRows[memo.TaskTarget]("task target")}
}

// CreatePlan implements memo.Store.
func (s *Store) CreatePlan(_ context.Context, p memo.Plan) (memo.Plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.plans.Add(func(id int64) *memo.Plan { p.ID = id; return &p }), nil
}

// FinishPlan implements memo.Store.
func (s *Store) FinishPlan(_ context.Context, id int64, e memo.End) (memo.Plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.plans.Find(id)
	if err != nil {
		return memo.Plan{}, err
	}
	*p = p.Ended(e)
	return *p, nil
}

// Plan implements memo.Store.
func (s *Store) Plan(_ context.Context, id int64) (memo.Plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.plans.Find(id)
	if err != nil {
		return memo.Plan{}, err
	}
	return *p, nil
}

// Plans implements memo.Store.
func (s *Store) Plans(_ context.Context, page memo.Page) (plans []memo.Plan, total int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.plans.All() {
		if (page.Actor == "" || p.Actor == page.Actor) && (page.FinishedFrom.IsZero() || !p.FinishedAt.Before(page.FinishedFrom)) &&
			(page.FinishedUntil.IsZero() || !p.FinishedAt.IsZero() && !p.FinishedAt.After(page.FinishedUntil)) {
			plans = append(plans, *p)
		}
	}
	if !page.Ascending {
		slices.Reverse(plans)
	}
	from := min(page.Offset, len(plans))
	return plans[from:min(from+page.Limit, len(plans))], len(plans), nil
}

// PrunePlans implements memo.Store.
func (s *Store) PrunePlans(_ context.Context, before time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.plans.Delete(func(p *memo.Plan) bool {
		return p.CreatedAt.Before(before) && (p.FinishedAt.IsZero() || p.FinishedAt.Before(before))
	}), nil
}

// CreateTaskTarget implements memo.Store.
func (s *Store) CreateTaskTarget(_ context.Context, t memo.TaskTarget) (memo.TaskTarget, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.targets.All()) >= memo.MaxTargets {
		return t, memo.Full()
	}
	return *s.targets.Add(func(id int64) *memo.TaskTarget { t.ID = id; return &t }), nil
}

// TaskTarget implements memo.Store.
func (s *Store) TaskTarget(_ context.Context, id int64) (memo.TaskTarget, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.targets.Find(id)
	if err != nil {
		return memo.TaskTarget{}, err
	}
	return *t, nil
}

// TaskTargets implements memo.Store.
func (s *Store) TaskTargets(context.Context) (list []memo.TaskTarget, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.targets.All() {
		list = append(list, *t)
	}
	return list, nil
}
