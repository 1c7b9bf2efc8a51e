// Package codetest holds what every code.Store is held to, and a store in
// memory that passes it.
package codetest

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Store is a code.Store in memory. It may be used concurrently.
type Store struct {
	mu sync.Mutex
	// deployed holds each environment's versions, the newest last.
	deployed map[fleet.Environment][]code.Version
	staged   map[stagedKey]code.Version
}

type stagedKey struct {
	env fleet.Environment
	id  code.VersionID
}

var _ code.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store {
	return &Store{deployed: map[fleet.Environment][]code.Version{}, staged: map[stagedKey]code.Version{}}
}

// SaveVersion implements code.Store.
func (s *Store) SaveVersion(_ context.Context, v code.Version) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v.DeployedAt = v.DeployedAt.UTC().Truncate(time.Microsecond)
	others := slices.DeleteFunc(s.deployed[v.Environment], func(old code.Version) bool { return old.ID == v.ID })
	s.deployed[v.Environment] = append(others, v)
	return nil
}

// StageVersion implements code.Store.
func (s *Store) StageVersion(_ context.Context, v code.Version) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.staged[stagedKey{v.Environment, v.ID}] = v
	return nil
}

// PruneStaged implements code.Store. Nothing here knows of previews.
func (s *Store) PruneStaged(_ context.Context, before time.Time) (count int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, v := range s.staged {
		if v.DeployedAt.Before(before) {
			delete(s.staged, key)
			count++
		}
	}
	return count, nil
}

// CurrentVersion implements code.Store.
func (s *Store) CurrentVersion(_ context.Context, env fleet.Environment) (code.Version, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	versions := s.deployed[env]
	if len(versions) == 0 {
		return code.Version{}, unknown(env)
	}
	return versions[len(versions)-1], nil
}

func unknown(env fleet.Environment) error {
	return fault.New(fault.NotFound, "environment %s has no code", env)
}

// Versions implements code.Store.
func (s *Store) Versions(_ context.Context, env fleet.Environment, limit int) ([]code.Version, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := slices.Clone(s.deployed[env])
	slices.Reverse(newest)
	return newest[:min(len(newest), max(limit, 0))], nil
}

// Environments implements code.Store.
func (s *Store) Environments(context.Context) ([]code.Version, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var current []code.Version
	for _, versions := range s.deployed {
		current = append(current, versions[len(versions)-1])
	}
	slices.SortFunc(current, func(a, b code.Version) int { return cmp.Compare(a.Environment, b.Environment) })
	return current, nil
}

// RemoveEnvironment implements code.Store.
func (s *Store) RemoveEnvironment(_ context.Context, env fleet.Environment) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.deployed[env]) == 0 {
		return unknown(env)
	}
	delete(s.deployed, env)
	return nil
}

// PruneVersions implements code.Store. Nothing here knows of compilations and
// catalogs.
func (s *Store) PruneVersions(_ context.Context, before time.Time, keep int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := 0
	for env, versions := range s.deployed {
		border := len(versions) - max(keep, 1)
		var stay []code.Version
		for i, v := range versions {
			if i >= border || !v.DeployedAt.Before(before) {
				stay = append(stay, v)
			}
		}
		count += len(versions) - len(stay)
		s.deployed[env] = stay
	}
	return count, nil
}

// VersionIDs implements code.Store.
func (s *Store) VersionIDs(context.Context) ([]code.VersionID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []code.VersionID
	for _, versions := range s.deployed {
		for _, v := range versions {
			ids = append(ids, v.ID)
		}
	}
	for key := range s.staged {
		ids = append(ids, key.id)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}
