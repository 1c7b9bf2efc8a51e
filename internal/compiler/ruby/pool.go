package ruby

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// maxLessons is how many orders a zygote learns from by itself.
const maxLessons = 16

// key names a zygote.
type key struct {
	environment fleet.Environment
	version     fleet.Digest
	reach       string // see compile.Order: what was told to one must not lie in the memory of another
}

func keyOf(o compile.Order) key { return key{o.Environment, o.Version, o.Reach} }

// entry is a zygote that is there or being started.
type entry struct {
	key   key
	ready chan struct{} // closed when zygote and err are set
	z     *zygote
	err   error

	// guarded by Pool.mu
	users    int
	lastUsed time.Time
}

// dead tells that the zygote was there and has ended.
func (e *entry) dead() bool {
	select {
	case <-e.ready:
		return e.z == nil || !e.z.alive()
	default:
		return false
	}
}

// Pool compiles orders with Ruby processes. It does nothing before Run.
type Pool struct {
	cfg      Config
	checkout code.Checkout
	known    compile.Inventory
	log      *slog.Logger

	slots   chan struct{}              // one for each worker that may be busy
	lookups chan struct{}              // one for each lookup that may run
	chores  chan func(context.Context) // work that Run owns
	done    chan struct{}              // closed when Run ends

	mu      sync.Mutex
	entries map[key]*entry
	workers map[*worker]bool // busy and idle
	idle    []*worker        // of all zygotes, least recently used first
	forking int              // workers about to be
	serial  int
	slow    map[key]bool // versions that do not bear learning

	looks   chan chan struct{}           // has Run look at the installation, and is closed then
	engine  atomic.Pointer[installation] // nil while it cannot be used
	trouble atomic.Pointer[error]        // why
	asked   chan struct{}                // closed when it was asked for the first time
	first   sync.Once
}

var _ compile.Compiler = (*Pool)(nil)

// New returns a pool; Run brings it to life. What code asks while it compiles,
// known answers.
func New(cfg Config, checkout code.Checkout, known compile.Inventory, log *slog.Logger) *Pool {
	cfg = cfg.withDefaults()
	return &Pool{
		cfg: cfg, checkout: checkout, known: known, log: log,
		slots:   make(chan struct{}, cfg.Workers),
		lookups: make(chan struct{}, lookupsAtOnce),
		chores:  make(chan func(context.Context)),
		looks:   make(chan chan struct{}),
		asked:   make(chan struct{}),
		done:    make(chan struct{}),
		entries: map[key]*entry{},
		workers: map[*worker]bool{},
		slow:    map[key]bool{},
	}
}

// Run owns the pool's processes until ctx is done, and returns when all of them
// have ended. It may be called once.
func (p *Pool) Run(ctx context.Context) error {
	defer close(p.done)
	if err := prepareDir(p.cfg); err != nil {
		return fmt.Errorf("prepare the compilers' directory: %w", err)
	}
	p.identify(ctx, identifyTries)
	var owned sync.WaitGroup
	defer owned.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tick := time.NewTicker(max(p.cfg.IdleZygote/4, time.Millisecond))
	defer tick.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case chore := <-p.chores:
			owned.Go(func() { chore(ctx) })
		case now := <-tick.C:
			p.endIdle(now)
		case <-look.C:
			p.look(ctx)
		case looked := <-p.looks:
			p.look(ctx)
			close(looked)
		}
	}
}

// lookEvery is how often the installation is looked at: packages are upgraded under running servers.
const lookEvery = 15 * time.Second

// identifyTries is how often Ruby is asked for its version at the start: a process that was killed or got no
// time says nothing of it, and without a version nothing can be compiled.
const identifyTries = 6

