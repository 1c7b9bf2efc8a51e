package compile

import (
	"context"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/hint"
)

// DispatcherConfig sets a dispatcher up. Start from DefaultDispatcher.
type DispatcherConfig struct {
	// Worker names this process among all that share the queue. It is the same
	// after a restart (host and data directory), so that leases left behind are
	// taken back at once. Two running processes must never share one.
	Worker      string
	Slots       int           // compilations at once; as many as the compiler has workers
	MaxAttempts int           // attempts at one row before it is failed, if somebody waits for it; see strikes for what counts
	AheadMax    int           // the same if nobody does: what passes must not leave a node on its old catalog
	Lease       time.Duration // how long a dead process keeps rows from others
	Poll        time.Duration // how often to look without a hint
	Timeout     time.Duration // of one attempt, a net below the compiler's own
	Drain       time.Duration // how long running compilations may go on after a stop
	Most        int           // how many of Slots one environment has while others wait; see Share
	Slice       time.Duration // how long a compilation may run before it is stopped because others wait
	// MaxBytes is the largest catalog that is stored.
	MaxBytes int
}

// DefaultDispatcher is what suits most servers.
func DefaultDispatcher(worker string, slots int) DispatcherConfig {
	return DispatcherConfig{
		Worker: worker, Slots: slots, MaxAttempts: 3, AheadMax: 12, Lease: time.Minute, Poll: time.Second,
		Timeout: 10 * time.Minute, Drain: 10 * time.Second, MaxBytes: 128 << 20,
		Most: Share(slots, 0.5), Slice: 20 * time.Second,
	}
}

// DispatcherParts is what a dispatcher works with.
type DispatcherParts struct {
	Queue     Queue
	Compiler  Compiler
	Orders    Orders
	Documents Documents
	Finisher  Finisher  // nil: catalogs stay as they are
	Results   Results   // nil: nobody keeps resources
	Gate      Gate      // nil: the machine is always idle
	History   History   // nil: what failed is not remembered
	Turns     Turns     // nil: nothing is stopped because others wait
	Reuser    *Reuser   // nil: every catalog is compiled
	Verifier  *Verifier // nil: nothing is verified
	// Finished is told of every row that this dispatcher finished; it must not
	// block. Nil: nobody listens.
	Finished func(Compilation)
	// Now is the clock by which leases are over, the same for all who share the queue; nil: this process's.
	Now   func() time.Time
	Relay *hint.Relay // to other servers; nil: there are none
	Log   *slog.Logger
}

// Dispatcher takes wanted compilations from the queue and has them compiled.
// Several may share a queue, each under its own worker name.
type Dispatcher struct {
	DispatcherParts
	strikes strikes
	turns   turns
	slow    slowLog
	cfg     DispatcherConfig
	wake    chan struct{}
	yielded atomic.Bool
	others  func(string) // hints to dispatchers of other servers
	count   dispatcherCounters
}

// NewDispatcher checks cfg; Run does the work.
func NewDispatcher(parts DispatcherParts, cfg DispatcherConfig) (*Dispatcher, error) {
	switch {
	case cfg.Worker == "":
		return nil, fault.New(fault.Invalid, "the compile dispatcher's worker name is empty")
	case cfg.Slots < 1 || cfg.MaxAttempts < 1 || cfg.AheadMax < cfg.MaxAttempts || cfg.MaxBytes < 1:
		return nil, fault.New(fault.Invalid, "the compile dispatcher needs at least one slot, one attempt and one byte (slots %d, attempts %d, bytes %d)",
			cfg.Slots, cfg.MaxAttempts, cfg.MaxBytes)
	case cfg.Lease <= 0 || cfg.Poll <= 0 || cfg.Timeout <= 0 || cfg.Drain < 0:
		return nil, fault.New(fault.Invalid, "the compile dispatcher's lease %s, poll %s and timeout %s must be above zero, and drain %s not below",
			cfg.Lease, cfg.Poll, cfg.Timeout, cfg.Drain)
	case cfg.Most < 1 || cfg.Most >= cfg.Slots && cfg.Slots > 1 || cfg.Slice <= 0:
		return nil, fault.New(fault.Invalid, "the compile dispatcher's share %d must be at least one and less than its %d slots, and the slice %s above zero",
			cfg.Most, cfg.Slots, cfg.Slice)
	}
	if parts.Log == nil {
		parts.Log = slog.New(slog.DiscardHandler)
	}
	if parts.Now == nil {
		parts.Now = time.Now
	}
	d := &Dispatcher{DispatcherParts: parts, cfg: cfg, wake: make(chan struct{}, 1)}
	d.others = parts.Relay.Join("compile", func(string) { d.wakeHere() })
	return d, nil
}

// Wake hints that something is wanted, to all who share the queue. It never blocks.
func (d *Dispatcher) Wake() {
	d.wakeHere()
	d.others("")
}

func (d *Dispatcher) wakeHere() {
	select {
	case d.wake <- struct{}{}:
	default: // a hint is waiting already
	}
}

// Yield makes this dispatcher lease nothing more: what is wanted is left to others. What runs goes on.
func (d *Dispatcher) Yield() { d.yielded.Store(true) }

