package compile

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// WarmerConfig sets a warmer up. Start from DefaultWarmer.
type WarmerConfig struct {
	Samples int           // how many nodes' orders the compiler learns from, at most
	Tries   int           // how often a version is tried that could not be warmed
	Timeout time.Duration // of one try
}

// DefaultWarmer is what suits most servers.
func DefaultWarmer() WarmerConfig {
	return WarmerConfig{Samples: 4, Tries: 3, Timeout: 10 * time.Minute}
}

// WarmerParts is what a warmer works with.
type WarmerParts struct {
	Compiler     Compiler
	History      History
	Orders       Orders
	Environments Environments
	Log          *slog.Logger
}

// Warmer makes the compiler ready for versions before anybody asks for their
// catalogs. It warms one at a time, the one deployed first first, and drops what
// was deployed over.
type Warmer struct {
	WarmerParts
	cfg  WarmerConfig
	wake chan struct{}

	mu      sync.Mutex
	targets map[fleet.Environment]target       // what should be warm and is not
	warm    map[fleet.Environment]fleet.Digest // what is
	left    map[fleet.Environment]fleet.Digest // what could not be warmed
	told    int                                // how often Deployed was called
	heard   bool                               // others may have deployed
	now     fleet.Environment                  // what is being warmed
	drop    context.CancelFunc                 // ends it
}

// NewWarmer checks cfg; Run does the work.
func NewWarmer(parts WarmerParts, cfg WarmerConfig) (*Warmer, error) {
	if cfg.Samples < 0 || cfg.Tries < 1 || cfg.Timeout <= 0 {
		return nil, fault.New(fault.Invalid, "the warmer's samples %d must not be below zero, its tries %d and timeout %s must be above",
			cfg.Samples, cfg.Tries, cfg.Timeout)
	}
	if parts.Log == nil {
		parts.Log = slog.New(slog.DiscardHandler)
	}
	return &Warmer{
		WarmerParts: parts, cfg: cfg, wake: make(chan struct{}, 1),
		targets: map[fleet.Environment]target{}, warm: map[fleet.Environment]fleet.Digest{}, left: map[fleet.Environment]fleet.Digest{},
	}, nil
}

// Deployed hints that env uses version now. It never blocks.
func (w *Warmer) Deployed(env fleet.Environment, version fleet.Digest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told++
	w.aim(env, version)
}

// Heard hints that another server may have deployed. It never blocks.
func (w *Warmer) Heard() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = true
	w.rouse()
}

// rouse has Run look again.
func (w *Warmer) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// aim makes version env's target, unless it is that already or is warm. The
// caller holds mu.
func (w *Warmer) aim(env fleet.Environment, version fleet.Digest) {
	t, waits := w.targets[env]
	if waits && t.version == version || !waits && w.warm[env] == version {
		return
	}
	if w.now == env {
		w.drop() // nobody will ask for what it warms
	}
	w.targets[env] = target{version: version, asked: time.Now()}
	w.rouse()
}

// Run warms until ctx is done. It begins with every environment's current
// version, and looks for what others deployed when it hears of them, and every
// minute: hints get lost.
func (w *Warmer) Run(ctx context.Context) error {
	listed := w.list(ctx)
	for ctx.Err() == nil {
		if w.hears() {
			listed = w.list(ctx)
		}
		wait := time.Minute
		if !listed {
			wait = 5 * time.Second
		}
		env, t, due, until := w.choose()
		if due {
			w.try(ctx, env, t)
			continue
		}
		if until > 0 {
			wait = min(wait, until)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-timer.C:
			listed = w.list(ctx)
		}
		timer.Stop()
	}
	return nil
}

// hears says whether others may have deployed since it was asked last.
func (w *Warmer) hears() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	heard := w.heard
	w.heard = false
	return heard
}

// list aims at what every environment uses. What was read while Deployed was told of something newer is read again.
func (w *Warmer) list(ctx context.Context) bool {
	w.mu.Lock()
	told := w.told
	w.mu.Unlock()
	current, err := w.Environments.Environments(ctx)
	if err != nil {
		if ctx.Err() == nil {
			w.Log.ErrorContext(ctx, "list environments failed, will retry", "err", err)
		}
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.told != told {
		w.heard = true
		w.rouse()
		return true
	}
	for env, version := range current {
		if w.left[env] != version {
			w.aim(env, version)
		}
	}
	return true
}

func (w *Warmer) choose() (env fleet.Environment, t target, due bool, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	env, due, wait = shouldWarm(w.targets, time.Now())
	return env, w.targets[env], due, wait
}

// try warms one version once. Whoever deploys over it meanwhile ends it.
func (w *Warmer) try(parent context.Context, env fleet.Environment, t target) {
	ctx, cancel := context.WithTimeout(parent, w.cfg.Timeout)
	defer cancel()
	w.mu.Lock()
	if w.targets[env] != t {
		w.mu.Unlock()
		return
	}
	w.now, w.drop = env, cancel
	w.mu.Unlock()

	began := time.Now()
	samples := w.samples(ctx, env, t.version)
	err := w.Compiler.Warm(ctx, env, t.version, samples)
	log := w.Log.With("environment", env, "version", t.version.Short(), "samples", len(samples), "wall", time.Since(began))

	superseded := w.settle(parent, env, t, err)
	switch {
	case parent.Err() != nil:
	case superseded:
		log.InfoContext(ctx, "warming ended, another version is deployed")
	case err == nil:
		log.InfoContext(ctx, "environment is warm")
	default:
		log.WarnContext(ctx, "environment could not be warmed", "try", t.tries+1, "err", err)
	}
}

// settle takes note of how a try ended. It says whether the version was deployed
// over meanwhile.
func (w *Warmer) settle(parent context.Context, env fleet.Environment, t target, err error) (superseded bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now, w.drop = "", nil
	switch {
	case w.targets[env] != t:
		return true
	case err == nil:
		delete(w.targets, env)
		w.warm[env] = t.version
	case parent.Err() == nil:
		w.again(env, t)
	}
	return false
}

// again plans the next try, or gives up: then the first compilation pays. The
// caller holds mu.
func (w *Warmer) again(env fleet.Environment, t target) {
	t.tries++
	if t.tries >= w.cfg.Tries {
		delete(w.targets, env)
		w.left[env] = t.version
		return
	}
	t.asked = time.Now().Add(backoff(t.tries))
	w.targets[env] = t
}

// samples are orders of nodes that differed when they were last compiled. Fewer
// are no harm.
func (w *Warmer) samples(ctx context.Context, env fleet.Environment, version fleet.Digest) []Order {
	if w.cfg.Samples == 0 {
		return nil
	}
	rows, err := w.History.Distinct(ctx, env, w.cfg.Samples)
	if err != nil {
		w.Log.WarnContext(ctx, "warming without samples, the history cannot be read", "environment", env, "err", err)
		return nil
	}
	var orders []Order
	for _, c := range rows {
		c.Version, c.Transaction = version, ""
		order, _, err := w.Orders.Build(ctx, c)
		if err != nil {
			w.Log.DebugContext(ctx, "sample left out", "node", c.Node, "err", err)
			continue
		}
		orders = append(orders, order)
	}
	return orders
}