// identify finds out what Engine says.
func (p *Pool) identify(ctx context.Context, tries int) {
	pause := 200 * time.Millisecond
	for try := 1; ctx.Err() == nil; try++ {
		found, err := identify(ctx, p.cfg)
		if err == nil {
			p.log.InfoContext(ctx, "engine found", "engine", p.cfg.Name, "ruby", found.interpreter, "is", found.name)
			p.engine.Store(found)
			p.trouble.Store(nil)
			p.first.Do(func() { close(p.asked) })
			return
		}
		before := p.trouble.Swap(&err)
		if try == tries || fault.Is(err, fault.NotFound) {
			if tries > 1 || before == nil || (*before).Error() != err.Error() { // it is said once
				p.log.ErrorContext(ctx, "the engine cannot be used", "engine", p.cfg.Name, "err", err)
			}
			p.first.Do(func() { close(p.asked) })
			return
		}
		p.log.WarnContext(ctx, "the engine did not say what it is, asking again", "engine", p.cfg.Name, "pause", pause, "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause *= 2
	}
}

// look begins anew with an installation that changed: its zygotes end, and what they compile is compiled again. One that
// cannot be used is asked again.
func (p *Pool) look(ctx context.Context) {
	was := p.engine.Load()
	if was != nil && !was.changed() {
		return
	}
	if was != nil {
		p.log.WarnContext(ctx, "the engine's files changed, it is started anew", "engine", p.cfg.Name, "was", was.name)
		p.engine.Store(nil)
		p.endAll()
	}
	p.identify(ctx, 1)
}

// disturbed says whether the installation changed since a compilation began, and then looks at it.
func (p *Pool) disturbed(ctx context.Context) bool {
	if was := p.engine.Load(); was == nil || !was.touched() {
		return false
	}
	p.lookNow(ctx)
	return true
}

// lookNow has Run look at the installation, and waits until it has.
func (p *Pool) lookNow(ctx context.Context) {
	looked := make(chan struct{})
	select {
	case p.looks <- looked:
		select {
		case <-looked:
		case <-p.done:
		}
	case <-p.done:
	case <-ctx.Done():
	}
}

// unusable is why nothing can be compiled.
func (p *Pool) unusable() error {
	return fault.New(fault.Unavailable, "the engine %s cannot be used: %s", p.cfg.Name, p.why())
}

// why is the trouble with the installation.
func (p *Pool) why() error {
	if err := p.trouble.Load(); err != nil {
		return *err
	}
	return fault.New(fault.Unavailable, "it was not asked yet what it is")
}

// own hands work to Run.
func (p *Pool) own(ctx context.Context, chore func(context.Context)) error {
	select {
	case p.chores <- chore:
		return nil
	case <-p.done:
		return fault.New(fault.Unavailable, "the compilers are stopped")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Compile implements compile.Compiler.
func (p *Pool) Compile(ctx context.Context, order compile.Order) (compile.Outcome, error) {
	if err := checkOrder(order, p.cfg.MaxOrderBytes); err != nil {
		return compile.Outcome{}, err
	}
	if p.engine.Load() == nil {
		p.lookNow(ctx) // it may be whole again
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-p.done:
		return compile.Outcome{}, fault.New(fault.Unavailable, "the compilers are stopped")
	case <-ctx.Done():
		return compile.Outcome{}, ctx.Err()
	}
	outcome, err := p.try(ctx, order)
	if p.disturbed(ctx) || err == nil && outcome.Engine != p.Engine(ctx, order.Environment, order.Version) {
		// Half of it may be compiled by one Puppet, and half by another one.
		outcome, err = p.try(ctx, order)
	}
	if gone, ok := errors.AsType[*goneError](err); ok {
		gone.settle(ctx)
		p.log.WarnContext(ctx, "worker died, order is tried once more", "node", order.Node, "err", gone)
		outcome, err = p.try(ctx, order)
	}
	if gone, ok := errors.AsType[*goneError](err); ok {
		gone.settle(ctx)
		err = gone.final()
	}
	return outcome, err
}

// try compiles the order on one worker.
func (p *Pool) try(ctx context.Context, order compile.Order) (compile.Outcome, error) {
	e, err := p.use(ctx, keyOf(order), nil)
	if err != nil {
		return compile.Outcome{}, err
	}
	defer p.unuse(e)
	w, err := p.take(ctx, e.z)
	if err != nil {
		return compile.Outcome{}, err
	}
	outcome, err := w.compile(ctx, order)
	p.giveBack(w)
	p.learn(w, order, err)
	return outcome, err
}

// Warm implements compile.Compiler.
func (p *Pool) Warm(ctx context.Context, env fleet.Environment, version fleet.Digest, samples []compile.Order) error {
	var good []compile.Order
	for _, sample := range samples {
		if checkOrder(sample, p.cfg.MaxOrderBytes) == nil {
			good = append(good, sample)
		}
	}
	e, err := p.use(ctx, key{environment: env, version: version}, good)
	if err != nil {
		return err
	}
	defer p.unuse(e)
	if e.z.lessons.Load() > 0 || len(good) == 0 || p.isSlow(e.key) {
		return nil
	}
	taught := make(chan struct{})
	err = p.own(ctx, func(ctx context.Context) {
		defer close(taught)
		p.teach(ctx, e.z, good)
	})
	if err != nil {
		return err
	}
	select {
	case <-taught:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// use finds or starts the zygote of k and holds it until unuse.
func (p *Pool) use(ctx context.Context, k key, samples []compile.Order) (*entry, error) {
	e := p.entry(ctx, k, samples)
	var err error
	select {
	case <-e.ready:
	case <-p.done:
		err = fault.New(fault.Unavailable, "the compilers are stopped")
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		err = e.err
	}
	if err != nil {
		p.unuse(e)
		return nil, err
	}
	return e, nil
}

func (p *Pool) entry(ctx context.Context, k key, samples []compile.Order) *entry {
	p.mu.Lock()
	e, there := p.entries[k]
	if there && e.dead() {
		there = false
	}
	if !there {
		e = &entry{key: k, ready: make(chan struct{})}
		p.entries[k] = e
	}
	e.users++
	e.lastUsed = time.Now()
	p.trim()
	p.mu.Unlock()
	if there {
		return e
	}
	err := p.own(ctx, func(ctx context.Context) { p.keep(ctx, e, samples) })
	if err != nil { // others may already wait for it
		e.err = fault.New(fault.Unavailable, "the compiler was not started, its first caller gave up")
		p.forget(e)
		close(e.ready)
	}
	return e
}

func (p *Pool) unuse(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.users--
	p.trim()
}

func (p *Pool) forget(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.entries[e.key] == e {
		delete(p.entries, e.key)
	}
}

// trim ends the least recently used zygotes that are too many. Those in use
// stay, so for a while there may be more. The caller holds the lock.
func (p *Pool) trim() {
	for len(p.entries) > p.cfg.Zygotes {
		var oldest *entry
		for _, e := range p.entries {
			if e.users == 0 && (oldest == nil || e.lastUsed.Before(oldest.lastUsed)) {
				oldest = e
			}
		}
		if oldest == nil {
			return
		}
		p.end(oldest)
	}
}

// endIdle ends zygotes that nobody used for a while.
func (p *Pool) endIdle(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.entries {
		if e.users == 0 && now.Sub(e.lastUsed) > p.cfg.IdleZygote {
			p.end(e)
		}
	}
}

// end lets a zygote go; its keeper cleans up. The caller holds the lock.
func (p *Pool) end(e *entry) {
	delete(p.entries, e.key)
	select {
	case <-e.ready:
		if e.z != nil {
			e.z.dismissed.Store(true)
			e.z.kill()
		}
	default: // nobody waits for it and it is not there yet: keep sees that it is unwanted
	}
}

// endAll lets all zygotes go.
func (p *Pool) endAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.entries {
		p.end(e)
	}
}

// wanted tells whether e is still the zygote for its key.
func (p *Pool) wanted(e *entry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.entries[e.key] == e
}

// Engine implements compile.Compiler: one pool has one engine.
func (p *Pool) Engine(context.Context, fleet.Environment, fleet.Digest) string {
	if engine := p.engine.Load(); engine != nil {
		return engine.name
	}
	return ""
}
