package factqueue

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Parts is what a service works with.
type Parts struct {
	Store     Store
	Inventory Inventory
	Watch     Watch
	Log       *slog.Logger
}

// Config is a service's settings; zero stands for the default.
type Config struct {
	Direct     int           // sets that are applied at once at a time; 16
	Workers    int           // queued sets that are applied at a time; 16
	QueueBytes int64         // most that may be queued, packed; 1 GiB
	Poll       time.Duration // how often is looked for what nobody hinted at; 10 s
}

func (c *Config) fill() {
	c.Direct, c.Workers = cmp.Or(c.Direct, 16), cmp.Or(c.Workers, 16)
	c.QueueBytes, c.Poll = cmp.Or(c.QueueBytes, 1<<30), cmp.Or(c.Poll, 10*time.Second)
}

// Service takes facts.
type Service struct {
	Parts
	cfg    Config
	direct chan struct{} // a place for each set that is applied at once
	queued chan struct{} // hints: something is queued

	mu   sync.Mutex
	load Load // what is queued; Oldest is not kept

	count struct{ direct, queued, applied, late, refused atomic.Uint64 }
}

// New returns a service that knows what is queued from before.
func New(ctx context.Context, parts Parts, config Config) (*Service, error) {
	config.fill()
	if parts.Log == nil {
		parts.Log = slog.New(slog.DiscardHandler)
	}
	s := &Service{Parts: parts, cfg: config, direct: make(chan struct{}, config.Direct), queued: make(chan struct{}, 1)}
	return s, s.recount(ctx)
}

// Answer is what a node is told.
type Answer struct {
	Queued  bool         // stored, but not applied yet: Seq and Changed are not known
	Number  int64        // of the newest submission that was accepted
	Digest  fleet.Digest // of the node's facts: what a difference has to be against
	Seq     int64
	Changed int      // paths whose values differ from before
	Watched []string // see Watch
}

// WatchedDigest names the list of watched paths; empty for none.
func (a Answer) WatchedDigest() fleet.Digest { return DigestOfPaths(a.Watched) }

// DigestOfPaths names a list of watched paths; empty for none.
func DigestOfPaths(paths []string) fleet.Digest {
	if len(paths) == 0 {
		return ""
	}
	return fleet.DigestOf([]byte(strings.Join(paths, "\n")))
}

// Put takes all facts of a node.
func (s *Service) Put(ctx context.Context, set Set) (Answer, error) {
	set.Digest = fleet.DigestOf(set.Values)
	if s.idle() && s.enter() {
		defer s.leave()
		return s.apply(ctx, set)
	}
	return s.enqueue(ctx, set)
}

// Patch is a difference of a node's facts.
type Patch struct {
	Set                // without Values and Digest
	Base  fleet.Digest // of the set that it is against
	Apply func(base json.RawMessage) (json.RawMessage, error)
}

// Patch takes a difference.
func (s *Service) Patch(ctx context.Context, p Patch) (Answer, error) {
	head, err := s.head(ctx, p.Node)
	switch {
	case fault.Is(err, fault.NotFound):
		return Answer{}, conflict("no facts of %s are known, so a difference cannot be applied: send all of them with PUT", p.Node)
	case err != nil:
		return Answer{}, err
	case p.Number == head.Number: // it came before
		return s.known(ctx, head)
	case p.Number < head.Number:
		return Answer{}, overtaken(p.Number, head.Number)
	case head.Digest != p.Base:
		return Answer{},
			conflict("the difference is against facts with the digest %s, but %s has those with %s: send all of them with PUT", p.Base.Short(),
				p.Node, head.Digest.Short())
	}
	if p.Values, err = p.Apply(head.Values); err != nil {
		return Answer{}, err
	}
	return s.Put(ctx, p.Set)
}

func conflict(format string, args ...any) error { return fault.New(fault.Conflict, format, args...) }

func overtaken(number, newest int64) error {
	return conflict("a newer submission than number %d was accepted: number %d; send all facts with PUT and a number above that", number, newest)
}

// State is what a node would be told after a submission that changed nothing. NotFound if
// nothing is known of its facts.
func (s *Service) State(ctx context.Context, node fleet.Certname) (Answer, error) {
	head, err := s.head(ctx, node)
	if err != nil {
		return Answer{}, err
	}
	return s.known(ctx, head)
}

