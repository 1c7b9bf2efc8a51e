package job

import (
	"context"
	"errors"
	"time"
)

// Run takes in answers until ctx is done, once. Each server does, for the nodes that are connected to it.
func (s *Service) Run(ctx context.Context) error {
	s.takeIn(ctx)
	return nil
}

// Dispatch dispatches until ctx is done. One of all servers does at a time. It may be called again when it has ended: the rows are the
// state.
func (s *Service) Dispatch(ctx context.Context) error {
	d := &dispatcher{Service: s, since: s.Now(), desks: map[int64]*desk{}}
	tick := time.NewTicker(s.settings.Tick)
	defer tick.Stop()
	for {
		more, err := d.step(ctx)
		if err != nil && ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "dispatching jobs failed, will retry", "err", err)
		}
		if more && ctx.Err() == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		case <-tick.C:
		}
	}
}

// dispatcher is the state of one Dispatch; it belongs to Dispatch's goroutine. All of it can be lost.
type dispatcher struct {
	*Service
	since time.Time // when it began to look
	desks map[int64]*desk
}

// desk is what the dispatcher remembers of a job between two looks.
type desk struct {
	job    Job
	order  *order    // nil: not made yet
	queue  *sequence // of an ordered job; nil: not read yet
	cursor int       // waiting runs up to this number were looked at
	full   bool      // runs were passed over because as many run as may
	lookAt time.Time // when to look at the waiting runs again from the first
	killed bool      // what runs was told to stop
	crowd  bool      // too much is on its way for now
}

// lookAgain is how often waiting runs are looked at whose nodes were not connected, in
// case a hint was lost.
const lookAgain = 10 * time.Second

// step does what there is to do once; more says that there is more.
func (d *dispatcher) step(ctx context.Context) (more bool, err error) {
	jobs, err := d.Store.Unended(ctx)
	if err != nil {
		return false, err
	}
	d.refresh(jobs)
	missed := d.miss(ctx)
	hinted := d.greet(ctx)
	due, dueErr := d.lookAtDue(ctx)
	errs := []error{missed, hinted, dueErr}
	more = due
	for _, j := range jobs {
		again, err := d.serve(ctx, d.desks[j.ID])
		more = more || again
		errs = append(errs, err)
	}
	err = errors.Join(errs...)
	return more && err == nil, err
}

// refresh takes over what the rows say.
func (d *dispatcher) refresh(jobs []Job) {
	known := d.desks
	d.desks = make(map[int64]*desk, len(jobs))
	for _, j := range jobs {
		k := known[j.ID]
		if k == nil {
			k = &desk{}
		}
		k.job, k.crowd = j, false
		d.desks[j.ID] = k
	}
	d.figures.see(jobs)
}
