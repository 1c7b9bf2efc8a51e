package deliver

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Teller brings hints to nodes.
type Teller interface {
	// Listens says whether a node is there and understands hints.
	Listens(node fleet.Certname) bool
	// Tell tells a node what it may have. It does not wait for the node.
	Tell(ctx context.Context, node fleet.Certname, p Pointer, apply Apply) error
}

// HinterConfig sets a hinter up. Start from DefaultHinter.
type HinterConfig struct {
	Each time.Duration // least time between two hints to one node
	Rate int           // hints a second, over all nodes
}

// DefaultHinter is what suits most servers: ten thousand nodes are told within a minute,
// and those that compile and export in turns are not told each time.
func DefaultHinter() HinterConfig { return HinterConfig{Each: 10 * time.Second, Rate: 200} }

// Hinter tells nodes that may have another catalog. What changes again before a node is
// told is told once. It remembers at most one entry for each node, and nothing of a node
// that does not listen: that one asks when it comes. What it knows ends with the process.
type Hinter struct {
	Pointer func(ctx context.Context, node fleet.Certname) (Pointer, error)
	Teller  Teller
	Default func() Apply // when nodes apply what nobody says more of
	Log     *slog.Logger
	cfg     HinterConfig

	mu      sync.Mutex                   // guards the rest
	waiting map[fleet.Certname]Apply     // who is to be told
	line    []fleet.Certname             // the same, in order
	told    map[fleet.Certname]time.Time // when, not longer ago than Each
	wake    chan struct{}

	count struct{ told, merged, failed atomic.Uint64 }
}

// NewHinter returns a hinter; Run does the work.
func NewHinter(h *Hinter, cfg HinterConfig) (*Hinter, error) {
	if cfg.Each < 0 || cfg.Rate < 1 {
		return nil, fault.New(fault.Invalid, "hints to one node come at least 0 apart, not %s, and 1 or more a second, not %d", cfg.Each, cfg.Rate)
	}
	if h.Log == nil {
		h.Log = slog.New(slog.DiscardHandler)
	}
	h.cfg, h.waiting, h.told, h.wake = cfg, map[fleet.Certname]Apply{}, map[fleet.Certname]time.Time{}, make(chan struct{}, 1)
	return h, nil
}

// Changed hints that a node's pointer is another one. It never blocks.
func (h *Hinter) Changed(node fleet.Certname, apply Apply) {
	if !h.Teller.Listens(node) {
		return
	}
	h.mu.Lock()
	_, waits := h.waiting[node]
	if was := h.waiting[node]; !waits || urgency(apply) > urgency(was) {
		h.waiting[node] = apply
	}
	if waits {
		h.count.merged.Add(1)
	} else {
		h.line = append(h.line, node)
	}
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default: // it is awake
	}
}

// urgency orders what is said of the same node in hints that become one: what nobody says more of may be meant at once.
func urgency(a Apply) int { return slices.Index([]Apply{Scheduled, "", AtOnce}, a) }

// Run tells nodes until ctx is done.
func (h *Hinter) Run(ctx context.Context) error {
	step := time.Second / time.Duration(h.cfg.Rate)
	for ctx.Err() == nil {
		node, apply, wait := h.next(time.Now())
		if node == "" {
			h.rest(ctx, wait)
			continue
		}
		h.tell(ctx, node, apply)
		h.pause(ctx, step)
	}
	return nil
}

// next takes the first node in line whose turn it is. Without one, wait is how long the
// one takes that is the first to have a turn; zero when nobody is in line.
func (h *Hinter) next(now time.Time) (node fleet.Certname, apply Apply, wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, name := range h.line {
		rest := h.cfg.Each - now.Sub(h.told[name])
		if rest > 0 && !h.told[name].IsZero() {
			if wait == 0 || rest < wait {
				wait = rest
			}
			continue
		}
		apply = h.waiting[name]
		delete(h.waiting, name)
		if i == 0 {
			h.line = h.line[1:]
		} else {
			h.line = slices.Delete(h.line, i, i+1)
		}
		h.told[name] = now
		return name, apply, 0
	}
	if len(h.line) == 0 { // time to forget
		for name, at := range h.told {
			if now.Sub(at) >= h.cfg.Each {
				delete(h.told, name)
			}
		}
	}
	return "", "", wait
}

// rest waits for somebody to be told, or for the turn of those who wait.
func (h *Hinter) rest(ctx context.Context, wait time.Duration) {
	var due <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
	case <-h.wake:
	case <-due:
	}
}

func (h *Hinter) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// tell tells one node what it may have by now. A hint that is lost costs one poll.
func (h *Hinter) tell(ctx context.Context, node fleet.Certname, apply Apply) {
	p, err := h.Pointer(ctx, node)
	if err == nil {
		if apply == "" {
			apply = h.Default()
		}
		err = h.Teller.Tell(ctx, node, p, apply)
	}
	switch {
	case err == nil:
		h.count.told.Add(1)
	case fault.Of(err) != fault.NotFound && ctx.Err() == nil: // it has nothing, or is gone
		h.count.failed.Add(1)
		h.Log.DebugContext(ctx, "node was not told of its catalog, it asks on its schedule", "node", node, "err", err)
	}
}

// HinterStats counts since the start.
type HinterStats struct {
	Told, Merged, Failed uint64
	Waiting              int
}

// Stats may be called at any time.
func (h *Hinter) Stats() HinterStats {
	h.mu.Lock()
	waiting := len(h.line)
	h.mu.Unlock()
	return HinterStats{Told: h.count.told.Load(), Merged: h.count.merged.Load(), Failed: h.count.failed.Load(), Waiting: waiting}
}
