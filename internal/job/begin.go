package job

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/parallel"
)

// serve does what a job wants for its waiting runs.
func (d *dispatcher) serve(ctx context.Context, k *desk) (more bool, err error) {
	if k.job.Status == Stopping {
		return d.wind(ctx, k)
	}
	if err := d.follow(ctx, k); err != nil {
		return false, err
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
	n := min(d.settings.Batch, max(k.room(), leastWaiting))
	runs, err := d.waiting(ctx, k, n)
	if err != nil {
		return false, err
	}
	last, full, err := d.begin(ctx, k, runs)
	if err != nil {
		return false, err
	}
	k.cursor, k.full = max(k.cursor, last), k.full || full
	if len(runs) < n && !full {
		k.cursor = atEnd
	}
	return k.cursor != atEnd && k.room() > 0 && !k.crowd, nil
}

// leastWaiting is how many waiting runs are read at least: of some the node is not connected.
const leastWaiting = 50

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
	var ended map[fleet.Certname]string
	if !waits {
		if ended, err = d.ended(ctx, runs); err != nil {
			return last, full, err
		}
	}
	var events []Event
	for _, r := range runs {
		link, connected := d.Sender.Connected(r.Node)
		reached := connected && link.Unreachable == ""
		if full = reached && room <= 0; full {
			break
		}
		last = r.Number
		switch {
		case reached:
			room--
			due := now.Add(min(d.settings.pause(1), k.job.Spec.Timeout))
			events = append(events, Event{Run: r.ID, What: WasSent, At: now, Due: due})
		case connected && now.Before(detour(k.job, d.since)):
			if soon := now.Add(d.settings.Tick); soon.Before(k.lookAt) {
				k.lookAt = soon
			}
		case connected:
			events = append(events, Event{Run: r.ID, What: DroppedOut, State: Offline, At: now, Reason: link.Unreachable})
		case !waits && ended[r.Node] == "" && now.Before(link.Until.Add(d.settings.Regain)): // its server let it go, and another one has it in a moment
			if soon := now.Add(d.settings.Tick); soon.Before(k.lookAt) {
				k.lookAt = soon
			}
		case !waits:
			events = append(events, Event{Run: r.ID, What: DroppedOut, State: Offline, At: now, Reason: offlineReason(k.job, link, ended[r.Node])})
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

// neverConnected is why a node gets no orders that has no agent.
const neverConnected = "no tutti agent or pxp-agent has ever connected from this node; on the node: `tutti agent join`, then `tutti agent install`"

// ended tells of those nodes of runs that are not connected why nothing lets them in, if so.
func (d *dispatcher) ended(ctx context.Context, runs []Run) (map[fleet.Certname]string, error) {
	var away []fleet.Certname
	for _, r := range runs {
		if _, connected := d.Sender.Connected(r.Node); !connected {
			away = append(away, r.Node)
		}
	}
	if len(away) == 0 {
		return nil, nil
	}
	return d.Ends.Ended(ctx, away)
}

// offlineReason tells a node whose agent is away from one that never had one, and from one that nothing lets in.
func offlineReason(j Job, last Link, ended string) string {
	reason := ""
	if j.Spec.WaitOffline > 0 {
		reason = "its node did not connect within " + fault.Duration(j.Spec.WaitOffline)
	}
	switch {
	case ended != "":
		return join(reason, ended)
	case last.Since.IsZero():
		return join(reason, neverConnected)
	case reason != "":
		return reason
	}
	return notConnected + last.Until.UTC().Format(time.DateTime) + " UTC"
}

// sendAtOnce is how many orders are on their way at a time: those to nodes of another server wait for its word.
const sendAtOnce = 16

// sendAll sends the orders of runs that were just marked as sent. What does not leave is
// taken back.
func (d *dispatcher) sendAll(ctx context.Context, k *desk, o order, events []Event, applied []Applied) error {
	toSend := func(i int) bool { return events[i].What == WasSent && applied[i].Verdict == Took }
	errs := make([]error, len(applied))
	_ = parallel.Each(len(applied), sendAtOnce, func(i int) error {
		if toSend(i) {
			errs[i] = d.Sender.Order(ctx, applied[i].Run.Node, o.request(applied[i].Run))
		}
		return nil
	})
	var back []Event
	for i, a := range applied {
		if !toSend(i) {
			continue
		}
		err := errs[i]
		if err == nil {
			d.figures.sent.Add(1)
			continue
		}
		if fault.Of(err) != fault.NotFound {
			if !k.crowd { // of many one
				d.Log.WarnContext(ctx, "an order was not taken, will retry", "job", k.job.ID, "node", a.Run.Node, "err", err)
			}
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
