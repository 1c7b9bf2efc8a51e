// Package sourcetest has what tests of sources need: a Store, repositories and a deployer in memory, and the conformance suite of stores.
//
// All of it may be used concurrently.
package sourcetest

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/tutti-project/tutti/internal/code/source"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Store is source.Store in memory.
type Store struct {
	mu       sync.Mutex
	sources  map[string]source.Row
	branches map[fleet.Environment]source.Branch
}

var _ source.Store = (*Store)(nil)

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{sources: map[string]source.Row{}, branches: map[fleet.Environment]source.Branch{}}
}

// Sources implements source.Store.
func (s *Store) Sources(context.Context) ([]source.Row, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rows []source.Row
	for _, name := range slices.Sorted(maps.Keys(s.sources)) {
		rows = append(rows, s.sources[name])
	}
	return rows, nil
}

// SaveSource implements source.Store.
func (s *Store) SaveSource(_ context.Context, r source.Row) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Secrets = source.Secrets{}
	s.sources[r.Name] = r
	return nil
}

// RemoveSource implements source.Store.
func (s *Store) RemoveSource(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.sources[name]; !there {
		return fault.New(fault.NotFound, "there is no source %s", name)
	}
	delete(s.sources, name)
	maps.DeleteFunc(s.branches, func(_ fleet.Environment, b source.Branch) bool { return b.Source == name })
	return nil
}

// Branches implements source.Store.
func (s *Store) Branches(context.Context) ([]source.Branch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []source.Branch
	for _, env := range slices.Sorted(maps.Keys(s.branches)) {
		list = append(list, s.branches[env])
	}
	return list, nil
}

// SaveBranch implements source.Store.
func (s *Store) SaveBranch(_ context.Context, b source.Branch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.branches[b.Environment] = b
	return nil
}

// RemoveBranch implements source.Store.
func (s *Store) RemoveBranch(_ context.Context, env fleet.Environment) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.branches, env)
	return nil
}
