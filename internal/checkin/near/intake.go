package near

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/facts/factqueue"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Intake takes what nodes send: into the records while they can be reached, and else into the queue.
type Intake struct {
	Link  *Link
	Queue Queue
	Now   func() time.Time
}

// store does what stores something, and queues it when the records cannot be reached. Whether a call that was cut off has stored it is not
// known, which is no harm: see the package comment.
func (i Intake) store(ctx context.Context, kind Kind, node fleet.Certname, at time.Time, content any,
	store func(context.Context) error,
) (queued bool, err error) {
	err = i.reach(ctx, store)
	if !errors.Is(err, ErrCut) {
		return false, err
	}
	return true, i.queue(kind, node, at, content)
}

// reach calls the records. ErrCut when they cannot be reached.
func (i Intake) reach(ctx context.Context, call func(context.Context) error) error {
	during, done := i.Link.While(ctx)
	defer done()
	err := ErrCut
	if during.Err() == nil {
		err = call(during)
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case errors.Is(context.Cause(during), ErrCut):
		return errors.Join(ErrCut, err)
	case (fault.Of(err) == fault.Unavailable || fault.Of(err) == fault.Internal) && i.Link.Doubt(ctx):
		return errors.Join(ErrCut, err)
	}
	return err
}

func (i Intake) queue(kind Kind, node fleet.Certname, at time.Time, content any) error {
	body, err := pack(content)
	if err != nil {
		return err
	}
	return i.Queue.Add(Piece{Kind: kind, Node: node, At: at, Body: body})
}

// Reports is an inventory.ReportStore whose reports are queued while the records cannot be reached.
type Reports struct {
	inventory.ReportStore
	Intake
}

// SaveReport implements inventory.ReportStore.
func (r Reports) SaveReport(ctx context.Context, report inventory.Report) error {
	_, err := r.store(ctx, Report, report.Certname, report.ReceivedAt, report, func(ctx context.Context) error { return r.ReportStore.SaveReport(ctx, report) })
	return err
}

// RunFacts is a checkin.Facts whose facts are queued while the records cannot be reached.
type RunFacts struct {
	checkin.Facts
	Intake
}

// SaveFacts implements checkin.Facts. Of facts that were queued nothing is known that only the records know.
func (f RunFacts) SaveFacts(ctx context.Context, set inventory.FactSet) (stored inventory.FactSet, changed []string, err error) {
	late := set
	late.ProducedAt = set.ReceivedAt // when they are stored there may be newer ones
	queued, err := f.store(ctx, Facts, set.Certname, set.ReceivedAt, late, func(ctx context.Context) (err error) {
		stored, changed, err = f.Facts.SaveFacts(ctx, set)
		return err
	})
	if queued {
		return set, nil, err
	}
	return stored, changed, err
}

// Submissions takes facts that come apart from runs; *factqueue.Service does while the records can be reached.
type Submissions struct {
	Service interface {
		Put(ctx context.Context, set factqueue.Set) (factqueue.Answer, error)
		Patch(ctx context.Context, p factqueue.Patch) (factqueue.Answer, error)
		State(ctx context.Context, node fleet.Certname) (factqueue.Answer, error)
	}
	Intake
}

// Put takes all facts of a node.
func (s Submissions) Put(ctx context.Context, set factqueue.Set) (answer factqueue.Answer, err error) {
	kept := set
	kept.AcceptedAt, kept.Digest = s.Now(), fleet.DigestOf(set.Values)
	queued, err := s.store(ctx, Submission, set.Node, kept.AcceptedAt, kept, func(ctx context.Context) (err error) {
		answer, err = s.Service.Put(ctx, set)
		return err
	})
	if queued && err == nil {
		return factqueue.Answer{Queued: true, Number: kept.Number, Digest: kept.Digest}, nil
	}
	return answer, err
}

