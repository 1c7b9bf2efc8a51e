// Package classifytest holds the conformance suite of classify.Store and the
// in-memory fake that passes it. Kinds of error: those of the port.
package classifytest

import (
	"context"
	"slices"
	"sync"

	"github.com/tutti-project/tutti/internal/classify"
)

// Store is a classify.Store in memory.
type Store struct {
	mu       sync.Mutex
	groups   []classify.Group
	revision int64
}

// New returns a store that holds the root.
func New() *Store { return &Store{groups: []classify.Group{classify.NewRoot()}, revision: 1} }

// Groups implements classify.Store.
func (s *Store) Groups(context.Context) ([]classify.Group, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.groups), s.revision, nil
}

// GroupsRevision implements classify.Store.
func (s *Store) GroupsRevision(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision, nil
}

// ChangeGroups implements classify.Store.
func (s *Store) ChangeGroups(_ context.Context, changes []classify.Change) ([]classify.Group, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	applied, err := classify.Apply(s.groups, changes)
	if err != nil {
		return nil, err
	}
	s.groups = applied.Groups
	s.revision++
	return applied.Saved, nil
}
