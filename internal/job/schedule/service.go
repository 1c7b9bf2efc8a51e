package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/submit"
)

// Store keeps entries. Each method is one transaction and may be called concurrently.
type Store interface {
	// CreateSchedule stores an entry, and gives it its ID and revision 1.
	CreateSchedule(ctx context.Context, e Entry) (Entry, error)
	// SaveSchedule replaces the entry with this ID, and takes the next revision. Conflict if the stored one has another revision; NotFound.
	SaveSchedule(ctx context.Context, e Entry) (Entry, error)
	// Schedule is one; NotFound.
	Schedule(ctx context.Context, id int64) (Entry, error)
	// Schedules is all of them, by ID.
	Schedules(ctx context.Context) ([]Entry, error)
	// DueSchedules is at most n entries that are enabled and whose next run is not after a time, the longest due first.
	DueSchedules(ctx context.Context, now time.Time, n int) ([]Entry, error)
	// PruneSchedules forgets entries that have no next run or are disabled, and whose start and last run were before a time. It counts them.
	PruneSchedules(ctx context.Context, before time.Time) (int, error)
}

// Orders submits orders; submit.Service does.
type Orders interface {
	Spec(ctx context.Context, o submit.Order) (job.Spec, error)
	Submit(ctx context.Context, actor fleet.Actor, o submit.Order) (job.Job, error)
}

// Owners says what somebody may do now. Denied if they may do nothing any more.
type Owners interface {
	Actor(ctx context.Context, kind fleet.ActorKind, name string) (fleet.Actor, error)
}

// Parts is what a Service works with.
type Parts struct {
	Store  Store
	Orders Orders
	Owners Owners
	Sealer job.Sealer
	Now    func() time.Time
	Log    *slog.Logger
}

// Service keeps entries and gives their orders. See the package comment.
type Service struct {
	Parts
	wake chan struct{}
}

// New returns a Service. Run does the work.
func New(parts Parts) *Service { return &Service{Parts: parts, wake: make(chan struct{}, 1)} }

// Timing is when an order is given.
type Timing struct {
	Start    time.Time
	Interval time.Duration // 0: once
}

// Create stores an order for later. Whoever gives it must be allowed to give it at all; for which nodes is asked at its time.
func (s *Service) Create(ctx context.Context, actor fleet.Actor, o submit.Order, at Timing) (Entry, error) {
	now := s.Now()
	if err := checkTimes(at.Start, at.Interval, now); err != nil {
		return Entry{}, err
	}
	all, err := s.Store.Schedules(ctx)
	if err != nil {
		return Entry{}, err
	}
	if len(all) >= MaxEntries {
		return Entry{}, fault.New(fault.Conflict, "%d scheduled jobs are kept, and no more can be", MaxEntries)
	}
	e := Entry{Enabled: true, NextRun: Next(at.Start, at.Interval, now), Content: Content{
		Owner: ownerOf(actor), CreatedAt: now, Start: at.Start, Interval: at.Interval,
	}}
	if err := s.setOrder(ctx, &e, o); err != nil {
		return Entry{}, err
	}
	e, err = s.Store.CreateSchedule(ctx, e)
	if err != nil {
		return Entry{}, err
	}
	s.Log.InfoContext(ctx, "an order was scheduled", "schedule", e.ID, "next", e.NextRun, "actor", actor.Name)
	s.nudge()
	return e, nil
}

// setOrder checks an order as of now, and puts what is secret in it apart.
func (s *Service) setOrder(ctx context.Context, e *Entry, o submit.Order) error {
	spec, err := s.Orders.Spec(ctx, o)
	if err != nil {
		return err
	}
	e.Order, e.Sealed, e.Hidden = o, nil, nil
	if o.Task == nil {
		return nil
	}
	t := *o.Task
	t.Params, t.Texts = spec.Task.Parameters, nil
	e.Order.Task = &t
	if len(spec.Task.Secret) == 0 {
		return nil
	}
	var secret map[string]json.RawMessage
	if err := json.Unmarshal(spec.Task.Secret, &secret); err != nil {
		return err
	}
	e.Hidden = slices.Sorted(maps.Keys(secret))
	e.Sealed, err = s.Sealer.Seal(spec.Task.Secret)
	return err
}

// Change is what becomes of an entry; nil fields stay.
type Change struct {
	Order   *submit.Order
	Timing  *Timing
	Enabled *bool
}

