// Package policytest has what tests of policies need: a Store in memory, and the conformance suite of stores.
//
// All of it may be used concurrently.
package policytest

import (
	"context"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/policy"
	"github.com/tutti-project/tutti/internal/store/memory"
)

// Store is policy.Store in memory.
type Store struct {
	mu       sync.Mutex
	policies *memory.Versions[policy.Rule]
	freezes  *memory.Versions[policy.Freeze]
}

var _ policy.Store = (*Store)(nil)

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{
		policies: memory.NewVersions("policy", func(r *policy.Rule) (string, *fleet.Stamp) { return r.Name, &r.Stamp }),
		freezes:  memory.NewVersions("freeze", func(f *policy.Freeze) (string, *fleet.Stamp) { return f.Name, &f.Stamp }),
	}
}

// Policies implements policy.Store.
func (s *Store) Policies(context.Context) ([]policy.Rule, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.policies.Current(), nil
}

// PolicyHistory implements policy.Store.
func (s *Store) PolicyHistory(_ context.Context, name string) ([]policy.Rule, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.policies.History(name)
}

// SavePolicy implements policy.Store.
func (s *Store) SavePolicy(_ context.Context, r policy.Rule) (policy.Rule, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.policies.Save(r, func(to *policy.Rule, from policy.Rule) { to.Definition = from.Definition })
}

// Freezes implements policy.Store.
func (s *Store) Freezes(context.Context) ([]policy.Freeze, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.freezes.Current(), nil
}

// FreezeHistory implements policy.Store.
func (s *Store) FreezeHistory(_ context.Context, name string) ([]policy.Freeze, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.freezes.History(name)
}

// SaveFreeze implements policy.Store.
func (s *Store) SaveFreeze(_ context.Context, f policy.Freeze) (policy.Freeze, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.freezes.Save(f, func(to *policy.Freeze, from policy.Freeze) { to.Freezing = from.Freezing })
}

// PruneRules implements policy.Store.
func (s *Store) PruneRules(_ context.Context, before time.Time, keep int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.policies.Prune(before, keep) + s.freezes.Prune(before, keep), nil
}
