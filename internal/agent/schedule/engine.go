package schedule

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/fault"
)

// looking is how often the clock is looked at while nothing is to be done: timers stand still while a machine sleeps.
const looking = time.Minute

// Engine lets a node run.
type Engine struct {
	cfg      Config
	runner   Runner
	catalogs Catalogs
	store    Store
	log      *slog.Logger
	wake     chan struct{} // somebody told

	mu    sync.Mutex
	state State
}

// New returns an engine that has read its state. One that cannot be read is forgotten: the node runs at once.
func New(cfg Config, runner Runner, catalogs Catalogs, store Store, log *slog.Logger) (*Engine, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, runner: runner, catalogs: catalogs, store: store, log: log, wake: make(chan struct{}, 1)}
	var err error
	e.state, err = store.Load()
	if fault.Is(err, fault.Invalid) {
		log.Warn("what was known of earlier runs is forgotten", "err", err)
		e.state, err = State{}, nil
	}
	return e, err
}

// Tell asks for a run at once. It does not wait for it.
func (e *Engine) Tell(ctx context.Context) {
	e.change(ctx, func(s State) State { return s.Tell(now()) })
	select {
	case e.wake <- struct{}{}:
	default: // it is awake already
	}
}

// State is how the node's runs stand, and what comes next.
func (e *Engine) State() (State, Step) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state, Decide(e.cfg, e.state, now())
}

// now is the wall clock: what it says is compared with what is kept.
func now() time.Time { return time.Now().UTC().Round(0) }

// change makes another state, and keeps it.
func (e *Engine) change(ctx context.Context, how func(State) State) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state = how(e.state)
	if err := e.store.Save(e.state); err != nil {
		e.log.ErrorContext(ctx, "state of the runs not kept", "err", err)
	}
}

// Run lets the node run until ctx is done. A run that goes on then is left to the next process.
func (e *Engine) Run(ctx context.Context) error {
	if s, _ := e.State(); s.Running != "" {
		e.finish(ctx, s.Running)
	}
	for ctx.Err() == nil {
		_, next := e.State()
		if next.Due(now()) {
			e.run(ctx, next.Why)
			continue
		}
		e.sleep(ctx, min(next.At.Sub(now()), looking))
	}
	return nil
}

func (e *Engine) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-e.wake:
	case <-timer.C:
	}
}

// run is one run, from the newest catalog that can be had.
func (e *Engine) run(ctx context.Context, why Why) {
	e.catalogs.Refresh(ctx)
	if ctx.Err() != nil {
		return
	}
	run := uuid.NewString()
	e.change(ctx, func(s State) State { return s.Begin(run, now()) })
	e.log.InfoContext(ctx, "run begins", "run", run, "why", string(why))
	if err := e.runner.Begin(ctx, run); err != nil {
		e.end(ctx, run, Outcome{Status: NotDone, Detail: detail(err)})
		return
	}
	e.finish(ctx, run)
}

// finish waits for a run that began.
func (e *Engine) finish(ctx context.Context, run string) {
	outcome, err := e.runner.Await(ctx, run)
	switch {
	case ctx.Err() != nil:
		return // the next process waits for it
	case err != nil:
		outcome = Outcome{Status: NotDone, Detail: detail(err)}
	}
	e.end(ctx, run, outcome)
}

func (e *Engine) end(ctx context.Context, run string, o Outcome) {
	o.Run = run
	e.change(ctx, func(s State) State { return s.End(o, now()) })
	level := slog.LevelInfo
	if o.Status == NotDone || o.Status == Failed {
		level = slog.LevelWarn
	}
	_, next := e.State()
	e.log.Log(ctx, level, "run ended", "run", run, "status", string(o.Status), "reason", o.Detail, "next", next.At)
}

func detail(err error) string {
	if text := fault.Detail(err); text != "" {
		return text
	}
	return err.Error()
}
