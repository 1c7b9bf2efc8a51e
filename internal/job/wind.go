package job

import (
	"context"
	"slices"
	"time"
)

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
			events[i] = Event{Run: r.ID, What: ToldToStop, State: Killed, At: now, Due: now.Add(d.stopGrace(r)), Reason: k.job.Reason}
		}
		applied, err := d.applyTo(ctx, k, events)
		if err != nil {
			return err
		}
		for _, a := range applied {
			if a.Verdict == Took {
				_ = d.ask(ctx, a.Run, askCancel, a.Run.Reason)
			}
		}
	}
}

// stopGrace is how long a run has to stop. A node that is away may be about to connect again:
// it is told then, and knows how its run ended.
func (d *dispatcher) stopGrace(r Run) time.Duration {
	if _, connected := d.Sender.Connected(r.Node); connected {
		return d.settings.StopGrace
	}
	return max(d.settings.StopGrace, d.settings.Reconnect)
}
