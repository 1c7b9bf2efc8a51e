// Package cataloguetest has the catalogue's store in memory, and the suite that every store passes.
//
// Concurrency: a Store is safe for concurrent use.
package cataloguetest

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/catalogue"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Store is catalogue.Store in memory.
type Store struct {
	mu      sync.Mutex
	agents  map[fleet.Certname]catalogue.Agent
	sets    map[fleet.Digest]action.Set
	modules map[fleet.Digest]catalogue.Metadata
	saved   []catalogue.Change
	changes int
	err     error
}

var _ catalogue.Store = (*Store)(nil)

// NewStore is empty.
func NewStore() *Store {
	return &Store{agents: map[fleet.Certname]catalogue.Agent{}, sets: map[fleet.Digest]action.Set{}, modules: map[fleet.Digest]catalogue.Metadata{}}
}

// Fail makes what is saved from now on fail; nil: it succeeds.
func (s *Store) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// Saved is what was saved since the last call.
func (s *Store) Saved() []catalogue.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	saved := s.saved
	s.saved = nil
	return saved
}

// Purge forgets a node's agent, as a store does when its node is purged.
func (s *Store) Purge(node fleet.Certname) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.agents, node)
	s.changes++
}

// Catalogue implements catalogue.Store.
func (s *Store) Catalogue(context.Context) (catalogue.Known, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := catalogue.Known{Agents: slices.Collect(maps.Values(s.agents)), Sets: maps.Clone(s.sets)}
	for _, m := range s.modules {
		known.Modules = append(known.Modules, m.Described)
	}
	return known, nil
}

// SaveCatalogue implements catalogue.Store.
func (s *Store) SaveCatalogue(_ context.Context, c catalogue.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.saved = append(s.saved, c)
	s.changes++
	for _, a := range c.Agents {
		s.agents[a.Node] = a
	}
	for _, digest := range c.ForgetSets {
		if !s.hasAgent(digest) {
			delete(s.sets, digest)
		}
	}
	for _, digest := range c.ForgetModules {
		if !s.inSet(digest) {
			delete(s.modules, digest)
		}
	}
	for digest, set := range c.Sets {
		if _, there := s.sets[digest]; !there {
			s.sets[digest] = slices.Clone(set)
		}
	}
	for _, m := range c.Modules {
		if _, there := s.modules[m.Digest]; !there {
			s.modules[m.Digest] = catalogue.Metadata{Described: m.Described, Text: bytes.Clone(m.Text)}
		}
	}
	return nil
}

func (s *Store) hasAgent(set fleet.Digest) bool {
	for _, a := range s.agents {
		if a.Set == set {
			return true
		}
	}
	return false
}

func (s *Store) inSet(module fleet.Digest) bool {
	for _, set := range s.sets {
		if slices.ContainsFunc(set, func(l action.Listed) bool { return l.Digest == module }) {
			return true
		}
	}
	return false
}

// Stamp implements catalogue.Store.
func (s *Store) Stamp(context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strconv.Itoa(s.changes), nil
}

// Metadata implements catalogue.Store.
func (s *Store) Metadata(_ context.Context, digest fleet.Digest) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, there := s.modules[digest]
	if !there {
		return nil, fault.New(fault.NotFound, "no metadata have this digest")
	}
	return bytes.Clone(m.Text), nil
}
