package release

import (
	"fmt"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// Pause lets nothing more begin.
func (r Release) Pause(by, why string) (Release, error) {
	switch {
	case r.State == Running, r.State == Paused:
		r.State, r.Hold, r.Until = Paused, ByHand, time.Time{}
		r.Reason = "paused by " + by
		if why != "" {
			r.Reason += ": " + why
		}
		return r, nil
	case r.State.Final():
		return r, ended(r)
	}
	return r, fault.New(fault.Conflict, "release %d is %s: there is nothing to pause", r.ID, inWords(r.State))
}

// Resume lets a paused release go on. With maxFailures it has that budget from now on, also one that is not paused. Targets that its
// budget, or somebody who stopped the job, left out get another round.
func (r Release) Resume(maxFailures *int) (Release, error) {
	running := r.State == Running
	switch {
	case r.State.Final():
		return r, ended(r)
	case running && maxFailures == nil:
		return r, nil
	case !running && r.State != Paused:
		return r, fault.New(fault.Conflict, "release %d is %s: it cannot be resumed", r.ID, inWords(r.State))
	}
	if maxFailures != nil {
		r.MaxFailures = maxFailures
	}
	switch {
	case r.Hold == ForPromoter:
		return r, fault.New(fault.Conflict, "wave %d of release %d waits to be promoted: tutti release promote %d", r.Wave, r.ID, r.ID)
	case r.Hold == Frozen:
		return r, fault.New(fault.Conflict, "release %d is frozen until %s and goes on by itself then", r.ID, r.Until.UTC().Format(time.RFC3339))
	case !running && r.overBudget():
		return r, fault.New(fault.Conflict, "%s of release %d failed and %d may: to go on, resume it with --max-failures %d or more",
			fault.Count(r.Counts.Failures(), "node"), r.ID, *r.MaxFailures, r.Counts.Failures())
	}
	r.State, r.Hold, r.Reason, r.Until = Running, NoHold, "", time.Time{}
	w := r.current()
	if w != nil && (w.Phase == Rehearsing || w.Phase == Applying) { // its job may run, or have left targets out, also if that could not be written down yet
		w.Retry = true
		return r.with(*w), nil
	}
	return r.again(), nil
}

// again gives the targets of the wave that were skipped another round.
func (r Release) again() Release {
	w := r.current()
	if w == nil || w.Phase != Ended || r.Counts[Skipped] == 0 {
		return r
	}
	if w.Job != 0 {
		w.Jobs = append(slices.Clone(w.Jobs), w.Job)
	}
	w.Round, w.Phase, w.Job, w.Rehearse, w.EndedAt, w.Promoted, w.Retry = w.Round+1, Releasing, 0, 0, time.Time{}, false, false
	return r.with(*w)
}

// Promote lets the wave behind the one that has ended begin.
func (r Release) Promote() (Release, error) {
	w := r.current()
	switch {
	case r.State.Final():
		return r, ended(r)
	case w != nil && w.Promoted:
		return r, nil
	case r.State == Paused && r.Hold != ForPromoter && w != nil && w.Phase == Ended:
		return r, fault.New(fault.Conflict, "release %d is paused: tutti release resume %d, then tutti release promote %d", r.ID, r.ID, r.ID)
	case w == nil || w.Phase != Ended || r.State != Running && r.Hold != ForPromoter:
		return r, fault.New(fault.Conflict, "release %d is %s: no wave of it waits to be promoted", r.ID, inWords(r.State))
	}
	w.Promoted = true
	r.State, r.Hold, r.Reason = Running, NoHold, ""
	return r.with(*w), nil
}

// Abort ends a release: nothing more begins. What runs goes on to its end, or is killed.
func (r Release) Abort(by, why string, kill bool) (Release, error) {
	if r.State.Final() {
		return r, ended(r)
	}
	reason := "aborted by " + by
	if why != "" {
		reason += ": " + why
	}
	if r.State != Stopping {
		r.Reason = reason
	}
	r.State, r.Hold, r.Until, r.Kill = Stopping, NoHold, time.Time{}, r.Kill || kill
	return r, nil
}

// Approved lets a release begin whose needs are met.
func (r Release) Approved(approvals []Approval) Release {
	if r.State == WaitingApproval && len(Lacking(r, approvals)) == 0 {
		r.State, r.Reason = Running, ""
	}
	return r
}

func ended(r Release) error {
	return fault.New(fault.Conflict, "release %d has ended: it is %s", r.ID, inWords(r.State))
}

// overBudget says whether more failed than may.
func (r Release) overBudget() bool {
	return r.MaxFailures != nil && r.Counts.Failures() > *r.MaxFailures
}

// left is how many more may fail; nil: any number.
func (r Release) left() *int {
	if r.MaxFailures == nil {
		return nil
	}
	n := max(*r.MaxFailures-r.Counts.Failures(), 0)
	return &n
}

// current is a copy of the wave that the release is at; nil: none has begun.
func (r Release) current() *Wave {
	if r.Wave < 1 || r.Wave > len(r.Waves) {
		return nil
	}
	w := r.Waves[r.Wave-1]
	return &w
}

// with is r with another state of one of its waves.
func (r Release) with(w Wave) Release {
	r.Waves = slices.Clone(r.Waves)
	r.Waves[w.Number-1] = w
	return r
}

// pause is r paused by itself.
func (r Release) pause(hold Hold, format string, args ...any) Release {
	r.State, r.Hold, r.Reason = Paused, hold, fmt.Sprintf(format, args...)
	return r
}

func inWords(s State) string {
	switch s {
	case WaitingApproval:
		return "waiting for approval"
	case DoneWithFailures:
		return "done with failures"
	case Running, Paused, Stopping, Done, Aborted:
	}
	return string(s)
}
