package delivertest

import (
	"context"
	"slices"
	"sync"

	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Groups is a deliver.Groups in memory.
type Groups struct {
	mu     sync.Mutex
	groups []group
}

type group struct {
	deliver.Membership
	nodes []fleet.Certname
}

// Put makes a group, or replaces it.
func (g *Groups) Put(m deliver.Membership, nodes ...fleet.Certname) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.groups = slices.DeleteFunc(g.groups, func(old group) bool { return old.Group == m.Group })
	g.groups = append(g.groups, group{m, slices.Sorted(slices.Values(nodes))})
}

// Memberships implements deliver.Groups.
func (g *Groups) Memberships(_ context.Context, nodes []fleet.Certname, groups []string) (map[fleet.Certname][]deliver.Membership, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	found := map[fleet.Certname][]deliver.Membership{}
	for _, one := range g.groups {
		for _, node := range nodes {
			if slices.Contains(groups, one.Group) && slices.Contains(one.nodes, node) {
				found[node] = append(found[node], one.Membership)
			}
		}
	}
	return found, nil
}

// Members implements deliver.Groups.
func (g *Groups) Members(_ context.Context, id string) ([]fleet.Certname, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, one := range g.groups {
		if one.Group == id {
			return slices.Clone(one.nodes), nil
		}
	}
	return nil, nil
}

// Shown is a deliver.Promoter that remembers what it was given.
type Shown struct {
	mu    sync.Mutex
	fails error
	shown map[fleet.Certname]deliver.Generation
}

// Promote implements deliver.Promoter.
func (s *Shown) Promote(_ context.Context, g deliver.Generation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		return s.fails
	}
	if s.shown == nil {
		s.shown = map[fleet.Certname]deliver.Generation{}
	}
	s.shown[g.Node] = g
	return nil
}

// Fail makes it fail from now on; nil: not any more.
func (s *Shown) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = err
}

// Of is what was promoted of a node; zero when that is nothing.
func (s *Shown) Of(node fleet.Certname) deliver.Generation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown[node]
}
