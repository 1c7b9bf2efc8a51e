package inventorytest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// producedLast is when the newest thing of a node was produced; compiled says
// whether catalogs of this server count.
func (s *Fake) producedLast(node inventory.Node, compiled bool) time.Time {
	last := []time.Time{s.facts[node.Certname].ProducedAt, s.reports[node.LatestReport].ProducedAt}
	if c := s.catalogs[node.Certname]; c.Received || compiled {
		last = append(last, c.ProducedAt)
	}
	return slices.MaxFunc(last, time.Time.Compare)
}

func (s *Fake) ensure(name fleet.Certname, now time.Time) inventory.Node {
	node, ok := s.nodes[name]
	if !ok {
		node = inventory.Node{Certname: name, CreatedAt: now}
		s.nodes[name] = node
	}
	return node
}

// DeactivateNode implements inventory.NodeStore.
func (s *Fake) DeactivateNode(_ context.Context, name fleet.Certname, since time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	node := s.ensure(name, since)
	if !s.producedLast(node, true).After(since) && node.DeactivatedAt.Before(since) {
		node.DeactivatedAt = since
		s.nodes[name] = node
	}
	return nil
}

// ConfigureExpiration implements inventory.NodeStore.
func (s *Fake) ConfigureExpiration(_ context.Context, name fleet.Certname, expire bool, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ensure(name, at)
	if !at.Before(s.keeps[name].at) {
		s.keeps[name] = expiration{!expire, at}
	}
	return nil
}

// ExpireNodes implements inventory.NodeStore.
func (s *Fake) ExpireNodes(_ context.Context, before, now time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := 0
	for name, node := range s.nodes {
		if node.DeactivatedAt.IsZero() && node.ExpiredAt.IsZero() && !s.keeps[name].never && s.keeps[name].at.Before(before) &&
			node.CreatedAt.Before(before) && s.producedLast(node, false).Before(before) {
			node.ExpiredAt = now
			s.nodes[name] = node
			count++
		}
	}
	return count, nil
}

// PurgeLeftNodes implements inventory.NodeStore.
func (s *Fake) PurgeLeftNodes(_ context.Context, before time.Time, limit int) ([]fleet.Certname, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := map[fleet.Certname]time.Time{}
	for name, node := range s.nodes {
		since := node.DeactivatedAt
		if since.IsZero() || !node.ExpiredAt.IsZero() && node.ExpiredAt.Before(since) {
			since = node.ExpiredAt
		}
		if !since.IsZero() && since.Before(before) {
			left[name] = since
		}
	}
	names := slices.SortedFunc(maps.Keys(left), func(a, b fleet.Certname) int { return cmp.Or(left[a].Compare(left[b]), cmp.Compare(a, b)) })
	names = names[:min(limit, len(names))]
	for _, name := range names {
		s.forget(name)
	}
	return names, nil
}
