// Package policytest has what tests of policies need: a Store in memory, and the conformance suite of stores.
//
// All of it may be used concurrently.
package policytest

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/policy"
)

// Store is policy.Store in memory.
type Store struct {
	mu       sync.Mutex
	policies map[string][]policy.Rule // every version, the oldest first
	freezes  map[string][]policy.Freeze
}

var _ policy.Store = (*Store)(nil)

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{policies: map[string][]policy.Rule{}, freezes: map[string][]policy.Freeze{}}
}

// current is the newest version of each, by name, without those that are removed.
func current[R any](all map[string][]R, stamp func(R) fleet.Stamp) (rules []R) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if newest := all[name][len(all[name])-1]; !stamp(newest).Removed {
			rules = append(rules, newest)
		}
	}
	return rules
}

func history[R any](versions []R, what, name string) ([]R, error) {
	if len(versions) == 0 {
		return nil, fault.New(fault.NotFound, "there is no %s %.80q", what, name)
	}
	versions = slices.Clone(versions)
	slices.Reverse(versions)
	return versions, nil
}

// Policies implements policy.Store.
func (s *Store) Policies(context.Context) ([]policy.Rule, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return current(s.policies, func(r policy.Rule) fleet.Stamp { return r.Stamp }), nil
}

// PolicyHistory implements policy.Store.
func (s *Store) PolicyHistory(_ context.Context, name string) ([]policy.Rule, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return history(s.policies[name], "policy", name)
}

// SavePolicy implements policy.Store.
func (s *Store) SavePolicy(_ context.Context, r policy.Rule) (policy.Rule, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.policies[r.Name]
	if r.Removed {
		if len(before) == 0 || before[len(before)-1].Removed {
			return policy.Rule{}, fault.New(fault.NotFound, "there is no policy %.80q", r.Name)
		}
		r.Definition = before[len(before)-1].Definition
	}
	r.Version = len(before) + 1
	s.policies[r.Name] = append(before, r)
	return r, nil
}

// Freezes implements policy.Store.
func (s *Store) Freezes(context.Context) ([]policy.Freeze, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return current(s.freezes, func(f policy.Freeze) fleet.Stamp { return f.Stamp }), nil
}

// FreezeHistory implements policy.Store.
func (s *Store) FreezeHistory(_ context.Context, name string) ([]policy.Freeze, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return history(s.freezes[name], "freeze", name)
}

// SaveFreeze implements policy.Store.
func (s *Store) SaveFreeze(_ context.Context, f policy.Freeze) (policy.Freeze, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.freezes[f.Name]
	if f.Removed {
		if len(before) == 0 || before[len(before)-1].Removed {
			return policy.Freeze{}, fault.New(fault.NotFound, "there is no freeze %.80q", f.Name)
		}
		f.Freezing = before[len(before)-1].Freezing
	}
	f.Version = len(before) + 1
	s.freezes[f.Name] = append(before, f)
	return f, nil
}