// Change changes an entry. Who changes its order owns it from then on, with no more rights than they show now. Conflict if it is disabled, unless
// the change disables it.
func (s *Service) Change(ctx context.Context, actor fleet.Actor, id int64, c Change) (Entry, error) {
	e, err := s.Store.Schedule(ctx, id)
	if err != nil {
		return e, err
	}
	if !e.Enabled && (c.Enabled == nil || *c.Enabled) {
		return e, fault.New(fault.Conflict, "scheduled job %d is disabled: it cannot be changed any more; make a new one", id)
	}
	now := s.Now()
	if c.Timing != nil {
		if err := checkTimes(c.Timing.Start, c.Timing.Interval, now); err != nil {
			return e, err
		}
		e.Start, e.Interval, e.NextRun = c.Timing.Start, c.Timing.Interval, Next(c.Timing.Start, c.Timing.Interval, now)
	}
	if c.Order != nil {
		if err := s.setOrder(ctx, &e, *c.Order); err != nil {
			return e, err
		}
		e.Owner = ownerOf(actor)
	}
	if c.Enabled != nil {
		if e.Enabled = *c.Enabled; !e.Enabled {
			e.NextRun = time.Time{}
		}
	}
	e, err = s.Store.SaveSchedule(ctx, e)
	s.nudge()
	return e, err
}

// Entry is one; NotFound.
func (s *Service) Entry(ctx context.Context, id int64) (Entry, error) {
	return s.Store.Schedule(ctx, id)
}

// Entries is all of them, by ID.
func (s *Service) Entries(ctx context.Context) ([]Entry, error) { return s.Store.Schedules(ctx) }

// nudge hints that something may be due sooner than was known.
func (s *Service) nudge() {
	select {
	case s.wake <- struct{}{}:
	default: // a hint is waiting already
	}
}

const (
	look    = time.Second // how often to look what is due
	atATime = 20          // entries
)

// Run gives orders at their time until ctx is done.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		if err := s.step(ctx); err != nil && ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "scheduled orders were not given, will retry", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		case <-tick.C:
		}
	}
}

// step gives the orders that are due.
func (s *Service) step(ctx context.Context) error {
	now := s.Now()
	due, err := s.Store.DueSchedules(ctx, now, atATime)
	if err != nil {
		return err
	}
	var failed []error
	for _, e := range due { // one that cannot be given now holds up no other
		if err := s.give(ctx, e, now); err != nil {
			failed = append(failed, fmt.Errorf("schedule %d: %w", e.ID, err))
		}
	}
	return errors.Join(failed...)
}

// give gives the order of an entry that is due, and notes what became of it.
func (s *Service) give(ctx context.Context, e Entry, now time.Time) error {
	ordered, err := s.order(ctx, e)
	if fault.Is(err, fault.Unavailable) || ctx.Err() != nil {
		return err // it is due still
	}
	e.LastRun, e.LastJob, e.LastError = e.NextRun, ordered.ID, ""
	e.NextRun = Next(e.Start, e.Interval, now)
	if err != nil {
		if e.LastError = fault.Detail(err); e.LastError == "" {
			e.LastError = "the server made a mistake; its log names the cause"
		}
		s.Log.WarnContext(ctx, "a scheduled order was refused", "schedule", e.ID, "actor", e.Owner.Name, "err", err)
	}
	_, err = s.Store.SaveSchedule(ctx, e)
	if fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) { // somebody changed it meanwhile: it is looked at again, under the same key
		return nil
	}
	return err
}

// order submits the order of an entry as its owner.
func (s *Service) order(ctx context.Context, e Entry) (job.Job, error) {
	actor, err := s.Owners.Actor(ctx, e.Owner.Kind, e.Owner.Name)
	if err != nil {
		return job.Job{}, err
	}
	actor.Narrowed, actor.Within = e.Owner.Narrowed, e.Owner.Within
	o, err := s.whole(e)
	if err != nil {
		return job.Job{}, err
	}
	o.Spec.Key = fmt.Sprintf("schedule/%d/%d", e.ID, e.NextRun.UnixMicro())
	o.Spec.Schedule = e.ID
	return s.Orders.Submit(ctx, actor, o)
}

// whole is the order of an entry with what is secret in it.
func (s *Service) whole(e Entry) (submit.Order, error) {
	o := e.Order
	if o.Task == nil || len(e.Sealed) == 0 {
		return o, nil
	}
	secret, err := s.Sealer.Open(e.Sealed)
	if err != nil {
		return o, fault.Wrap(fault.Invalid, err, "its secret parameters cannot be read")
	}
	params := map[string]json.RawMessage{}
	for _, part := range [][]byte{o.Task.Params, secret} {
		if len(part) == 0 {
			continue
		}
		if err := json.Unmarshal(part, &params); err != nil {
			return o, err
		}
	}
	t := *o.Task
	t.Params, err = json.Marshal(params)
	o.Task = &t
	return o, err
}