// Run dispatches until ctx is done. Then it starts nothing more, gives what runs
// Drain to end, kills the rest and gives its leases back. It returns only when
// all that it started has ended.
func (d *Dispatcher) Run(ctx context.Context) error {
	work, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	s := &shift{
		Dispatcher: d, work: work, running: map[lease]running{}, ended: make(chan lease, d.cfg.Slots), strict: terms{}, last: terms{},
	}
	poll, renew := time.NewTicker(d.cfg.Poll), time.NewTicker(d.cfg.Lease/3)
	defer poll.Stop()
	defer renew.Stop()
	s.sweep(ctx)
	for {
		s.start(ctx)
		select {
		case <-ctx.Done():
			s.drain(renew.C, kill) //nolint:contextcheck // what drains has to outlive ctx
			return nil
		case <-d.wake:
		case l := <-s.ended:
			delete(s.running, l)
		case <-poll.C:
			s.sweep(ctx)
			s.makeRoom(ctx)
		case <-renew.C:
			s.renew(ctx)
		}
	}
}

// lease names one lease of one row: a row may come back to us while an attempt
// that lost it has not ended yet.
type lease struct {
	id      int64
	attempt int
}

// running is a compilation that runs.
type running struct {
	Compilation
	kill    context.CancelCauseFunc
	began   time.Time
	stopped bool
}

// shift is the state of one Run; it belongs to Run's goroutine.
type shift struct {
	*Dispatcher
	work    context.Context // of the compilations; outlives Run's while draining
	running map[lease]running
	ended   chan lease // never full: it has room for all slots
	tidied  bool       // leases of an earlier life are returned
	strict  terms      // see Offer.Strict
	last    terms      // see Offer.Last
}

// maxLeases is how often a row is leased: one that was lost with so many servers may have
// killed them.
const maxLeases = 100

// sweep makes leases wanted again that ran out, and once those that this worker
// held when it died.
func (s *shift) sweep(ctx context.Context) {
	worker := ""
	if !s.tidied {
		worker = s.cfg.Worker
	}
	n, err := s.Queue.ReturnLeases(ctx, worker, s.Now(), maxLeases)
	if err != nil {
		s.report(ctx, "return leases failed, will retry", err)
		return
	}
	s.tidied = true
	s.count.returned.Add(uint64(max(0, n)))
}

// start leases as many rows as there is room for and begins to compile them.
func (s *shift) start(ctx context.Context) {
	if !s.tidied || s.yielded.Load() || ctx.Err() != nil {
		return // what we lease now would be taken for a lease of an earlier life
	}
	for _, p := range next(s.situation(ctx)) {
		rows, err := s.Queue.Lease(ctx, s.offer(p))
		if err != nil {
			s.report(ctx, "lease compilations failed, will retry", err)
			return
		}
		for _, c := range rows {
			s.count.leased.Add(1)
			s.begin(c) //nolint:contextcheck // a compilation has to outlive ctx while it drains
		}
		if len(rows) > 0 {
			return
		}
	}
}

func (s *shift) offer(p pick) Offer {
	now := s.Now()
	return Offer{
		Worker: s.cfg.Worker, Rows: p.n, Worst: p.worst, Most: s.cfg.Most, Strict: s.strict.now(now), Last: s.last.now(now),
		Now: now, Until: now.Add(s.cfg.Lease),
	}
}

func (s *shift) situation(ctx context.Context) situation {
	now := situation{slots: s.cfg.Slots, running: len(s.running), room: Idle}
	if s.Gate != nil {
		now.room = s.Gate.Room(ctx)
	}
	for _, r := range s.running {
		if r.Priority >= Background {
			now.background++
		}
	}
	s.count.room.Store(int64(now.room))
	return now
}

func (s *shift) begin(c Compilation) {
	ctx, kill := context.WithCancelCause(s.work)
	s.running[lease{c.ID, c.Attempts}] = running{Compilation: c, kill: kill, began: time.Now()}
	s.count.running.Add(1)
	go func() {
		defer s.count.running.Add(-1)
		defer kill(nil)
		s.attempt(ctx, c)
		s.ended <- lease{c.ID, c.Attempts}
	}()
}

// renew keeps the leases of what runs, and stops what lost its lease.
func (s *shift) renew(ctx context.Context) {
	if len(s.running) == 0 {
		return
	}
	ids := make([]int64, 0, len(s.running))
	for l := range s.running {
		ids = append(ids, l.id)
	}
	held, err := s.Queue.Renew(ctx, s.cfg.Worker, ids, s.Now().Add(s.cfg.Lease))
	if err != nil {
		s.report(ctx, "renew leases failed, will retry", err)
		return
	}
	keep := map[int64]bool{}
	for _, id := range held {
		keep[id] = true
	}
	for l, r := range s.running {
		if !keep[l.id] {
			r.kill(nil)
		}
	}
}

// drain waits for what runs, then kills it, then gives all leases back.
func (s *shift) drain(renew <-chan time.Time, kill func()) {
	ctx := s.work // not cancelled before kill
	limit := time.NewTimer(s.cfg.Drain)
	defer limit.Stop()
	for len(s.running) > 0 {
		select {
		case l := <-s.ended:
			delete(s.running, l)
		case <-renew:
			s.renew(ctx)
		case <-limit.C:
			s.Log.Info("compilations are killed, the server stops", "running", len(s.running))
			kill()
		}
	}
	if !s.tidied {
		return
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	// A stop is not the row's fault: no number of attempts fails it here.
	if _, err := s.Queue.ReturnLeases(last, s.cfg.Worker, s.Now(), math.MaxInt32); err != nil {
		s.report(last, "return leases failed, they will run out", err)
	}
}

// report logs an error, unless it only says that we are to stop.
func (s *shift) report(ctx context.Context, msg string, err error) {
	if ctx.Err() == nil {
		s.Log.ErrorContext(ctx, msg, "err", err)
	}
}
