package job

import (
	"fmt"
	"maps"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// Advance steps one of the job's runs through an event, and the job with it. Nothing begins in
// a job that stops.
func (j Job) Advance(r Run, e Event) (Job, Run, Verdict) {
	after, verdict := r.Step(e)
	if verdict == Took && e.What == WasSent && j.Status == Stopping {
		verdict = Same
	}
	if verdict != Took {
		return j, r, verdict
	}
	j, after = j.tally(r, after, e.At)
	return j, after, Took
}

// tally counts that a run became after, which it returns with the number of the
// change. What only the dispatcher cares about takes none.
func (j Job) tally(before, after Run, at time.Time) (Job, Run) {
	if before.State == after.State && before.Reason == after.Reason && before.Ending == after.Ending {
		return j, after
	}
	j.Change++
	after.Change = j.Change
	if before.State == after.State {
		return j, after
	}
	if after.State == Running {
		after.Began = j.Change
	}
	j.Counts = maps.Clone(j.Counts)
	j.Counts[after.State]++
	if j.Counts[before.State]--; j.Counts[before.State] == 0 {
		delete(j.Counts, before.State)
	}
	return j.settle(at), after
}

// settle is the status that follows from the counts.
func (j Job) settle(at time.Time) Job {
	switch {
	case j.Status.Final():
		return j
	case j.Counts.Open() == 0:
		j.FinishedAt = at
		return j.become(j.verdict())
	case j.Status == Stopping:
		return j
	case j.overBudget():
		j.Reason = fmt.Sprintf("%s did not succeed, and at most %d may", fault.Count(j.Counts.Failures(), "run"), *j.Spec.MaxFailures)
		return j.stopping(at)
	case j.Status == Queued && j.Counts[Waiting] < j.Counts.Total():
		j.StartedAt = at
		return j.become(Working)
	}
	return j
}

// verdict is how a job ends whose runs have all ended.
func (j Job) verdict() Status {
	switch {
	case j.Counts[Succeeded] == j.Counts.Total():
		return Finished
	case j.Halted:
		return Stopped
	default:
		return Failed
	}
}

func (j Job) overBudget() bool {
	return j.Spec.MaxFailures != nil && j.Counts.Failures() > *j.Spec.MaxFailures
}

// become gives the change of the status a number of its own.
func (j Job) become(s Status) Job {
	j.Change++
	j.Status, j.OwnChange = s, j.Change
	return j
}

// Direct stops a job; one that has ended stays as it is.
func (j Job) Direct(d Direction) Job {
	if j.Status.Final() || j.Halted && (j.Killed || !d.Kill) {
		return j
	}
	j.Halted, j.Killed, j.Reason = true, j.Killed || d.Kill, d.Reason
	return j.stopping(d.At)
}

// stopping lets nothing more begin; the first time counts.
func (j Job) stopping(at time.Time) Job {
	j = j.become(Stopping)
	if j.StopChange == 0 {
		j.StoppingAt, j.StopChange = at, j.OwnChange
	}
	return j
}
