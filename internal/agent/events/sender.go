// Package events brings the events of a node's Puppet runs to the server: at once, in small batches, each
// until it is acknowledged.
//
// A run writes into a Log, which outlives the agent. A Sender reads each run's events in order, sends what is new, and
// keeps what was sent until the server says that it is stored. Nothing is kept of how far a run was sent: after a
// restart, of either side, the server's first answer says it. A run whose writer is gone without a word is ended here.
//
//	Log ──read──► window ──send──► server
//	                 ▲                │
//	                 └─── up to n ────┘ stored; behind a gap: read again
//
// # Gathering
//
// The first event is sent at once. While something is on its way, what comes is gathered for Gather, or until the
// answer is there, or a batch is full.
//
// # Limits
//
// A batch has BatchBytes, a window WindowBytes; more is not read before it is acknowledged. What a Log had to throw
// away is told as the number of events that are missing.
//
// # Errors
//
// A read that fails is logged and tried again; Run returns nil when ctx is done.
//
// # Concurrency
//
// Run owns all state. Taken and Connected may be called by anybody, and return at once.
package events

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Log is what the runs of this node write. Methods are called by one goroutine; Changed may be read by it meanwhile.
type Log interface {
	// Runs names the runs whose events are there, the oldest first.
	Runs() ([]string, error)
	// Open reads a run's events, from the first on that is there.
	Open(run string) (Tail, error)
	// Trim lets go of a run's events up to a number, as far as that is easy. The last event stays: of a run
	// that was killed nothing else says which number its end has.
	Trim(run string, n int) error
	// Forget lets go of a run.
	Forget(run string) error
	// Changed gets a value when there may be more; it may hold one only.
	Changed() <-chan struct{}
}

// Tail reads the events of one run.
type Tail interface {
	// Next is the next events, at most n; none: there are no more now. over says that there never will be. Numbers
	// grow; one that is left out is lost.
	Next(n int) (events []pxp.RunEvent, over bool, err error)
	Close() error
}

// Config is what a Sender needs. Zero limits mean the defaults.
type Config struct {
	Log  Log
	Send func(wire.Message) error // to the server; an error: there is no connection now
	Slog *slog.Logger

	Gather      time.Duration // 50 ms
	Patience    time.Duration // until what was not acknowledged is sent again, at first; 10 s
	Poll        time.Duration // how often the log is looked at without a hint; 5 s
	BatchBytes  int           // 12 KiB: servers keep little room for each connection
	WindowBytes int           // 512 KiB
}

func (c *Config) fill() {
	for limit, usual := range map[*time.Duration]time.Duration{&c.Gather: 50 * time.Millisecond, &c.Patience: 10 * time.Second, &c.Poll: 5 * time.Second} {
		if *limit <= 0 {
			*limit = usual
		}
	}
	if c.BatchBytes <= 0 {
		c.BatchBytes = 12 << 10
	}
	if c.WindowBytes <= 0 {
		c.WindowBytes = 512 << 10
	}
}

// Sender sends what is in a Log.
type Sender struct {
	cfg  Config
	runs map[string]*course // of Run
	wake chan struct{}

	mu        sync.Mutex
	answers   []pxp.RunEventsTaken
	connected bool // since it was looked at
}

// New returns a Sender that Run drives.
func New(cfg Config) *Sender {
	cfg.fill()
	return &Sender{cfg: cfg, runs: map[string]*course{}, wake: make(chan struct{}, 1)}
}

// Connected says that there is a new connection: what was on its way over the old one may be lost.
func (r *Sender) Connected() {
	r.mu.Lock()
	r.connected = true
	r.mu.Unlock()
	r.nudge()
}

// Taken takes an answer of the server.
func (r *Sender) Taken(t pxp.RunEventsTaken) {
	r.mu.Lock()
	r.answers = append(r.answers, t)
	r.mu.Unlock()
	r.nudge()
}

func (r *Sender) nudge() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run sends until ctx is done. What is not acknowledged then is sent by the next one.
func (r *Sender) Run(ctx context.Context) error {
	defer func() {
		for _, c := range r.runs {
			c.close()
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.cfg.Log.Changed():
		case <-r.wake:
		case <-timer.C:
		}
		timer.Reset(r.step(ctx, time.Now()))
	}
}

// step does what is to be done now, and says when to look again.
func (r *Sender) step(ctx context.Context, now time.Time) time.Duration {
	r.hear(ctx)
	names, err := r.cfg.Log.Runs()
	if err != nil {
		r.cfg.Slog.ErrorContext(ctx, "events of runs not listed, will retry", "err", err)
		return r.cfg.Poll
	}
	next := r.cfg.Poll
	for _, name := range names {
		c := r.runs[name]
		if c == nil {
			c = newCourse(&r.cfg, name)
			r.runs[name] = c
		}
		if err := c.fill(now); err != nil {
			r.cfg.Slog.ErrorContext(ctx, "events of a run not read, will retry", "run", name, "err", err)
			continue
		}
		if c.done() {
			r.forget(ctx, c)
			continue
		}
		next = min(next, c.send(now))
	}
	return max(next, 0)
}

// hear takes in what others said meanwhile.
func (r *Sender) hear(ctx context.Context) {
	r.mu.Lock()
	answers, connected := r.answers, r.connected
	r.answers, r.connected = nil, false
	r.mu.Unlock()
	for _, t := range answers {
		if c := r.runs[t.Run]; c != nil {
			c.taken(t.Last)
			if err := r.cfg.Log.Trim(t.Run, t.Last); err != nil {
				r.cfg.Slog.WarnContext(ctx, "events that are stored not removed", "run", t.Run, "err", err)
			}
		}
	}
	if connected {
		for _, c := range r.runs {
			c.again()
		}
	}
}

func (r *Sender) forget(ctx context.Context, c *course) {
	c.close()
	delete(r.runs, c.id)
	if err := r.cfg.Log.Forget(c.id); err != nil {
		r.cfg.Slog.ErrorContext(ctx, "a run whose events are stored not removed, will retry", "run", c.id, "err", err)
	}
}
