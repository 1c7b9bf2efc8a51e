// Package intaketest holds the conformance suite for intake.Store with
// intake.Inventory, and a fake of both in memory.
package intaketest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/intake"
	"github.com/tutti-project/tutti/internal/inventory"
)

// Fake keeps everything in memory.
type Fake struct {
	mu     sync.Mutex
	queue  map[fleet.Certname]intake.Set
	stored map[fleet.Certname]intake.Stored
}

// NewFake returns an empty one.
func NewFake() *Fake {
	return &Fake{queue: map[fleet.Certname]intake.Set{}, stored: map[fleet.Certname]intake.Stored{}}
}

// EnqueueFacts implements intake.Store.
func (f *Fake) EnqueueFacts(_ context.Context, s intake.Set) (intake.Load, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old, there := f.queue[s.Node]
	newest := max(old.Number, f.stored[s.Node].Number)
	if s.Number < newest {
		return intake.Load{}, fault.New(fault.Conflict, "number %d was accepted", newest)
	}
	if s.Number == newest {
		return intake.Load{}, nil
	}
	for _, at := range []time.Time{old.AcceptedAt, f.stored[s.Node].AcceptedAt} {
		if !s.AcceptedAt.After(at) {
			s.AcceptedAt = at.Add(time.Microsecond)
		}
	}
	f.queue[s.Node] = s
	grown := intake.Load{Sets: 1, Bytes: int64(len(s.Values))}
	if there {
		grown = intake.Load{Bytes: int64(len(s.Values) - len(old.Values))}
	}
	return grown, nil
}

// QueuedFacts implements intake.Store.
func (f *Fake) QueuedFacts(_ context.Context, node fleet.Certname) (intake.Set, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.queue[node]
	if !ok {
		return s, fault.New(fault.NotFound, "nothing is queued of %s", node)
	}
	return s, nil
}

// DueFacts implements intake.Store.
func (f *Fake) DueFacts(_ context.Context, n int) ([]intake.Set, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	due := slices.SortedFunc(maps.Values(f.queue), func(a, b intake.Set) int {
		return cmp.Or(a.AcceptedAt.Compare(b.AcceptedAt), cmp.Compare(a.Node, b.Node))
	})
	return due[:min(n, len(due))], nil
}

// DequeueFacts implements intake.Store.
func (f *Fake) DequeueFacts(_ context.Context, sets []intake.Set) (gone intake.Load, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range sets {
		if is, ok := f.queue[s.Node]; ok && is.Number == s.Number {
			delete(f.queue, s.Node)
			gone.Sets++
			gone.Bytes += int64(len(is.Values))
		}
	}
	return gone, nil
}

// QueuedLoad implements intake.Store.
func (f *Fake) QueuedLoad(context.Context) (load intake.Load, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.queue {
		load.Sets++
		load.Bytes += int64(len(s.Values))
		if load.Oldest.IsZero() || s.AcceptedAt.Before(load.Oldest) {
			load.Oldest = s.AcceptedAt
		}
	}
	return load, nil
}

// SaveFacts implements intake.Inventory.
func (f *Fake) SaveFacts(_ context.Context, s intake.Set) (intake.Stored, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old, known := f.stored[s.Node]
	late := s.Number != 0 && s.Number <= old.Number || !s.AcceptedAt.IsZero() && s.AcceptedAt.Before(old.AcceptedAt)
	if late {
		if old.Number < s.Number { // it is spent: the same one must not come again as a new one
			old.Number = s.Number
			f.stored[s.Node] = old
		}
		old.Values, old.Changed = nil, 0
		return old, nil
	}
	changes, err := inventory.Diff(old.Values, s.Values)
	if err != nil {
		return intake.Stored{}, err
	}
	if s.AcceptedAt.IsZero() {
		s.AcceptedAt = time.Now()
	}
	paths := inventory.Paths(changes)
	s.Number = max(s.Number, old.Number)
	is := intake.Stored{Set: s, Seq: old.Seq, Changed: len(paths)}
	if !known || old.Digest != s.Digest {
		is.Seq++
	}
	f.stored[s.Node] = is
	is.Values = nil
	return is, nil
}

// Facts implements intake.Inventory.
func (f *Fake) Facts(_ context.Context, node fleet.Certname) (intake.Stored, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.stored[node]
	if !ok {
		return s, fault.New(fault.NotFound, "node %s has no facts", node)
	}
	s.Changed = 0
	return s, nil
}
