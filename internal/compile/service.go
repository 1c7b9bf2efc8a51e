package compile

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// ServiceConfig sets a service up. Start from DefaultService.
type ServiceConfig struct {
	Patience   time.Duration // how long a request waits before it is told to come back
	Poll       time.Duration // how often a waiter looks without a hint
	MaxWaiters int           // more are told to come back at once
}

// DefaultService is what suits most servers.
func DefaultService() ServiceConfig {
	return ServiceConfig{Patience: 5 * time.Second, Poll: time.Second, MaxWaiters: 1000}
}

// ServiceParts is what a service works with.
type ServiceParts struct {
	Queue     Queue
	Versions  Versions
	Documents Documents
	Packs     *Packs  // nil: no catalog is packed here
	Reuser    *Reuser // nil: every catalog is compiled
	Pauses    Pauses  // nil: nobody pauses
	// Kept is the compilation whose catalog a node has while a newer one is held.
	Kept func(ctx context.Context, node fleet.Certname) (Compilation, error)
	Wake func() // hints to a dispatcher that something is wanted; nil: none is here
	// Now is the clock by which rests are over; see DispatcherParts.
	Now func() time.Time
	Log *slog.Logger
}

// Service gives nodes their catalogs.
type Service struct {
	ServiceParts
	cfg     ServiceConfig
	waiters *waiters
	judging chan struct{} // one for each reuse that is looked for
	pace    pace
	count   serviceCounters

	measuring sync.Mutex // held by who measures the load
	measured  sync.Mutex // guards the rest
	load      load
	loadAt    time.Time
}

// NewService checks cfg.
func NewService(parts ServiceParts, cfg ServiceConfig) (*Service, error) {
	if cfg.Patience <= 0 || cfg.Poll <= 0 || cfg.MaxWaiters < 1 {
		return nil, fault.New(fault.Invalid, "the catalog service's patience %s, poll %s and number of waiters %d must be above zero",
			cfg.Patience, cfg.Poll, cfg.MaxWaiters)
	}
	if parts.Log == nil {
		parts.Log = slog.New(slog.DiscardHandler)
	}
	if parts.Wake == nil {
		parts.Wake = func() {}
	}
	if parts.Now == nil {
		parts.Now = time.Now
	}
	return &Service{ServiceParts: parts, cfg: cfg, waiters: newWaiters(cfg.MaxWaiters), judging: make(chan struct{}, judgedAtOnce*runtime.GOMAXPROCS(0))}, nil
}

// Ask is a node's question for its catalog.
type Ask struct {
	Node        fleet.Certname
	Environment fleet.Environment
	Version     fleet.Digest    // empty: the environment's current one
	FactsSeq    int64           // of the facts that came with the question, or are known
	Transaction string          // transaction_uuid; a repeat with the same one gets the same catalog; see standIn
	Trusted     json.RawMessage // $trusted
	Static      bool            // the agent takes inlined file metadata
	Packed      bool            // it takes gzip
	Patience    time.Duration   // how long this asker waits; zero: as the service is set up
}

// Answer is a catalog as an agent reads it.
type Answer struct {
	Catalog     []byte
	Packed      bool        // Catalog is in gzip's format
	Rich        bool        // it holds values that plain JSON has no types for
	Compilation Compilation // which compilation it comes from
	Held        bool        // the brake holds the newest catalog: this is the one that the node has
}

