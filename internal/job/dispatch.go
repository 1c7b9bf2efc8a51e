package job

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// Run dispatches, and takes in answers, until ctx is done. It returns when all that it
// started has ended.
func (s *Service) Run(ctx context.Context) error {
	var taking sync.WaitGroup
	taking.Go(func() { s.takeIn(ctx) })
	defer taking.Wait()
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

// dispatcher is the state of one Run; it belongs to Run's goroutine. All of it can be lost.
type dispatcher struct {
	*Service
	since time.Time // when it began to look
	desks map[int64]*desk
}

// desk is what the dispatcher remembers of a job between two looks.
type desk struct {
	job    Job
	order  *order    // nil: not made yet
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
	hinted := d.greet(ctx)
	due, dueErr := d.lookAtDue(ctx)
	errs := []error{hinted, dueErr}
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

// serve does what a job wants for its waiting runs.
func (d *dispatcher) serve(ctx context.Context, k *desk) (more bool, err error) {
	if k.job.Status == Stopping {
		return d.wind(ctx, k)
	}
	now := d.Now()
	if !now.Before(k.lookAt) || k.full && k.room() > 0 && k.cursor == atEnd {
		k.cursor, k.full, k.lookAt = 0, false, d.nextLook(k.job, now)
	}
	if k.cursor == atEnd || k.crowd {
		return false, nil
	}
	if k.room() <= 0 {
		return false, nil
	}
	runs, err := d.Store.WaitingRuns(ctx, k.job.ID, k.cursor, d.settings.Batch)
	if err != nil {
		return false, err
	}
	last, full, err := d.begin(ctx, k, runs)
	if err != nil {
		return false, err
	}
	k.cursor, k.full = max(k.cursor, last), k.full || full
	if len(runs) < d.settings.Batch && !full {
		k.cursor = atEnd
	}
	return k.cursor != atEnd && k.room() > 0 && !k.crowd, nil
}

// atEnd is the cursor of a desk whose waiting runs were all looked at.
const atEnd = int(^uint(0) >> 1)

// nextLook is when the waiting runs of a job are looked at again: from time to time, and when
// its patience with nodes that are not connected ends.
func (d *dispatcher) nextLook(j Job, now time.Time) time.Time {
	next := now.Add(lookAgain)
	if end := patience(j, d.settings, d.since); end.After(now) && end.Before(next) {
		return end
	}
	return next
}

// room is how many more runs may run now.
func (k *desk) room() int {
	if k.job.Spec.Concurrency == 0 {
		return atEnd
	}
	return k.job.Spec.Concurrency - k.job.Counts.Active()
}

// begin sends the orders of waiting runs, in order, as far as there is room. Those whose node is
// not connected are passed over, or end when the job's patience has. It returns the number of the last
// run that it looked at, and whether it stopped there because there is no room.
func (d *dispatcher) begin(ctx context.Context, k *desk, runs []Run) (last int, full bool, err error) {
	now := d.Now()
	waits := patience(k.job, d.settings, d.since).After(now)
	room := k.room()
	var events []Event
	for _, r := range runs {
		_, connected := d.Sender.Connected(r.Node)
		if full = connected && room <= 0; full {
			break
		}
		last = r.Number
		switch {
		case connected:
			room--
			due := now.Add(min(d.settings.pause(1), k.job.Spec.Timeout))
			events = append(events, Event{Run: r.ID, What: WasSent, At: now, Due: due})
		case !waits:
			events = append(events, Event{Run: r.ID, What: DroppedOut, State: Offline, At: now, Reason: d.offlineReason(k.job)})
		}
	}
	if len(events) == 0 {
		return last, full, nil
	}
	o, err := d.orderOf(ctx, k)
	if err != nil {
		return last, full, d.cannot(ctx, k, runs, err)
	}
	applied, err := d.applyTo(ctx, k, events)
	if err != nil {
		return last, full, err
	}
	return last, full, d.sendAll(ctx, k, o, events, applied)
}

func (d *dispatcher) offlineReason(j Job) string {
	if j.Spec.WaitOffline == 0 {
		return "its node is not connected"
	}
	return "its node did not connect within " + j.Spec.WaitOffline.String()
}

// sendAll sends the orders of runs that were just marked as sent. What does not leave is
// taken back.
func (d *dispatcher) sendAll(ctx context.Context, k *desk, o order, events []Event, applied []Applied) error {
	var back []Event
	for i, a := range applied {
		if events[i].What != WasSent || a.Verdict != Took {
			continue
		}
		err := d.Sender.Order(ctx, a.Run.Node, o.request(a.Run))
		if err == nil {
			d.figures.sent.Add(1)
			continue
		}
		if fault.Of(err) != fault.NotFound {
			d.Log.WarnContext(ctx, "an order was not taken, will retry", "job", k.job.ID, "node", a.Run.Node, "err", err)
			k.crowd, k.full = true, true
		}
		now := d.Now()
		back = append(back, Event{Run: a.Run.ID, What: WasNotSent, At: now, Due: now.Add(d.settings.Resend)})
	}
	_, err := d.applyTo(ctx, k, back)
	return err
}

// applyTo applies events of one job, and keeps what it has become.
func (d *dispatcher) applyTo(ctx context.Context, k *desk, events []Event) ([]Applied, error) {
	if len(events) == 0 {
		return nil, nil
	}
	applied, err := d.apply(ctx, events)
	for _, a := range applied {
		if a.Verdict == Took && a.Job.ID == k.job.ID {
			k.job = a.Job
		}
	}
	return applied, err
}

// orderOf is the order of a job, which is made once.
func (d *dispatcher) orderOf(ctx context.Context, k *desk) (order, error) {
	if k.order != nil {
		return *k.order, nil
	}
	j, err := d.Store.Job(ctx, k.job.ID)
	if err != nil {
		return order{}, err
	}
	sealed, err := d.Store.Sealed(ctx, k.job.ID)
	if err != nil {
		return order{}, err
	}
	var secret []byte
	if len(sealed) > 0 {
		if secret, err = d.Sealer.Open(sealed); err != nil {
			return order{}, fault.Wrap(fault.Invalid, err, "its secret parameters cannot be read")
		}
	}
	o, err := orderOf(j, secret)
	if err == nil {
		k.order = &o
	}
	return o, err
}

// cannot ends runs whose order cannot be made; a store that does not answer is another thing.
func (d *dispatcher) cannot(ctx context.Context, k *desk, runs []Run, why error) error {
	if fault.Of(why) == fault.Unavailable || ctx.Err() != nil {
		return why
	}
	d.Log.ErrorContext(ctx, "the order of a job cannot be made", "job", k.job.ID, "err", why)
	reason := fault.Detail(why)
	if reason == "" {
		reason = "its order cannot be made; the server's log says why"
	}
	events := make([]Event, len(runs))
	for i, r := range runs {
		events[i] = Event{Run: r.ID, What: DroppedOut, State: Errored, At: d.Now(), Reason: reason}
	}
	_, err := d.applyTo(ctx, k, events)
	return err
}

// wind ends what waits in a job that stops, and tells what runs in one that is killed.
func (d *dispatcher) wind(ctx context.Context, k *desk) (more bool, err error) {
	runs, err := d.Store.WaitingRuns(ctx, k.job.ID, 0, d.settings.Batch)
	if err != nil {
		return false, err
	}
	events := make([]Event, len(runs))
	for i, r := range runs {
		events[i] = Event{Run: r.ID, What: DroppedOut, State: Skipped, At: d.Now(), Reason: "its turn did not come: " + k.job.Reason}
	}
	if _, err := d.applyTo(ctx, k, events); err != nil {
		return false, err
	}
	if k.job.Killed && !k.killed {
		if err := d.kill(ctx, k); err != nil {
			return false, err
		}
		k.killed = true
	}
	return len(runs) == d.settings.Batch, nil
}

// kill tells every run of a job that was sent or runs to stop.
func (d *dispatcher) kill(ctx context.Context, k *desk) error {
	for after := 0; ; {
		runs, err := d.Store.Runs(ctx, k.job.ID, RunPage{After: after, Limit: d.settings.Batch, States: []State{Sent, Running}})
		if err != nil || len(runs) == 0 {
			return err
		}
		after = runs[len(runs)-1].Number
		runs = slices.DeleteFunc(runs, func(r Run) bool { return r.Ending != "" })
		events, now := make([]Event, len(runs)), d.Now()
		for i, r := range runs {
			events[i] = Event{Run: r.ID, What: ToldToStop, State: Killed, At: now, Due: now.Add(d.settings.StopGrace), Reason: k.job.Reason}
		}
		applied, err := d.applyTo(ctx, k, events)
		if err != nil {
			return err
		}
		for _, a := range applied {
			if a.Verdict == Took {
				d.ask(ctx, a.Run, askCancel, a.Run.Reason)
			}
		}
	}
}

// greet looks at the runs of nodes that have connected.
func (d *dispatcher) greet(ctx context.Context) error {
	nodes := d.hints.take()
	for part := range slices.Chunk(nodes, d.settings.Batch) {
		runs, err := d.Store.UnfinishedOf(ctx, part)
		if err != nil {
			d.hints.add(nodes) // they are looked at again
			return err
		}
		if err := d.greetRuns(ctx, runs); err != nil {
			return err
		}
	}
	return nil
}

func (d *dispatcher) greetRuns(ctx context.Context, runs []Run) error {
	waiting := map[int64][]Run{}
	var others []Run
	for _, r := range runs {
		if r.State == Waiting {
			waiting[r.Job] = append(waiting[r.Job], r)
		} else {
			others = append(others, r)
		}
	}
	for id, runs := range waiting {
		k := d.desks[id]
		if k == nil || k.job.Status == Stopping || k.crowd {
			continue
		}
		_, full, err := d.begin(ctx, k, runs)
		if err != nil {
			return err
		}
		k.full = k.full || full
	}
	return d.lookAfter(ctx, others, true)
}

// lookAtDue looks at the runs that are due; more says that there may be more.
func (d *dispatcher) lookAtDue(ctx context.Context) (more bool, err error) {
	runs, err := d.Store.Due(ctx, d.Now(), d.settings.Batch)
	if err != nil {
		return false, err
	}
	return len(runs) == d.settings.Batch, d.lookAfter(ctx, runs, false)
}

// lookAfter does what is due for runs that were sent or run. Those whose node has just
// connected are looked at before their time: what the node was told may be lost.
func (d *dispatcher) lookAfter(ctx context.Context, runs []Run, connectedNow bool) error {
	var events []Event
	var deeds []deed
	now := d.Now()
	for _, r := range runs {
		k := d.desks[r.Job]
		if k == nil { // it was made after the jobs were listed
			continue
		}
		if connectedNow && r.Ending != "" {
			d.ask(ctx, r, askCancel, r.Reason)
			continue
		}
		_, connected := d.Sender.Connected(r.Node)
		e, do := attend(k.job, r, d.settings, d.since, now, connected)
		events, deeds = append(events, e), append(deeds, do)
	}
	if len(events) == 0 {
		return nil
	}
	applied, err := d.apply(ctx, events)
	if err != nil {
		return err
	}
	for i, a := range applied {
		if a.Verdict == Took {
			d.do(ctx, a.Run, deeds[i])
		}
	}
	return nil
}

// do sends what follows from a row. What gets lost is done again when it is due.
func (d *dispatcher) do(ctx context.Context, r Run, what deed) {
	switch what {
	case nothing:
	case sendAgain:
		d.sendAgain(ctx, r)
	case askAbout:
		d.ask(ctx, r, askStatus, "")
	case tellStop:
		d.ask(ctx, r, askCancel, r.Reason)
	}
}

func (d *dispatcher) sendAgain(ctx context.Context, r Run) {
	o, err := d.orderOf(ctx, d.desks[r.Job])
	if err == nil {
		err = d.Sender.Order(ctx, r.Node, o.request(r))
	}
	if err != nil {
		d.Log.DebugContext(ctx, "an order was not sent again, will retry", "run", r.ID, "node", r.Node, "err", err)
		return
	}
	d.figures.resent.Add(1)
}
