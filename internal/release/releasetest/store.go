// Package releasetest has what tests of releases need: a Store in memory, the conformance suite of stores, and a fleet of
// nodes with previews, deliveries and runs, in which the server can be stopped between any two steps.
//
// All of it may be used concurrently.
package releasetest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/release"
	"github.com/tutti-project/tutti/internal/store/memory"
)

// Store is release.Store in memory.
type Store struct {
	mu       sync.Mutex
	releases *memory.Rows[kept]
	noted    int64
}

type kept struct {
	release   release.Release
	targets   []release.Target
	entries   []release.Entry
	approvals []release.Approval
}

// NewStore returns an empty store.
func NewStore() *Store { return &Store{releases: memory.NewRows[kept]("release")} }

var _ release.Store = (*Store)(nil)

func (k *kept) copy() release.Release {
	r := k.release
	r.Counts, r.Waves, r.Needs = maps.Clone(r.Counts), slices.Clone(r.Waves), slices.Clone(r.Needs)
	return r
}

func (s *Store) note(k *kept, entries []release.Entry) {
	for _, e := range entries {
		s.noted++
		e.Number = s.noted
		k.entries = append(k.entries, e)
	}
}

// CreateRelease implements release.Store.
func (s *Store) CreateRelease(_ context.Context, r release.Release, targets []release.Target, entries []release.Entry) (release.Release, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.releases.Add(func(id int64) *kept {
		r.ID, r.Revision = id, 1
		r.Tally(release.CountWaves(targets))
		return &kept{release: r, targets: slices.Clone(targets)}
	})
	for i := range k.targets {
		k.targets[i].Revision = 1
	}
	k.release = k.copy()
	s.note(k, entries)
	return k.copy(), nil
}

// Release implements release.Store.
func (s *Store) Release(_ context.Context, id int64) (release.Release, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.releases.Find(id)
	if err != nil {
		return release.Release{}, err
	}
	return k.copy(), nil
}

// Releases implements release.Store.
func (s *Store) Releases(_ context.Context, page release.Page) ([]release.Release, error) {
	return memory.Newest(s.all(), page, func(r release.Release) (int64, fleet.Environment, release.State) { return r.ID, r.Environment, r.State }), nil
}

// OpenReleases implements release.Store.
func (s *Store) OpenReleases(context.Context) ([]release.Release, error) {
	return slices.DeleteFunc(s.all(), func(r release.Release) bool { return r.State.Final() }), nil
}

func (s *Store) all() (all []release.Release) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.releases.All() {
		all = append(all, k.copy())
	}
	return all
}

// Targets implements release.Store.
func (s *Store) Targets(_ context.Context, id int64, page release.TargetPage) (found []release.Target, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.releases.Get(id)
	if k == nil {
		return nil, nil
	}
	for _, t := range k.targets {
		if t.Number > page.After && len(found) < page.Limit && (len(page.States) == 0 || slices.Contains(page.States, t.State)) &&
			(page.Wave == 0 || t.Wave == page.Wave) && (page.Node == "" || t.Node == page.Node) && t.Revision > page.Since {
			found = append(found, t)
		}
	}
	return found, nil
}

// SaveRelease implements release.Store.
func (s *Store) SaveRelease(_ context.Context, c release.Change) (release.Release, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.releases.Find(c.Release.ID)
	if err != nil {
		return release.Release{}, err
	}
	if k.release.Revision != c.Base {
		return release.Release{}, fault.New(fault.Conflict, "release %d is another by now", c.Release.ID)
	}
	r, from := k.release, c.Release
	r.MaxFailures, r.State, r.Hold, r.Until, r.Reason, r.Kill = from.MaxFailures, from.State, from.Hold, from.Until, from.Reason, from.Kill
	r.Wave, r.Waves, r.Needs, r.StartedAt, r.EndedAt = from.Wave, from.Waves, from.Needs, from.StartedAt, from.EndedAt
	r.Revision++
	for _, t := range c.Targets {
		was := &k.targets[t.Number-1]
		was.Round, was.State, was.Reason, was.Generation, was.Report = t.Round, t.State, t.Reason, t.Generation, t.Report
		was.RunEnded, was.RunChanged, was.Revision = t.RunEnded, t.RunChanged, r.Revision
	}
	r.Tally(release.CountWaves(k.targets))
	k.release = r
	k.release = k.copy()
	s.note(k, c.Entries)
	return k.copy(), nil
}

// Entries implements release.Store.
func (s *Store) Entries(_ context.Context, id int64) ([]release.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.releases.Get(id); k != nil {
		return slices.Clone(k.entries), nil
	}
	return nil, nil
}

// AddApproval implements release.Store.
func (s *Store) AddApproval(_ context.Context, id int64, a release.Approval) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.releases.Find(id)
	if err != nil {
		return err
	}
	k.approvals = slices.DeleteFunc(k.approvals, func(b release.Approval) bool { return a.Role == b.Role && a.By == b.By })
	k.approvals = append(k.approvals, a)
	slices.SortFunc(k.approvals, func(a, b release.Approval) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Role, b.Role), cmp.Compare(a.By, b.By))
	})
	return nil
}

// Approvals implements release.Store.
func (s *Store) Approvals(_ context.Context, id int64) ([]release.Approval, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.releases.Get(id); k != nil {
		return slices.Clone(k.approvals), nil
	}
	return nil, nil
}

// PruneReleases implements release.Store.
func (s *Store) PruneReleases(_ context.Context, before time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.releases.Delete(func(k *kept) bool { return k.release.State.Final() && k.release.EndedAt.Before(before) }), nil
}

// ReleaseDigests implements release.Store.
func (s *Store) ReleaseDigests(context.Context) ([]fleet.Digest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	digests := map[fleet.Digest]bool{}
	for _, k := range s.releases.All() {
		for _, t := range k.targets {
			if d := t.Catalog.Digest; d != "" && !k.release.State.Final() {
				digests[d] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(digests)), nil
}
