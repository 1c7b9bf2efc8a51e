// Package savedtest has what tests of saved queries need: a Store in memory, and the conformance suite of stores.
//
// All of it may be used concurrently.
package savedtest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory/saved"
	"github.com/tutti-project/tutti/internal/store/memory"
)

// Store is saved.Store in memory.
type Store struct {
	mu      sync.Mutex
	queries *memory.Versions[saved.Query]
}

var _ saved.Store = (*Store)(nil)

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{queries: memory.NewVersions("saved query", func(q *saved.Query) (string, *fleet.Stamp) { return q.Name, &q.Stamp })}
}

// Saved implements saved.Store.
func (s *Store) Saved(context.Context) ([]saved.Query, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queries.Current(), nil
}

// SavedHistory implements saved.Store.
func (s *Store) SavedHistory(_ context.Context, name string) ([]saved.Query, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queries.History(name)
}

// SaveQuery implements saved.Store.
func (s *Store) SaveQuery(_ context.Context, q saved.Query) (saved.Query, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queries.Save(q, func(to *saved.Query, from saved.Query) { to.Definition = from.Definition })
}

// PruneSaved implements saved.Store.
func (s *Store) PruneSaved(_ context.Context, before time.Time, keep int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queries.Prune(before, keep), nil
}

// when is a time that every store can keep.
func when(second int) time.Time { return time.Date(2026, 11, 28, 8, 0, second, 654321000, time.UTC) }

// RunStore runs the conformance suite of saved.Store. open returns an empty store that the test owns.
func RunStore(t *testing.T, open func(t *testing.T) saved.Store) {
	t.Helper()
	s, ctx := open(t), t.Context()
	made := func(name, text string, second int, removed bool) saved.Query {
		return saved.Query{
			Name: name, Stamp: fleet.Stamp{Author: "ann", At: when(second), Removed: removed},
			Definition: saved.Definition{Text: text, Description: "Ünï", Private: true},
		}
	}
	keep := func(q saved.Query, version int) saved.Query {
		t.Helper()
		got, err := s.SaveQuery(ctx, q)
		q.Version = version
		if q.Removed {
			q.Definition = got.Definition
		}
		if diff := cmp.Diff(q, got); err != nil || diff != "" {
			t.Errorf("saved: %v (-want +got):\n%s", err, diff)
		}
		return got
	}
	holds := func(what string, want ...saved.Query) {
		t.Helper()
		got, err := s.Saved(ctx)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
		}
	}
	zed := keep(made("zed", "nodes{}", 1, false), 1)
	one := keep(made("abc", "facts{}", 2, false), 1)
	two := keep(made("abc", "reports{}", 3, false), 2)
	holds("by name, the newest of each", two, zed)
	gone := keep(made("abc", "", 4, true), 3)
	if gone.Text != two.Text {
		t.Errorf("what was removed says %q, not what it said: %q", gone.Text, two.Text)
	}
	holds("what is left", zed)
	got, err := s.SavedHistory(ctx, "abc")
	if diff := cmp.Diff([]saved.Query{gone, two, one}, got); err != nil || diff != "" {
		t.Errorf("history: %v (-want +got):\n%s", err, diff)
	}
	for _, name := range []string{"abc", "never"} {
		if _, err := s.SaveQuery(ctx, made(name, "", 5, true)); fault.Of(err) != fault.NotFound {
			t.Errorf("%s is removed, though it is not there: %v", name, err)
		}
	}
	if _, err := s.SavedHistory(ctx, "never"); fault.Of(err) != fault.NotFound {
		t.Errorf("history of nothing: %v", err)
	}
	if n, err := s.PruneSaved(ctx, when(100), 2); n != 1 || err != nil {
		t.Errorf("%d versions were pruned, not the one that is old: %v", n, err)
	}
}
