// Package factqueuetest holds the conformance suite for factqueue.Store with
// factqueue.Inventory, and a fake of both in memory.
package factqueuetest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/facts/factqueue"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Fake keeps everything in memory.
type Fake struct {
	mu     sync.Mutex
	queue  map[fleet.Certname]factqueue.Set
	stored map[fleet.Certname]factqueue.Stored
}

// NewFake returns an empty one.
func NewFake() *Fake {
	return &Fake{queue: map[fleet.Certname]factqueue.Set{}, stored: map[fleet.Certname]factqueue.Stored{}}
}

// EnqueueFacts implements factqueue.Store.
func (f *Fake) EnqueueFacts(_ context.Context, s factqueue.Set) (factqueue.Load, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old, there := f.queue[s.Node]
	newest := max(old.Number, f.stored[s.Node].Number)
	if s.Number < newest {
		return factqueue.Load{}, fault.New(fault.Conflict, "number %d was accepted", newest)
	}
	if s.Number == newest {
		return factqueue.Load{}, nil
	}
	for _, at := range []time.Time{old.AcceptedAt, f.stored[s.Node].AcceptedAt} {
		if !s.AcceptedAt.After(at) {
			s.AcceptedAt = at.Add(time.Microsecond)
		}
	}
	f.queue[s.Node] = s
	grown := factqueue.Load{Sets: 1, Bytes: int64(len(s.Values))}
	if there {
		grown = factqueue.Load{Bytes: int64(len(s.Values) - len(old.Values))}
	}
	return grown, nil
}

// QueuedFacts implements factqueue.Store.
func (f *Fake) QueuedFacts(_ context.Context, node fleet.Certname) (factqueue.Set, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.queue[node]
	if !ok {
		return s, fault.New(fault.NotFound, "nothing is queued of %s", node)
	}
	return s, nil
}

// DueFacts implements factqueue.Store.
func (f *Fake) DueFacts(_ context.Context, n int) ([]factqueue.Set, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	due := slices.SortedFunc(maps.Values(f.queue), func(a, b factqueue.Set) int {
		return cmp.Or(a.AcceptedAt.Compare(b.AcceptedAt), cmp.Compare(a.Node, b.Node))
	})
	return due[:min(n, len(due))], nil
}

// DequeueFacts implements factqueue.Store.
func (f *Fake) DequeueFacts(_ context.Context, sets []factqueue.Set) (gone factqueue.Load, err error) {
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

// QueuedLoad implements factqueue.Store.
func (f *Fake) QueuedLoad(context.Context) (load factqueue.Load, err error) {
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

// SaveFacts implements factqueue.Inventory.
func (f *Fake) SaveFacts(_ context.Context, s factqueue.Set) (factqueue.Stored, error) {
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
	changes, err := facts.Diff(old.Values, s.Values)
	if err != nil {
		return factqueue.Stored{}, err
	}
	if s.AcceptedAt.IsZero() {
		s.AcceptedAt = time.Now()
	}
	paths := facts.Paths(changes)
	s.Number = max(s.Number, old.Number)
	is := factqueue.Stored{Set: s, Seq: old.Seq, Changed: len(paths)}
	if !known || old.Digest != s.Digest {
		is.Seq++
	}
	f.stored[s.Node] = is
	is.Values = nil
	return is, nil
}

// Facts implements factqueue.Inventory.
func (f *Fake) Facts(_ context.Context, node fleet.Certname) (factqueue.Stored, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.stored[node]
	if !ok {
		return s, fault.New(fault.NotFound, "node %s has no facts", node)
	}
	s.Changed = 0
	return s, nil
}
