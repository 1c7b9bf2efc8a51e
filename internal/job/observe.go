package job

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/tutti-project/tutti/internal/fault"
)

// The bounds of a batch of answers that share a transaction.
const (
	answersInBatch = 256
	bytesInBatch   = 4 << 20
	answersWaiting = 4096
)

// arrivals is answers on their way into the store. Who brings one waits until it is
// stored; while AnswerBytes are on their way, others wait before they come in.
type arrivals struct {
	room   *semaphore.Weighted
	limit  int64
	queue  chan *delivery
	waits  atomic.Int64
	bytes  atomic.Int64
	closed chan struct{} // nobody takes from the queue any more
}

// delivery is one event and who waits for it.
type delivery struct {
	event   Event
	bytes   int64
	applied Applied
	err     error
	done    chan struct{}
}

func newArrivals(limit int64) *arrivals {
	return &arrivals{
		room: semaphore.NewWeighted(limit), limit: limit, queue: make(chan *delivery, answersWaiting), closed: make(chan struct{}),
	}
}

var errClosed = fault.Later(time.Second, "the server is stopping")

// Observe takes what a node says, and returns when it is stored. The same answer
// twice changes nothing. Denied for a run of another node; an answer that nobody can
// place is passed over. While much is on its way it waits, so that its node does.
func (s *Service) Observe(ctx context.Context, a Answer) error {
	weight := min(a.bytes(), s.arrivals.limit)
	s.arrivals.waits.Add(1)
	defer s.arrivals.waits.Add(-1)
	if err := s.arrivals.room.Acquire(ctx, weight); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the server has too many answers to store")
	}
	s.arrivals.bytes.Add(weight)
	defer func() {
		s.arrivals.bytes.Add(-weight)
		s.arrivals.room.Release(weight)
	}()
	e, known, err := s.understand(ctx, a)
	if err != nil || !known {
		return err
	}
	d := &delivery{event: e, bytes: weight, done: make(chan struct{})}
	select {
	case s.arrivals.queue <- d:
	case <-s.arrivals.closed:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-d.done:
		return s.heard(ctx, a, d)
	case <-s.arrivals.closed:
		return errClosed
	}
}

// understand makes an event of an answer; false if it is about nothing that is known.
func (s *Service) understand(ctx context.Context, a Answer) (e Event, known bool, err error) {
	id, _ := questionOf(a.Transaction)
	r, err := s.Store.JobRun(ctx, id)
	switch {
	case fault.Is(err, fault.NotFound):
		s.Log.DebugContext(ctx, "an answer of no run", "node", a.Node, "run", id)
		return e, false, nil
	case err != nil:
		return e, false, err
	case r.Node != a.Node:
		return e, false, s.forged(ctx, a, r)
	}
	s.silence.heard(r.ID)
	s.others.heard(r.ID)
	b, err := s.briefOf(ctx, r.Job)
	if err != nil {
		return e, false, err
	}
	now := s.Now()
	e, known = a.event(b.kind, now, now.Add(min(s.settings.Poll, b.timeout)))
	if !known {
		return e, false, nil
	}
	if b.kind == Puppet {
		s.reported(ctx, &e, b.puppet)
	}
	link, _ := s.Sender.Connected(r.Node)
	return s.doubt(e, r).explained(link.Agent), true, nil
}

func (s *Service) forged(ctx context.Context, a Answer, r Run) error {
	s.Log.WarnContext(ctx, "a node answered for another one, refused", "node", a.Node, "run", r.ID, "job", r.Job, "of", r.Node)
	return fault.New(fault.Denied, "the transaction %s is not this node's", r.ID)
}

// heard does what follows from a stored answer.
func (s *Service) heard(ctx context.Context, a Answer, d *delivery) error {
	switch {
	case d.err != nil:
		return d.err
	case d.applied.Verdict == Foreign:
		return s.forged(ctx, a, d.applied.Run)
	case d.applied.Verdict == Took && a.wantsStatus(d.event, d.applied.Run):
		_ = s.ask(ctx, d.applied.Run, askStatus, "") // it is asked again when it is due
	}
	return nil
}

// takeIn stores answers in batches until ctx is done.
func (s *Service) takeIn(ctx context.Context) {
	defer close(s.arrivals.closed)
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-s.arrivals.queue:
			s.storeBatch(ctx, s.arrivals.batch(d))
		}
	}
}

// batch is a delivery and what else is there, up to the bounds.
func (q *arrivals) batch(first *delivery) []*delivery {
	batch, bytes := []*delivery{first}, first.bytes
	for len(batch) < answersInBatch && bytes < bytesInBatch {
		select {
		case d := <-q.queue:
			batch, bytes = append(batch, d), bytes+d.bytes
		default:
			return batch
		}
	}
	return batch
}

// storeBatch stores a batch. While the store takes nothing it waits; an answer that cannot be
// stored at all is found by storing each alone.
func (s *Service) storeBatch(ctx context.Context, batch []*delivery) {
	events := make([]Event, len(batch))
	for i, d := range batch {
		events[i] = d.event
	}
	applied, err := s.apply(ctx, events)
	for fault.Is(err, fault.Unavailable) && s.rest(ctx) {
		applied, err = s.apply(ctx, events)
	}
	if err != nil && len(batch) > 1 && ctx.Err() == nil {
		for _, d := range batch {
			s.storeBatch(ctx, []*delivery{d})
		}
		return
	}
	if err != nil {
		s.Log.ErrorContext(ctx, "an answer could not be stored; its node is asked again later", "node", events[0].Node, "run", events[0].Run, "err", err)
	}
	for i, d := range batch {
		if d.err = err; err == nil {
			d.applied = applied[i]
		}
		close(d.done)
	}
}

// rest waits a tick; false when ctx is done.
func (s *Service) rest(ctx context.Context) bool {
	wait := time.NewTimer(s.settings.Tick)
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-ctx.Done():
		return false
	}
}
