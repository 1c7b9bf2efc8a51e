// Package usagetest has what tests of usage need: a Store in memory, and the conformance suite of stores.
package usagetest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/internal/store/usage"
)

// Fake is usage.Store in memory.
type Fake struct {
	mu  sync.Mutex
	all []usage.Sample
}

var _ usage.Store = (*Fake)(nil)

func dayOf(at time.Time) time.Time { return at.UTC().Truncate(24 * time.Hour) }

// SaveUsage implements usage.Store.
func (f *Fake) SaveUsage(_ context.Context, samples []usage.Sample) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(samples) == 0 || slices.ContainsFunc(f.all, func(s usage.Sample) bool { return dayOf(s.At).Equal(dayOf(samples[0].At)) }) {
		return nil
	}
	f.all = append(f.all, samples...)
	return nil
}

// UsageSamples implements usage.Store.
func (f *Fake) UsageSamples(_ context.Context, since time.Time) (found []usage.Sample, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.all {
		if !s.At.Before(since) {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b usage.Sample) int {
		if order := a.At.Compare(b.At); order != 0 {
			return order
		}
		return strings.Compare(a.Area, b.Area)
	})
	return found, nil
}

// PruneUsage implements usage.Store.
func (f *Fake) PruneUsage(_ context.Context, before time.Time) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := len(f.all)
	f.all = slices.DeleteFunc(f.all, func(s usage.Sample) bool { return s.At.Before(before) })
	return all - len(f.all), nil
}

// RunStore runs the conformance suite of usage.Store on an empty store.
func RunStore(t *testing.T, s usage.Store) {
	t.Helper()
	noon := time.Date(2026, 11, 24, 12, 0, 0, 123456000, time.UTC)
	save := func(at time.Time, sizes ...int64) (samples []usage.Sample) {
		t.Helper()
		for i, size := range sizes {
			samples = append(samples, usage.Sample{At: at, Area: string(rune('a' + i)), Bytes: size})
		}
		if err := s.SaveUsage(t.Context(), samples); err != nil {
			t.Fatal(err)
		}
		return samples
	}
	want := func(what string, since time.Time, want ...usage.Sample) {
		t.Helper()
		got, err := s.UsageSamples(t.Context(), since)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
		}
	}
	want("nothing", time.Time{})
	save(noon)
	second := save(noon, 1, 1<<40)
	save(noon.Add(11*time.Hour), 5, 6) // the same day
	first := save(noon.AddDate(0, 0, -1), 3)
	third := save(noon.Add(13*time.Hour), 7, 8, 9)
	want("all", time.Time{}, slices.Concat(first, second, third)...)
	want("from a time on", noon, slices.Concat(second, third)...)
	if n, err := s.PruneUsage(t.Context(), third[0].At); err != nil || n != 3 {
		t.Errorf("pruned %d, %v, want 3", n, err)
	}
	want("what is left", time.Time{}, third...)
}
