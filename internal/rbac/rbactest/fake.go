// Package rbactest holds what every token store must do, as a suite, and a store
// in memory that does it.
package rbactest

import (
	"context"
	"sync"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

// Fake is a rbac.TokenStore in memory.
type Fake struct {
	mu     sync.Mutex
	tokens map[string]rbac.Token // by label
}

// New returns an empty Fake.
func New() *Fake { return &Fake{tokens: map[string]rbac.Token{}} }

// SaveAccessToken implements rbac.TokenStore.
func (s *Fake) SaveAccessToken(_ context.Context, t rbac.Token) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[t.Label] = t
	return nil
}

// AccessToken implements rbac.TokenStore.
func (s *Fake) AccessToken(_ context.Context, hash fleet.Digest) (rbac.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tokens {
		if t.Hash == hash {
			return t, nil
		}
	}
	return rbac.Token{}, fault.New(fault.NotFound, "there is no such token")
}
