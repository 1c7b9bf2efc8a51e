package codechecktest

import (
	"context"
	"sync"

	"github.com/tutti-project/tutti/internal/codecheck"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Store is codecheck.Store in memory.
type Store struct {
	mu   sync.Mutex
	kept map[key]codecheck.Report
}

type key struct {
	env     fleet.Environment
	version fleet.Digest
}

var _ codecheck.Store = (*Store)(nil)

// NewStore returns an empty store.
func NewStore() *Store { return &Store{kept: map[key]codecheck.Report{}} }

// SaveCheck implements codecheck.Store.
func (s *Store) SaveCheck(_ context.Context, r codecheck.Report) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[key{r.Environment, r.Version}] = r
	return nil
}

// Check implements codecheck.Store.
func (s *Store) Check(_ context.Context, env fleet.Environment, version fleet.Digest) (codecheck.Report, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, there := s.kept[key{env, version}]
	if !there {
		return r, fault.New(fault.NotFound, "version %s of %s was not checked", version.Short(), env)
	}
	return r, nil
}
