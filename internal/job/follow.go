package job

import (
	"context"
	"slices"
)

// miss looks at the runs of nodes whose connection has ended: they say so.
func (d *dispatcher) miss(ctx context.Context) error {
	nodes := d.gone.take()
	for part := range slices.Chunk(nodes, d.settings.Batch) {
		runs, err := d.Store.UnfinishedOf(ctx, part)
		if err != nil {
			return err // they are looked at when they are due
		}
		runs = slices.DeleteFunc(runs, func(r Run) bool {
			_, connected := d.Sender.Connected(r.Node)
			return r.State == Waiting || r.Ending != "" || connected
		})
		if err := d.lookAfter(ctx, runs, false); err != nil {
			return err
		}
	}
	return nil
}

// greet looks at the runs of nodes that have connected.
func (d *dispatcher) greet(ctx context.Context) error {
	nodes := d.came.take()
	for part := range slices.Chunk(nodes, d.settings.Batch) {
		runs, err := d.Store.UnfinishedOf(ctx, part)
		if err != nil {
			d.came.add(nodes) // they are looked at again
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
		_, full, err := d.begin(ctx, k, k.mayBegin(runs))
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
			_ = d.ask(ctx, r, askCancel, r.Reason)
			continue
		}
		see := sight{now: now, since: d.since}
		see.link, see.connected = d.Sender.Connected(r.Node)
		see.quiet = d.silence.of(r.ID, see.link.Since)
		e, do := attend(k.job, r, d.settings, see)
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
		d.question(ctx, r)
	case tellStop:
		_ = d.ask(ctx, r, askCancel, r.Reason)
	}
}

// question asks how a run stands. What did not leave is no question that was not answered.
func (d *dispatcher) question(ctx context.Context, r Run) {
	d.silence.asked(r.ID, d.Now())
	if err := d.ask(ctx, r, askStatus, ""); err != nil {
		d.silence.heard(r.ID)
	}
}

func (d *dispatcher) sendAgain(ctx context.Context, r Run) {
	d.silence.asked(r.ID, d.Now())
	o, err := d.orderOf(ctx, d.desks[r.Job])
	if err == nil {
		err = d.Sender.Order(ctx, r.Node, o.request(r))
	}
	if err != nil {
		d.silence.heard(r.ID)
		d.Log.DebugContext(ctx, "an order was not sent again, will retry", "run", r.ID, "node", r.Node, "err", err)
		return
	}
	d.figures.resent.Add(1)
}
