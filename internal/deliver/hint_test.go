package deliver_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// ears is a deliver.Teller that writes down what it hears.
type ears struct {
	mu    sync.Mutex
	start time.Time
	deaf  map[fleet.Certname]bool
	heard []string
}

func (e *ears) Listens(node fleet.Certname) bool { return !e.deaf[node] }

func (e *ears) Tell(_ context.Context, node fleet.Certname, p deliver.Pointer, apply deliver.Apply) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if node == "away" {
		return fault.New(fault.Unavailable, "not connected")
	}
	e.heard = append(e.heard, fmt.Sprintf("%s %s %s %s", time.Since(e.start).Truncate(time.Second), node, p.UUID, apply))
	return nil
}

func (e *ears) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.heard...)
}

// hinting runs a hinter whose nodes may have what version says, while act acts.
func hinting(t *testing.T, cfg deliver.HinterConfig, act func(h *deliver.Hinter, e *ears, version *atomic.Value)) (*deliver.Hinter, *ears) {
	t.Helper()
	e := &ears{start: time.Now(), deaf: map[fleet.Certname]bool{"deaf": true}}
	version := new(atomic.Value)
	version.Store("v1")
	h, err := deliver.NewHinter(&deliver.Hinter{
		Pointer: func(_ context.Context, node fleet.Certname) (deliver.Pointer, error) {
			if node == "empty" {
				return deliver.Pointer{}, fault.New(fault.NotFound, "nothing yet")
			}
			return deliver.Pointer{UUID: version.Load().(string)}, nil
		},
		Teller: e, Default: func() deliver.Apply { return "as set" },
	}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- h.Run(ctx) }()
	act(h, e, version)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return h, e
}

func TestHints(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, e := hinting(t, deliver.HinterConfig{Each: 10 * time.Second, Rate: 100}, func(h *deliver.Hinter, _ *ears, version *atomic.Value) {
			h.Changed("web-1", "")
			h.Changed("deaf", "")
			h.Changed("empty", "")
			h.Changed("away", "")
			synctest.Wait()
			<-time.After(3 * time.Second)
			version.Store("v2")
			h.Changed("web-1", "")
			<-time.After(3 * time.Second)
			version.Store("v3")
			h.Changed("web-1", deliver.AtOnce) // of both this is what counts
			h.Changed("web-1", deliver.Scheduled)
			h.Changed("web-2", deliver.Scheduled) // waits for nobody
			h.Changed("web-3", deliver.Scheduled)
			h.Changed("web-3", "") // the more urgent one counts
			<-time.After(time.Minute)
		})
		want := []string{"0s web-1 v1 as set", "6s web-2 v3 scheduled", "6s web-3 v3 as set", "10s web-1 v3 now"}
		if diff := cmp.Diff(want, e.all()); diff != "" {
			t.Errorf("heard (-want +got):\n%s", diff)
		}
		if got := (deliver.HinterStats{Told: 4, Merged: 3, Failed: 1}); h.Stats() != got {
			t.Errorf("counted %+v, want %+v", h.Stats(), got)
		}
	})
}

// TestAFleetIsToldInTurn: ten thousand changes at once are spread.
func TestAFleetIsToldInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, e := hinting(t, deliver.DefaultHinter(), func(h *deliver.Hinter, e *ears, _ *atomic.Value) {
			for range 3 { // and each of them once, except who is told just now
				for i := range 10_000 {
					h.Changed(fleet.Certname(fmt.Sprint("node-", i)), "")
				}
			}
			<-time.After(time.Second)
			if n := len(e.all()); n > 210 {
				t.Errorf("%d were told within a second", n)
			}
			<-time.After(52 * time.Second)
		})
		if n := len(e.all()); n < 10_000 || n > 10_010 {
			t.Errorf("%d were told", n)
		}
	})
}
