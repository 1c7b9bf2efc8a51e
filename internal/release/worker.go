package release

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// Worker brings releases on, from step to step. Run and Look are for one goroutine.
type Worker struct {
	records *Records
	gate    Gate
	waves   *waves
	poll    time.Duration
	hint    chan struct{}
	others  func(string)        // hints to other servers
	asked   map[int64]time.Time // when the gate was asked about a release that waits for it
}

// Wake hints that there is something to do, or that rules or freezes changed. It never blocks.
func (k *Worker) Wake() {
	k.wake()
	k.others("")
}

// wake hints here.
func (k *Worker) wake() {
	select {
	case k.hint <- struct{}{}:
	default:
	}
}

// Run brings releases on until ctx is done.
func (k *Worker) Run(ctx context.Context) error {
	tick := time.NewTicker(k.poll)
	defer tick.Stop()
	for {
		if err := k.Look(ctx); err != nil && ctx.Err() == nil {
			k.records.log.ErrorContext(ctx, "a release could not be brought on, will retry", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.hint:
			clear(k.asked) // rules and freezes may be others
		case <-tick.C:
		}
	}
}

// Look takes each open release as far as it goes now.
func (k *Worker) Look(ctx context.Context) error {
	open, err := k.records.store.OpenReleases(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range open {
		if err := k.bringOn(ctx, r); err != nil {
			errs = append(errs, fmt.Errorf("release %d: %w", r.ID, err))
		}
	}
	return errors.Join(errs...)
}

// bringOn takes steps until nothing can be done now.
func (k *Worker) bringOn(ctx context.Context, r Release) error {
	for ctx.Err() == nil && !r.State.Final() {
		next, err := k.step(ctx, r)
		if err != nil {
			return err
		}
		if next.Revision == r.Revision {
			return nil
		}
		r = next
	}
	return ctx.Err()
}

// step takes the next step of a release, and returns it as it is then: the same revision if there is none to take now.
func (k *Worker) step(ctx context.Context, r Release) (Release, error) {
	switch r.State {
	case Running:
		return k.advance(ctx, r)
	case Paused:
		if r.Hold == Frozen {
			return k.thaw(ctx, r)
		}
		return k.waves.follow(ctx, r)
	case Stopping:
		return k.waves.windUp(ctx, r)
	case WaitingApproval:
		return k.reconsider(ctx, r)
	case Done, DoneWithFailures, Aborted:
	}
	return r, nil
}

func (k *Worker) advance(ctx context.Context, r Release) (Release, error) {
	w := r.current()
	if w == nil || w.Phase == Ended {
		return k.next(ctx, r)
	}
	switch w.Phase {
	case Releasing:
		return k.waves.give(ctx, r, *w)
	case Rehearsing, Applying:
		if w.job() == 0 {
			return k.waves.order(ctx, r, *w)
		}
		return k.waves.follow(ctx, r)
	case NotBegun, Ended:
	}
	return r, nil
}

// next begins the wave behind the one that has ended, if it may.
func (k *Worker) next(ctx context.Context, r Release) (Release, error) {
	w := r.current()
	last := r.Wave == len(r.Waves)
	switch {
	case r.overBudget() && (!last || r.Counts[Skipped] > 0):
		return k.records.save(ctx, r, func(r Release) Release { return r.overspent() })
	case w != nil && w.Retry && r.Counts[Skipped] > 0:
		return k.records.save(ctx, r, func(r Release) Release { return r.again() })
	case last:
		return k.records.save(ctx, r, func(r Release) Release { return r.finish(k.records.now()) })
	case w != nil && !w.Promoted && r.Promotion == Manual:
		return k.records.save(ctx, r, func(r Release) Release {
			return r.pause(ForPromoter, "wave %d has ended; the next one waits to be promoted", w.Number)
		})
	case w != nil && !w.Promoted && r.Promotion == Soaked && k.records.now().Before(w.EndedAt.Add(r.Soak)):
		return r, nil
	}
	verdict, err := k.verdict(ctx, r)
	if err != nil {
		return k.records.trouble(ctx, r, err, "wave %d could not be judged", r.Wave+1)
	}
	approvals, err := k.records.store.Approvals(ctx, r.ID)
	if err != nil {
		return r, err
	}
	return k.records.save(ctx, r, func(r Release) Release { return r.begin(verdict, approvals, k.records.now()) })
}

func (k *Worker) verdict(ctx context.Context, r Release) (Verdict, error) {
	targets, err := k.records.all(ctx, r.ID, TargetPage{})
	if err != nil {
		return Verdict{}, err
	}
	return k.gate.Judge(ctx, question(r, targets, r.Wave+1, k.records.now()))
}

// begin begins the next wave, if rules let it.
func (r Release) begin(v Verdict, approvals []Approval, now time.Time) Release {
	if f, denied := v.denied(); denied {
		return r.pause(ByPolicy, "rule %s denies wave %d: %s", f.Rule, r.Wave+1, f.Message)
	}
	if v.Frozen != nil {
		return r.freeze(*v.Frozen)
	}
	r.Needs = v.needs(r.ApproveBy)
	if lacking := Lacking(r, approvals); len(lacking) > 0 {
		r.State, r.Reason = WaitingApproval, "it waits for the approval of "+rolesOf(lacking)
		return r
	}
	r.Wave++
	w := *r.current()
	w.Phase, w.StartedAt = Releasing, now
	if r.StartedAt.IsZero() {
		r.StartedAt = now
	}
	return r.with(w)
}

func (r Release) overspent() Release {
	return r.pause(OverBudget, "%s", r.spent())
}

// spent says how a budget is used up.
func (r Release) spent() string {
	return fmt.Sprintf("%s failed, and %d may", fault.Count(r.Counts.Failures(), "node"), *r.MaxFailures)
}

// finish ends a release whose waves have all ended.
func (r Release) finish(now time.Time) Release {
	r.State, r.Reason, r.EndedAt = Done, "", now
	if failed := r.Counts.Total() - r.Counts.Succeeded(); failed > 0 {
		r.State, r.Reason = DoneWithFailures, fmt.Sprintf("%d of %s did not apply their catalog", failed, fault.Count(r.Counts.Total(), "node"))
	}
	return r
}

// freeze is r paused until a freeze is over.
func (r Release) freeze(f Freeze) Release {
	r.Until = f.Until
	return r.pause(Frozen, "nothing is released until %s: %s", f.Until.UTC().Format(time.RFC3339), f.Why)
}

// refreeze is how often a freeze that goes on is asked about without a hint.
const refreeze = 30 * time.Second

// thaw lets a frozen release go on when the freeze is over.
func (k *Worker) thaw(ctx context.Context, r Release) (Release, error) {
	now := k.records.now()
	if now.Before(r.Until) && now.Sub(k.asked[r.ID]) < refreeze {
		return r, nil
	}
	k.asked[r.ID] = now
	verdict, err := k.verdict(ctx, r)
	switch {
	case err != nil:
		return k.records.trouble(ctx, r, err, "whether wave %d is frozen could not be judged", r.Wave+1)
	case verdict.Frozen != nil && verdict.Frozen.Until.Equal(r.Until):
		return r, nil
	case verdict.Frozen != nil:
		return k.records.save(ctx, r, func(r Release) Release { return r.freeze(*verdict.Frozen) })
	}
	return k.records.save(ctx, r, func(r Release) Release {
		r.State, r.Hold, r.Reason, r.Until = Running, NoHold, "", time.Time{}
		return r
	})
}

// reconsider lets a release go on whose approvals no rule asks for any more. It is asked once after a hint.
func (k *Worker) reconsider(ctx context.Context, r Release) (Release, error) {
	if _, asked := k.asked[r.ID]; asked {
		return r, nil
	}
	k.asked[r.ID] = k.records.now()
	verdict, err := k.verdict(ctx, r)
	if err != nil {
		return r, err
	}
	approvals, err := k.records.store.Approvals(ctx, r.ID)
	if err != nil {
		return r, err
	}
	asks := r
	asks.Needs = verdict.needs(r.ApproveBy)
	if len(Lacking(asks, approvals)) > 0 {
		return r, nil
	}
	return k.records.save(ctx, r, func(r Release) Release {
		r.State, r.Reason = Running, ""
		return r
	})
}
