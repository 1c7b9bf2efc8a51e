package compile

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// WanterConfig sets a wanter up. Start from DefaultWanter.
type WanterConfig struct {
	Poll      time.Duration // how often to look without a hint
	Pace      time.Duration // how long changes gather before they are looked at
	Batch     int           // nodes that are considered in one transaction
	Rounds    int           // compilations in a row that only follow exports
	Questions time.Duration // how often what code asked is asked again
	Asking    time.Duration // how long that may take each time
	Refresh   time.Duration // how often to look for old catalogs
	Refreshes int           // how many of them are wanted at once
}

// DefaultWanter is what suits most servers.
func DefaultWanter() WanterConfig {
	return WanterConfig{
		Poll: 2 * time.Second, Pace: 100 * time.Millisecond, Batch: 500, Rounds: 10,
		Questions: time.Minute, Asking: time.Second, Refresh: time.Minute, Refreshes: 20,
	}
}

// WanterParts is what a wanter works with. The settings are asked for each time.
type WanterParts struct {
	Store        Wants
	Standings    Standings
	Readings     Readings
	Reuser       *Reuser
	Environments Environments
	Grouping     Grouping // nil: there are no groups
	Modes        Modes    // nil: every node is in live mode
	Wake         func()   // hints that something is wanted
	Ahead        func() bool
	Follow       func() bool          // what others export
	OnSign       func() bool          // want a first catalog when a certificate is signed
	RefreshAfter func() time.Duration // how old a catalog gets; 0: any age
	Log          *slog.Logger
}

// Wanter decides whose catalog is wanted, and when: because code was deployed, facts
// or groups changed, others export something else, a certificate was signed, or a
// catalog is old. What it goes by is stored (see Wants), so a lost hint costs one
// poll and a crash nothing.
type Wanter struct {
	WanterParts
	cfg    WanterConfig
	wake   chan struct{}
	prints *footprints
	asked  string    // the question that was asked again last
	askAt  time.Time // when to ask the next ones
	oldAt  time.Time // when to look for old catalogs
	count  wanterCounters
}

// NewWanter checks cfg; Run does the work.
func NewWanter(parts WanterParts, cfg WanterConfig) (*Wanter, error) {
	if cfg.Poll <= 0 || cfg.Pace < 0 || cfg.Batch < 1 || cfg.Rounds < 1 || cfg.Questions <= 0 || cfg.Asking <= 0 || cfg.Refresh <= 0 || cfg.Refreshes < 0 {
		return nil, fault.New(fault.Invalid, "the wanter's times, batch %d and rounds %d must be above zero, and refreshes %d not below",
			cfg.Batch, cfg.Rounds, cfg.Refreshes)
	}
	if parts.Log == nil {
		parts.Log = slog.New(slog.DiscardHandler)
	}
	return &Wanter{WanterParts: parts, cfg: cfg, wake: make(chan struct{}, 1), prints: newFootprints(parts.Readings)}, nil
}

// Hint says that something changed. It never blocks.
func (w *Wanter) Hint() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Run looks what changed until ctx is done.
func (w *Wanter) Run(ctx context.Context) error {
	poll := time.NewTicker(w.cfg.Poll)
	defer poll.Stop()
	for {
		if err := w.Step(ctx); err != nil && ctx.Err() == nil {
			w.Log.ErrorContext(ctx, "what changed could not be considered, will retry", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-poll.C:
		case <-w.wake:
			select { // a crowd of changes costs little more than one
			case <-ctx.Done():
				return nil
			case <-time.After(w.cfg.Pace):
			}
		}
	}
}

// Step considers all that changed until now. It may be called instead of Run, not
// beside it.
func (w *Wanter) Step(ctx context.Context) error {
	current, err := w.Environments.Environments(ctx)
	if err != nil {
		return err
	}
	if !w.Ahead() {
		return w.dismiss(ctx)
	}
	for _, step := range []func(context.Context, map[fleet.Environment]fleet.Digest) error{w.deployed, w.noted, w.grouped, w.questions, w.refresh} {
		if err := step(ctx, current); err != nil {
			return err
		}
	}
	return nil
}

// dismiss forgets what changed: nodes are judged when they ask.
func (w *Wanter) dismiss(ctx context.Context) error {
	for {
		changes, err := w.Store.NotedChanges(ctx, w.cfg.Batch)
		if err != nil || len(changes) == 0 {
			return err
		}
		if err := w.Store.Settle(ctx, changes, nil, nil); err != nil {
			return err
		}
	}
}

// inReleased tells which of the nodes' catalogs are staged.
func (w *Wanter) inReleased(ctx context.Context, standings []Standing) (map[fleet.Certname]bool, error) {
	if w.Modes == nil || len(standings) == 0 {
		return nil, nil //nolint:nilnil // a nil map says that none is
	}
	nodes := make([]fleet.Certname, len(standings))
	for i, s := range standings {
		nodes[i] = s.Node
	}
	return w.Modes.InReleased(ctx, nodes)
}

// wanted counts wants and hints to the dispatcher.
func (w *Wanter) wanted(wants []Want) {
	if len(wants) == 0 {
		return
	}
	for _, want := range wants {
		w.count.of(want.Priority).Add(1)
	}
	w.Wake()
}

// WanterStats counts since the start.
type WanterStats struct {
	Code, Facts, Exports, Signed, Background uint64 // wants
	Untouched                                uint64 // nodes that a deploy did not touch
	Stopped                                  uint64 // chains of exports that did not settle
}

type wanterCounters struct {
	code, facts, exports, signed, background, untouched, stopped atomic.Uint64
}

func (c *wanterCounters) of(p Priority) *atomic.Uint64 {
	switch p {
	case NewFacts:
		return &c.facts
	case NewExports:
		return &c.exports
	case Signed:
		return &c.signed
	case Background:
		return &c.background
	case Waited, NewCode, Previewing:
	}
	return &c.code
}

// Stats may be called at any time.
func (w *Wanter) Stats() WanterStats {
	n := &w.count
	return WanterStats{
		Code: n.code.Load(), Facts: n.facts.Load(), Exports: n.exports.Load(), Signed: n.signed.Load(), Background: n.background.Load(),
		Untouched: n.untouched.Load(), Stopped: n.stopped.Load(),
	}
}