// newest is the newest facts that were accepted.
type newest struct {
	Stored
	queued bool
}

// The queue is looked at first: a set leaves it only when the inventory has it, so whoever looked
// there last could miss it in both.
func (s *Service) head(ctx context.Context, node fleet.Certname) (newest, error) {
	var waiting Set
	none := fault.New(fault.NotFound, "nothing is queued")
	if !s.idle() {
		waiting, none = s.Store.QueuedFacts(ctx, node)
	}
	stored, err := s.Inventory.Facts(ctx, node)
	if err != nil && fault.Of(err) != fault.NotFound {
		return newest{Stored: stored}, err
	}
	switch {
	case none != nil && fault.Of(none) == fault.NotFound:
		return newest{Stored: stored}, err
	case none != nil:
		return newest{}, none
	case waiting.AcceptedAt.Before(stored.AcceptedAt): // a run came after it
		stored.Number = max(stored.Number, waiting.Number)
		return newest{Stored: stored}, err
	}
	return newest{Stored{Set: waiting}, true}, nil
}

// known answers with what was accepted before.
func (s *Service) known(ctx context.Context, head newest) (Answer, error) {
	return s.answer(ctx, head.Node, Answer{Queued: head.queued, Number: head.Number, Digest: head.Digest, Seq: head.Seq})
}

func (s *Service) answer(ctx context.Context, node fleet.Certname, a Answer) (Answer, error) {
	var err error
	if a.Watched, err = s.Watch.Watched(ctx, node); err != nil {
		s.Log.WarnContext(ctx, "what a catalog read is not known now, so its node is not told", "node", node, "err", err)
	}
	return a, nil // the facts are stored: that counts
}

// apply stores a set in the inventory at once.
func (s *Service) apply(ctx context.Context, set Set) (Answer, error) {
	stored, err := s.Inventory.SaveFacts(ctx, set)
	if err != nil {
		return Answer{}, err
	}
	if stored.Number > set.Number {
		s.count.late.Add(1)
		return Answer{}, overtaken(set.Number, stored.Number)
	}
	s.count.direct.Add(1)
	return s.answer(ctx, set.Node, Answer{Number: stored.Number, Digest: stored.Digest, Seq: stored.Seq, Changed: stored.Changed})
}

func (s *Service) enqueue(ctx context.Context, set Set) (Answer, error) {
	if load := s.Load(); load.Bytes >= s.cfg.QueueBytes {
		s.count.refused.Add(1)
		after := 10*time.Second + rand.N(20*time.Second) //nolint:gosec // spreads a crowd
		return Answer{},
			fault.Later(after, "facts wait to be stored: %s with %d bytes; come back in %s", fault.Count(load.Sets, "set"), load.Bytes, after.Round(time.Second))
	}
	set.AcceptedAt = time.Now()
	grown, err := s.Store.EnqueueFacts(ctx, set)
	if err != nil {
		if fault.Of(err) == fault.Conflict {
			s.count.late.Add(1)
		}
		return Answer{}, err
	}
	s.grow(grown, 1)
	s.count.queued.Add(1)
	hint(s.queued)
	return s.answer(ctx, set.Node, Answer{Queued: true, Number: set.Number, Digest: set.Digest})
}

// Load is what is queued now, as this process knows it.
func (s *Service) Load() Load {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.load
}

func (s *Service) idle() bool { return s.Load().Sets == 0 }

func (s *Service) grow(by Load, sign int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load.Sets = max(0, s.load.Sets+sign*by.Sets) // recount may have been faster
	s.load.Bytes = max(0, s.load.Bytes+sign*by.Bytes)
}

func (s *Service) enter() bool {
	select {
	case s.direct <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s *Service) leave() { <-s.direct }

func hint(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// Stats counts since the start.
type Stats struct {
	Direct  uint64 // submissions that were applied at once
	Queued  uint64 // that were queued
	Applied uint64 // queued sets that were applied
	Late    uint64 // submissions that a newer one had overtaken
	Refused uint64 // because the queue was full
}

// Stats may be called at any time.
func (s *Service) Stats() Stats {
	n := &s.count
	return Stats{n.direct.Load(), n.queued.Load(), n.applied.Load(), n.late.Load(), n.refused.Load()}
}
