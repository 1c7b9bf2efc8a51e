package lease

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Timing says how long leases last, and how they are looked after.
type Timing struct {
	TTL   time.Duration // how long a grant lasts without a renewal
	Renew time.Duration // how often grants are renewed
	Stop  time.Duration // how long after the last renewal was asked for the work is stopped; less than TTL
	Poll  time.Duration // how often to look whether a lease that somebody else has is free
}

// Shared is good for records that several servers use: what a dead server did goes on within 15 seconds (TTL and Poll, and
// what the records need).
func Shared() Timing {
	return Timing{TTL: 10 * time.Second, Renew: 3 * time.Second, Stop: 8 * time.Second, Poll: 2 * time.Second}
}

// Sole is good for records that one server uses, which frees all leases when it starts: a server that has nothing to do writes nothing.
func Sole() Timing {
	return Timing{TTL: 48 * time.Hour, Renew: 12 * time.Hour, Stop: 36 * time.Hour, Poll: 2 * time.Second}
}

// askMay is how long the records may take to answer.
const askMay = 8 * time.Second

// Keeper acquires the leases of a server, renews them, and runs work while it has them.
type Keeper struct {
	store  Store
	holder string
	timing Timing
	log    *slog.Logger

	// turn is had by who asks for a lease: all of them together must not take the connections of those who wait for silent records.
	turn chan struct{}

	mu   sync.Mutex
	held map[*tenure]bool
	over bool          // see Yield
	gone chan struct{} // closed then
}

// tenure is the time for which this server has a lease.
type tenure struct {
	Grant
	lost atomic.Bool
	end  context.CancelFunc // of the work's context
	stop *time.Timer        // loses it, unless it is renewed in time
}

// lose ends the work. It does not wait for that.
func (t *tenure) lose() {
	t.lost.Store(true)
	t.end()
}

// NewKeeper returns a keeper of leases for a holder: a server, by a name that it keeps when it starts again and that no other one has.
func NewKeeper(store Store, holder string, timing Timing, log *slog.Logger) *Keeper {
	return &Keeper{store: store, holder: holder, timing: timing, log: log, turn: make(chan struct{}, 1), held: map[*tenure]bool{}, gone: make(chan struct{})}
}

// Run renews what is held until ctx is done. It must outlive all that Once returned.
func (k *Keeper) Run(ctx context.Context) error {
	tick := time.NewTicker(k.timing.Renew)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := k.renew(ctx); err != nil && ctx.Err() == nil {
				k.log.WarnContext(ctx, "leases were not renewed, will retry; what they are for stops if it lasts", "err", err)
			}
		}
	}
}

// renew asks for all that is held, at once.
func (k *Keeper) renew(ctx context.Context) error {
	held := k.current()
	if len(held) == 0 {
		return nil
	}
	grants := make([]Grant, len(held))
	for i, t := range held {
		grants[i] = t.Grant
	}
	asking, cancel := context.WithTimeout(ctx, askMay)
	defer cancel()
	asked := time.Now()
	lost, err := k.store.RenewLeases(asking, grants, k.timing.TTL)
	if err != nil {
		return err
	}
	for _, t := range held {
		if slices.Contains(lost, t.Grant) {
			t.lose()
		} else if t.stop.Stop() { // else it is over already
			t.stop.Reset(k.timing.Stop - time.Since(asked))
		}
	}
	return nil
}

// Yield gives all leases back, and acquires none any more: other servers go on with what was done here. It does not wait for the end of the work.
func (k *Keeper) Yield() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over {
		return
	}
	k.over = true
	close(k.gone)
	for t := range k.held {
		t.lose()
	}
}

// Holds tells whether this server has a lease.
func (k *Keeper) Holds(name string) bool {
	return slices.ContainsFunc(k.current(), func(t *tenure) bool { return t.Name == name })
}

// yielded tells whether Yield was called.
func (k *Keeper) yielded() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.over
}

// current is what is held and was not lost.
func (k *Keeper) current() []*tenure {
	k.mu.Lock()
	defer k.mu.Unlock()
	var held []*tenure
	for t := range k.held {
		if !t.lost.Load() {
			held = append(held, t)
		}
	}
	return held
}

// Once returns what runs work while this server has the lease with a name: when it gets it, again when it got it back, and never
// without. The context of work ends when the lease is lost, or with the one of the whole; work must end soon then, and may be
// started again. What it writes with that context is fenced. What work returns of itself is returned.
func (k *Keeper) Once(name string, work func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for {
			t, working := k.wait(ctx, name)
			if t == nil {
				return nil
			}
			err := work(working)
			lost := t.lost.Load() && ctx.Err() == nil
			k.giveBack(ctx, t)
			if !lost {
				return err
			}
			if k.yielded() {
				k.log.InfoContext(ctx, "a lease was given back", "lease", name, "token", t.Token)
				continue
			}
			k.log.WarnContext(ctx, "a lease was lost, and its work was stopped", "lease", name, "token", t.Token, "err", err)
		}
	}
}

// wait returns when this server has the lease, with the context of its work; nil when ctx is done.
func (k *Keeper) wait(ctx context.Context, name string) (*tenure, context.Context) {
	tick := time.NewTicker(k.timing.Poll)
	defer tick.Stop()
	var trouble error
	for waited := false; ctx.Err() == nil; waited = true {
		if k.yielded() {
			<-ctx.Done()
			return nil, nil
		}
		t, working, err := k.acquire(ctx, name)
		switch {
		case t != nil && waited:
			k.log.InfoContext(ctx, "a lease was taken over", "lease", name, "token", t.Token)
			return t, working
		case t != nil:
			k.log.DebugContext(ctx, "a lease was acquired", "lease", name, "token", t.Token)
			return t, working
		case err != nil && trouble == nil && ctx.Err() == nil: // say it once
			k.log.ErrorContext(ctx, "a lease could not be asked for, will retry; its work waits", "lease", name, "err", err)
		case err == nil && !waited: // whoever waits for what it does can see why
			k.log.InfoContext(ctx, "another server has a lease: its work is done there, or waits until the lease is over; see tutti cluster status", "lease", name)
		}
		trouble = err
		select {
		case <-ctx.Done():
		case <-k.gone:
		case <-tick.C:
		}
	}
	return nil, nil
}

// acquire returns nil without an error when somebody else has the lease.
func (k *Keeper) acquire(ctx context.Context, name string) (*tenure, context.Context, error) {
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	asking, cancel := context.WithTimeout(ctx, askMay)
	defer cancel()
	asked := time.Now()
	g, ok, err := k.store.AcquireLease(asking, name, k.holder, k.timing.TTL)
	if err != nil || !ok {
		return nil, nil, err
	}
	working, end := context.WithCancel(ctx)
	t := &tenure{Grant: g, end: end}
	t.stop = time.AfterFunc(k.timing.Stop-time.Since(asked), t.lose)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held[t] = true
	if k.over { // meanwhile: the work ends at once
		t.lose()
	}
	return t, With(working, g, t.lose), nil
}

// giveBackMay is how long a lease may take to be given back; then it ends by its time.
const giveBackMay = 2 * time.Second

// giveBack ends a tenure, also when ctx is over.
func (k *Keeper) giveBack(ctx context.Context, t *tenure) {
	t.stop.Stop()
	t.end()
	k.mu.Lock()
	delete(k.held, t)
	k.mu.Unlock()
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackMay)
	defer cancel()
	if err := k.store.ReleaseLease(asking, t.Grant); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		k.log.DebugContext(ctx, "a lease was not given back, it ends by its time", "lease", t.Name, "err", err)
	}
}
