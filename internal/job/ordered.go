package job

import (
	"context"
	"slices"
)

// follow takes over what became of the runs of an ordered job, and skips those that wait for one that
// did not succeed. A job without edges needs none of this.
func (d *dispatcher) follow(ctx context.Context, k *desk) error {
	if !k.job.Spec.Ordered {
		return nil
	}
	if err := d.read(ctx, k); err != nil || k.queue.free() {
		return err
	}
	if number := k.queue.freed(); number > 0 {
		k.cursor = min(k.cursor, number-1)
	}
	return d.skip(ctx, k, k.queue.lost())
}

// read is the rows as they are: all of them once, then those that changed.
func (d *dispatcher) read(ctx context.Context, k *desk) error {
	if k.queue == nil {
		return d.readAll(ctx, k)
	}
	for !k.queue.free() && k.queue.seen < k.job.Change {
		j, runs, err := d.Store.Changes(ctx, k.job.ID, k.queue.seen, d.settings.Batch)
		if err != nil {
			return err
		}
		for _, r := range runs {
			k.queue.see(r)
		}
		if k.queue.seen = j.Change; len(runs) == d.settings.Batch {
			k.queue.seen = runs[len(runs)-1].Change
		}
	}
	return nil
}

func (d *dispatcher) readAll(ctx context.Context, k *desk) error {
	j, err := d.Store.Job(ctx, k.job.ID)
	if err != nil {
		return err
	}
	if len(j.Edges) == 0 {
		k.queue = &sequence{}
		return nil
	}
	runs := make([]Run, 0, j.Counts.Total())
	for {
		page, err := d.Store.Runs(ctx, j.ID, RunPage{After: len(runs), Limit: d.settings.Batch})
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		runs = append(runs, page...)
	}
	k.queue = newSequence(j.Edges, runs, j.Change)
	return nil
}

// free says that no run of the job waits for another one.
func (s *sequence) free() bool { return len(s.runs) == 0 }

// skip ends runs that can never begin.
func (d *dispatcher) skip(ctx context.Context, k *desk, losses []loss) error {
	for part := range slices.Chunk(losses, d.settings.Batch) {
		events := make([]Event, len(part))
		for i, l := range part {
			events[i] = Event{Run: l.run.ID, What: DroppedOut, State: Skipped, At: d.Now(), Reason: l.reason()}
		}
		if _, err := d.applyTo(ctx, k, events); err != nil {
			k.queue = nil // they are found again
			return err
		}
	}
	return nil
}

// waiting is at most n waiting runs behind the cursor of a desk that may begin.
func (d *dispatcher) waiting(ctx context.Context, k *desk, n int) ([]Run, error) {
	if k.queue == nil || k.queue.free() {
		return d.Store.WaitingRuns(ctx, k.job.ID, k.cursor, n)
	}
	return k.queue.next(k.cursor, n), nil
}

// mayBegin is those of a job's waiting runs that may begin. Of an ordered one that was not read yet none
// may: they are looked at when it is.
func (k *desk) mayBegin(runs []Run) []Run {
	switch {
	case !k.job.Spec.Ordered:
		return runs
	case k.queue == nil:
		return nil
	case k.queue.free():
		return runs
	}
	return slices.DeleteFunc(runs, func(r Run) bool { return !k.queue.may(r.Number) })
}