// Catalog finds or wants the catalog that a asks for and waits a moment for it.
// It returns *Error when the node's code does not compile, NotFound for an
// environment without a version, Unavailable with RetryAfter when the catalog is
// not ready in time, and faults of the stores. Who goes away while waiting
// cancels nothing.
func (s *Service) Catalog(ctx context.Context, a Ask) (Answer, error) {
	s.count.asked.Add(1)
	if a.Version == "" {
		var err error
		if a.Version, err = s.Versions.Current(ctx, a.Environment); err != nil {
			return Answer{}, err
		}
	}
	patience, cancel := context.WithTimeout(ctx, cmp.Or(a.Patience, s.cfg.Patience))
	defer cancel()
	transaction := cmp.Or(a.Transaction, standIn(time.Now()))
	if answer, ok := s.reuse(ctx, a); ok {
		return answer, nil
	}
	for range 3 { // a row can vanish under a waiter, but not again and again
		c, err := s.obtain(ctx, patience, a, transaction)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return Answer{}, err
		}
		answer, err := s.answer(ctx, a, c)
		if fault.Of(err) != fault.NotFound || err == nil {
			return answer, err
		}
		s.count.vanished.Add(1)
		s.Log.ErrorContext(ctx, "catalog is not in the store any more, compiling it again", "node", a.Node, "compilation", c.ID, "err", err)
		transaction = "" // so that the row without a document does not answer again
	}
	s.count.later.Add(1)
	return Answer{}, s.comeBack(ctx, a)
}

// judgedAtOnce is how many questions are worked on at once for each core. When a whole
// fleet asks, whatever else the server does would otherwise wait behind all of them.
const judgedAtOnce = 4

// reuse answers with the stored catalog, if that stands.
func (s *Service) reuse(ctx context.Context, a Ask) (Answer, bool) {
	if s.Reuser == nil {
		return Answer{}, false
	}
	select {
	case s.judging <- struct{}{}:
		defer func() { <-s.judging }()
	case <-ctx.Done():
		return Answer{}, false
	}
	found, ok := s.Reuser.Find(ctx, Wish{
		Node: a.Node, Environment: a.Environment, Version: a.Version, Trusted: a.Trusted, Transaction: a.Transaction, Priority: Waited,
	})
	if !ok {
		return Answer{}, false
	}
	answer, err := s.answer(ctx, a, found)
	if err != nil {
		s.Log.ErrorContext(ctx, "stored catalog cannot be read, compiling it again", "node", a.Node, "compilation", found.ID, "err", err)
		return Answer{}, false
	}
	return answer, true
}

// obtain wants the compilation and returns it when it has ended.
func (s *Service) obtain(ctx, patience context.Context, a Ask, transaction string) (Compilation, error) {
	c, err := s.Queue.Want(ctx, Want{
		Node: a.Node, Environment: a.Environment, Version: a.Version, FactsSeq: a.FactsSeq,
		Transaction: transaction, Trusted: a.Trusted, Priority: Waited, At: time.Now(),
	})
	if err != nil || finished(c) {
		return c, err
	}
	if c.State == Wanted {
		if p, paused := PauseOf(s.measure(ctx).pauses, c.Environment); paused {
			s.count.later.Add(1)
			return c, s.paused(a, p)
		}
		s.Wake()
	}
	done, leave, ok := s.waiters.join(c.ID)
	if !ok {
		s.count.shed.Add(1)
		return c, s.comeBack(ctx, a)
	}
	defer leave()
	c, err = s.wait(patience, done, c.ID)
	switch {
	case ctx.Err() != nil:
		return c, ctx.Err()
	case patience.Err() != nil && !finished(c):
		s.count.later.Add(1)
		if s.Now().Before(c.RestsUntil) {
			return c, s.inTrouble(ctx, a, c)
		}
		return c, s.comeBack(ctx, a)
	}
	return c, err
}

// wait looks at the row now (it may have ended before anybody waited), when it
// is told to, and every now and then, as another process may finish it.
func (s *Service) wait(patience context.Context, done <-chan struct{}, id int64) (Compilation, error) {
	poll := time.NewTicker(s.cfg.Poll)
	defer poll.Stop()
	for {
		c, err := s.Queue.Compilation(patience, id)
		if err != nil || finished(c) {
			return c, err
		}
		select {
		case <-patience.Done():
			return c, patience.Err()
		case <-done:
			done = nil // closed once; if the row is not ended after all, polling goes on
		case <-poll.C:
		}
	}
}

func finished(c Compilation) bool { return c.State == Done || c.State == Failed }