// Patch takes a difference. Without the records it is not known what it differs from: the node is told to send all.
func (s Submissions) Patch(ctx context.Context, p factqueue.Patch) (answer factqueue.Answer, err error) {
	err = s.reach(ctx, func(ctx context.Context) (err error) {
		answer, err = s.Service.Patch(ctx, p)
		return err
	})
	if errors.Is(err, ErrCut) {
		err = fault.New(fault.Conflict, "this server cannot reach the database now, so a difference cannot be applied: send all facts with PUT")
	}
	return answer, err
}

// State is what is known of a node's facts. Without the records that is nothing.
func (s Submissions) State(ctx context.Context, node fleet.Certname) (answer factqueue.Answer, err error) {
	err = s.reach(ctx, func(ctx context.Context) (err error) {
		answer, err = s.Service.State(ctx, node)
		return err
	})
	if errors.Is(err, ErrCut) {
		err = fault.New(fault.NotFound, "this server cannot reach the database now: what it has of the facts of %s is not known", node)
	}
	return answer, err
}

// Stream is an event.Store whose events of runs are queued while the records cannot be reached.
type Stream struct {
	event.Store
	Intake
	runs *runs
}

// NewStream returns a stream over a store.
func NewStream(store event.Store, in Intake) Stream {
	return Stream{store, in, &runs{last: map[run]int{}}}
}

// TakeEvents implements event.Store. Of a run that this server has not followed it does not know which events came before: such are
// not taken, and their node keeps them.
func (s Stream) TakeEvents(ctx context.Context, batches []event.Batch, now time.Time) (taken []event.Taken, err error) {
	err = s.reach(ctx, func(ctx context.Context) (err error) {
		taken, err = s.Store.TakeEvents(ctx, batches, now)
		return err
	})
	if err == nil {
		for _, t := range taken {
			s.runs.note(run{t.Node, t.Run}, t.Last)
		}
		return taken, nil
	}
	if !errors.Is(err, ErrCut) {
		return nil, err
	}
	taken = make([]event.Taken, len(batches))
	for i, b := range batches {
		if taken[i], err = s.keep(b, now); err != nil {
			return nil, err
		}
	}
	return taken, nil
}

// EventSpan implements event.Store. Nobody waits for it while the records cannot be reached.
func (s Stream) EventSpan(ctx context.Context) (span event.Span, err error) {
	err = s.reach(ctx, func(ctx context.Context) (err error) {
		span, err = s.Store.EventSpan(ctx)
		return err
	})
	return span, err
}

// AddEvents implements event.Store: the same. What happens to agents waits in memory.
func (s Stream) AddEvents(ctx context.Context, events []event.Event, now time.Time) error {
	return s.reach(ctx, func(ctx context.Context) error { return s.Store.AddEvents(ctx, events, now) })
}

// keep queues a batch that follows on what is known of its run.
func (s Stream) keep(b event.Batch, now time.Time) (event.Taken, error) {
	t := event.Taken{Node: b.Node, Run: b.Run}
	if len(b.Events) == 0 {
		return t, nil
	}
	last := s.runs.of(run{b.Node, b.Run})
	t.Last = last
	if b.Events[0].N > last+1 { // what comes before may be with the node still
		return t, nil
	}
	if newest := lastOf(b.Events); newest > last {
		if err := s.queue(Events, b.Node, now, b); err != nil {
			return t, err
		}
		s.runs.note(run{b.Node, b.Run}, newest)
		t.Last, t.New = newest, len(b.Events)
	}
	return t, nil
}

func lastOf(events []pxp.RunEvent) int { return events[len(events)-1].Last() }

type run struct {
	node fleet.Certname
	id   string
}

// runs remembers up to where events of runs were acknowledged.
type runs struct {
	mu   sync.Mutex
	last map[run]int
}

// maxRuns is how many are remembered. Events of a run that was forgotten wait with its node.
const maxRuns = 20_000

// of is 0 for a run that nothing is known of.
func (r *runs) of(one run) (last int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[one]
}

func (r *runs) note(one run, last int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.last) >= maxRuns {
		clear(r.last)
	}
	r.last[one] = max(last, r.last[one])
}
