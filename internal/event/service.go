package event

import (
	"context"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/hint"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Parts is what a Service needs of others.
type Parts struct {
	Store Store
	// Tell acknowledges to a node. What it cannot deliver is told when the node sends again.
	Tell  func(fleet.Certname, pxp.RunEventsTaken) error
	Now   func() time.Time
	Relay *hint.Relay // to other servers; nil: there are none
	Log   *slog.Logger
}

// Settings are a Service's limits.
type Settings struct {
	Gather    time.Duration // how long the first of a batch waits for others
	Batch     int           // events that are stored together
	RoomBytes int64         // of what is on its way into the store
	Poll      time.Duration // how often readers and the settler look without a hint
	Grace     time.Duration // how long a report waits for the rest of its stream
	Window    int64         // numbers that one read looks at
}

// DefaultSettings are good for a server.
func DefaultSettings() Settings {
	return Settings{Gather: 10 * time.Millisecond, Batch: 4000, RoomBytes: 32 << 20, Poll: time.Second, Grace: 2 * time.Minute, Window: 500_000}
}

// Service takes events in, and hands them out.
type Service struct {
	Parts
	settings Settings
	room     *semaphore.Weighted
	queue    chan delivery
	closed   chan struct{}
	reported chan struct{} // a hint: a report came
	hub      *hub
	others   others
	agents   *agents
	figures  figures
}

// others hints to other servers.
type others struct {
	reached  func(last string) // there are numbers up to this
	reported func(string)      // a report came
}

// delivery is a batch on its way.
type delivery struct {
	batch Batch
	bytes int64
}

type figures struct{ stored, repeated, missing, waiting, reported, settled, lacked, extra, unlisted atomic.Int64 }

// Figures is what a Service has done since it was made.
type Figures struct {
	Stored   int64 // events
	Repeated int64 // events that came again
	Missing  int64 // events that nodes had to drop
	Waiting  int64 // bytes that are not stored yet
	Reported int64 // events made from reports
	Settled  int64 // runs
	Lacked   int64 // events of reports that a stream had not
	Extra    int64 // events of streams that a report had not
	Unlisted int64 // events of agents that came and went too often
	Last     int64 // the newest number
}

// queued is how many batches may wait; their bytes are bounded, too.
const queued = 4096

// New returns a Service that Run drives.
func New(p Parts, s Settings) *Service {
	v := &Service{
		Parts: p, settings: s, room: semaphore.NewWeighted(s.RoomBytes), queue: make(chan delivery, queued),
		closed: make(chan struct{}), reported: make(chan struct{}, 1), hub: newHub(), agents: newAgents(),
	}
	v.others.reported = p.Relay.Join("report", func(string) { v.reportedHere() })
	v.others.reached = p.Relay.Join("events", func(last string) {
		if n, err := strconv.ParseInt(last, 10, 64); err == nil { // without a number readers look soon in any case
			v.hub.reach(n)
		}
	})
	return v
}

// Figures may be called at any time.
func (s *Service) Figures() Figures {
	f := &s.figures
	return Figures{
		Stored: f.stored.Load(), Repeated: f.repeated.Load(), Missing: f.missing.Load(), Waiting: f.waiting.Load(), Reported: f.reported.Load(),
		Settled: f.settled.Load(), Lacked: f.lacked.Load(), Extra: f.extra.Load(), Unlisted: f.unlisted.Load(), Last: s.hub.newest(),
	}
}

// Take takes a batch, of some size in bytes, to store it soon; its node is told when it is. While too much is
// on its way Take waits, and its node with it. Unavailable when it gave up: the node sends again.
func (s *Service) Take(ctx context.Context, b Batch, size int) error {
	weight := min(int64(size), s.settings.RoomBytes)
	if err := s.room.Acquire(ctx, weight); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the server has too many events to store")
	}
	s.figures.waiting.Add(weight)
	select {
	case s.queue <- delivery{b, weight}:
		return nil
	case <-s.closed:
		s.leave(weight)
		return fault.Later(time.Second, "the server is stopping")
	case <-ctx.Done():
		s.leave(weight)
		return fault.Wrap(fault.Unavailable, ctx.Err(), "the server has too many events to store")
	}
}

func (s *Service) leave(weight int64) {
	s.figures.waiting.Add(-weight)
	s.room.Release(weight)
}

// Run stores until ctx is done, once. What is not stored then was not acknowledged. Each server does, for the nodes that are connected to it.
func (s *Service) Run(ctx context.Context) error {
	defer close(s.closed)
	s.wake(ctx)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.storing(ctx) })
	group.Go(func() error { return s.listing(ctx) })
	return group.Wait()
}

// storing commits what comes.
func (s *Service) storing(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case d := <-s.queue:
			s.store(ctx, s.gather(ctx, d))
		}
	}
}

// gather adds what comes within a moment; when much waits already, none is lost with waiting.
func (s *Service) gather(ctx context.Context, first delivery) []delivery {
	all, events := []delivery{first}, len(first.batch.Events)
	moment := time.NewTimer(s.settings.Gather)
	defer moment.Stop()
	for events < s.settings.Batch {
		select {
		case d := <-s.queue:
			all, events = append(all, d), events+len(d.batch.Events)
		case <-moment.C:
			return all
		case <-ctx.Done():
			return all
		}
	}
	return all
}

// Alarm adds an alarm about a node to the stream. About names what it is about; the same twice is one.
func (s *Service) Alarm(ctx context.Context, node fleet.Certname, about string, e pxp.RunEvent) error {
	e.N, e.Kind, e.Status, e.At = 1, Alarm, Failure, s.Now()
	_, err := s.Store.TakeEvents(ctx, []Batch{{Node: node, Run: about, Events: []pxp.RunEvent{e}}}, e.At)
	if err != nil {
		return err
	}
	s.wake(ctx)
	return nil
}

// store commits batches, tells nodes and wakes readers, who can wait. What cannot be stored is not
// acknowledged: it comes again.
func (s *Service) store(ctx context.Context, all []delivery) {
	batches := make([]Batch, len(all))
	for i, d := range all {
		batches[i] = d.batch
		defer s.leave(d.bytes)
	}
	taken, err := s.Store.TakeEvents(ctx, batches, s.Now())
	if err != nil {
		if ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "events not stored, their nodes send them again", "batches", len(batches), "err", err)
		}
		return
	}
	for i, t := range taken {
		s.count(batches[i], t)
		if err := s.Tell(t.Node, pxp.RunEventsTaken{Run: t.Run, Last: t.Last}); err != nil {
			s.Log.DebugContext(ctx, "events not acknowledged, their node sends them again", "node", t.Node, "run", t.Run, "err", err)
		}
	}
	s.wake(ctx)
}

func (s *Service) count(b Batch, t Taken) {
	s.figures.stored.Add(int64(t.New))
	s.figures.repeated.Add(int64(len(b.Events) - t.New))
	for _, e := range b.Events {
		s.figures.missing.Add(int64(e.Missing))
	}
}

// wakeMay is how long the store may take to say how far it is. Readers look soon in any case.
const wakeMay = time.Second

// wake tells readers that there is more: what is stored is, also when the server stops in that moment.
func (s *Service) wake(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wakeMay)
	defer cancel()
	if span, err := s.Store.EventSpan(ctx); err == nil {
		s.hub.reach(span.Last)
		s.others.reached(strconv.FormatInt(span.Last, 10))
	}
}