func (s *Service) answer(ctx context.Context, a Ask, c Compilation) (Answer, error) {
	if c.State == Failed {
		s.count.failed.Add(1)
		return Answer{Compilation: c}, c.Err
	}
	answer := Answer{Compilation: c}
	var err error
	if c.Staged { // the asker wanted it plain, so the brake holds it
		if c, err = s.Kept(ctx, a.Node); err != nil {
			return answer, err
		}
		answer.Compilation, answer.Held = c, true
		s.count.held.Add(1)
	}
	stamp := catalog.Stamp{Version: c.Version, UUID: c.UUID, Static: a.Static}
	if a.Packed && s.Packs != nil {
		answer.Packed = true
		answer.Catalog, answer.Rich, err = s.Packs.Packed(ctx, c.Catalog, stamp)
	} else {
		answer.Catalog, answer.Rich, err = s.rendered(ctx, c.Catalog, stamp)
	}
	if err != nil {
		return Answer{}, err
	}
	s.count.served.Add(1)
	return answer, nil
}

func (s *Service) rendered(ctx context.Context, digest fleet.Digest, stamp catalog.Stamp) (wire []byte, rich bool, err error) {
	document, err := s.Documents.Document(ctx, digest)
	if err != nil {
		return nil, false, err
	}
	wire, err = catalog.Render(document, stamp)
	return wire, catalog.Rich(wire), err
}

// Finished is a hint that a row has ended. It never blocks.
func (s *Service) Finished(c Compilation) {
	s.pace.note(c.Cost.Wall)
	s.waiters.wake(c.ID)
}

// FinishedElsewhere is a hint that another server has ended a row; 0: any. It never blocks.
func (s *Service) FinishedElsewhere(id int64) {
	if id == 0 {
		s.waiters.wakeAll()
		return
	}
	s.waiters.wake(id)
}

// comeBack tells a node when to ask again.
func (s *Service) comeBack(ctx context.Context, a Ask) error {
	after := retryAfter(s.measure(ctx), rand.Float64()) //nolint:gosec // only spreads a crowd
	return fault.Later(after, "the catalog of %s is being compiled, come back in %s", a.Node, after)
}

// inTrouble tells a node that its catalog could not be tried, and when to ask again.
func (s *Service) inTrouble(ctx context.Context, a Ask, c Compilation) error {
	after := retryAfter(s.measure(ctx), rand.Float64()) //nolint:gosec // only spreads a crowd
	return fault.Later(after, "the catalog of %s cannot be compiled now: %s; it is tried again, come back in %s", a.Node, c.Trouble, after)
}

// paused tells a node that nobody compiles for it now. What it wants stays wanted.
func (s *Service) paused(a Ask, p Pause) error {
	after := whilePaused(rand.Float64()) //nolint:gosec // only spreads a crowd
	return fault.Later(after, "the catalog of %s is not compiled now: %s; come back in %s", a.Node, p, after)
}

// measure is the load as of at most a second ago. While somebody measures, the
// others take what is known: a crowd must not count the queue a thousand times.
func (s *Service) measure(ctx context.Context) load {
	now := time.Now()
	s.measured.Lock()
	known, fresh := s.load, now.Sub(s.loadAt) < time.Second
	s.measured.Unlock()
	if fresh || !s.measuring.TryLock() {
		return known
	}
	defer s.measuring.Unlock()
	wanted, leased, oldest, err := s.Queue.Depth(ctx, now)
	if err != nil {
		s.Log.WarnContext(ctx, "the queue's depth is not known", "err", err)
		return known
	}
	var pauses []Pause
	if s.Pauses != nil {
		if pauses, err = s.Pauses.Pauses(ctx); err != nil {
			s.Log.WarnContext(ctx, "whether compiling is paused is not known", "err", err)
		}
	}
	known = load{wanted: wanted, leased: leased, oldest: oldest, wall: s.pace.wall(), pauses: pauses}
	s.measured.Lock()
	s.load, s.loadAt = known, now
	s.measured.Unlock()
	return known
}
