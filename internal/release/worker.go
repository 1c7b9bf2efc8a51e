package release

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// Run brings releases on until ctx is done.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(s.Poll)
	defer tick.Stop()
	for {
		if err := s.Look(ctx); err != nil && ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "a release could not be brought on, will retry", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
			clear(s.asked) // rules and freezes may be others
		case <-tick.C:
		}
	}
}

// Look takes each open release as far as it goes now.
func (s *Service) Look(ctx context.Context) error {
	open, err := s.Store.OpenReleases(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range open {
		if err := s.bringOn(ctx, r); err != nil {
			errs = append(errs, fmt.Errorf("release %d: %w", r.ID, err))
		}
	}
	return errors.Join(errs...)
}

// bringOn takes steps until nothing can be done now.
func (s *Service) bringOn(ctx context.Context, r Release) error {
	for ctx.Err() == nil && !r.State.Final() {
		next, err := s.step(ctx, r)
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
func (s *Service) step(ctx context.Context, r Release) (Release, error) {
	switch r.State {
	case Running:
		return s.advance(ctx, r)
	case Paused:
		if r.Hold == Frozen {
			return s.thaw(ctx, r)
		}
		return s.follow(ctx, r)
	case Stopping:
		return s.windUp(ctx, r)
	case WaitingApproval:
		return s.reconsider(ctx, r)
	case Done, DoneWithFailures, Aborted:
	}
	return r, nil
}

func (s *Service) advance(ctx context.Context, r Release) (Release, error) {
	w := r.current()
	if w == nil || w.Phase == Ended {
		return s.next(ctx, r)
	}
	switch w.Phase {
	case Releasing:
		return s.give(ctx, r, *w)
	case Rehearsing, Applying:
		if w.job() == 0 {
			return s.order(ctx, r, *w)
		}
		return s.follow(ctx, r)
	case NotBegun, Ended:
	}
	return r, nil
}

// next begins the wave behind the one that has ended, if it may.
func (s *Service) next(ctx context.Context, r Release) (Release, error) {
	w := r.current()
	last := r.Wave == len(r.Waves)
	switch {
	case r.overBudget() && (!last || r.Counts[Skipped] > 0):
		return s.save(ctx, r, func(r Release) Release { return r.overspent() })
	case w != nil && w.Retry && r.Counts[Skipped] > 0:
		return s.save(ctx, r, func(r Release) Release { return r.again() })
	case last:
		return s.save(ctx, r, func(r Release) Release { return r.finish(s.Now()) })
	case w != nil && !w.Promoted && r.Promotion == Manual:
		return s.save(ctx, r, func(r Release) Release {
			return r.pause(ForPromoter, "wave %d has ended; the next one waits to be promoted", w.Number)
		})
	case w != nil && !w.Promoted && r.Promotion == Soaked && s.Now().Before(w.EndedAt.Add(r.Soak)):
		return r, nil
	}
	verdict, err := s.verdict(ctx, r)
	if err != nil {
		return s.trouble(ctx, r, err, "wave %d could not be judged", r.Wave+1)
	}
	approvals, err := s.Store.Approvals(ctx, r.ID)
	if err != nil {
		return r, err
	}
	return s.save(ctx, r, func(r Release) Release { return r.begin(verdict, approvals, s.Now()) })
}

func (s *Service) verdict(ctx context.Context, r Release) (Verdict, error) {
	targets, err := s.all(ctx, r.ID, TargetPage{})
	if err != nil {
		return Verdict{}, err
	}
	return s.Gate.Judge(ctx, question(r, targets, r.Wave+1, s.Now()))
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
	return fmt.Sprintf("%s failed, and %d may", nodes(r.Counts.Failures()), *r.MaxFailures)
}

// nodes counts nodes in words.
func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// finish ends a release whose waves have all ended.
func (r Release) finish(now time.Time) Release {
	r.State, r.Reason, r.EndedAt = Done, "", now
	if failed := r.Counts.Total() - r.Counts.Succeeded(); failed > 0 {
		r.State, r.Reason = DoneWithFailures, fmt.Sprintf("%d of %s did not apply their catalog", failed, nodes(r.Counts.Total()))
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
func (s *Service) thaw(ctx context.Context, r Release) (Release, error) {
	now := s.Now()
	if now.Before(r.Until) && now.Sub(s.asked[r.ID]) < refreeze {
		return r, nil
	}
	s.asked[r.ID] = now
	verdict, err := s.verdict(ctx, r)
	switch {
	case err != nil:
		return s.trouble(ctx, r, err, "whether wave %d is frozen could not be judged", r.Wave+1)
	case verdict.Frozen != nil && verdict.Frozen.Until.Equal(r.Until):
		return r, nil
	case verdict.Frozen != nil:
		return s.save(ctx, r, func(r Release) Release { return r.freeze(*verdict.Frozen) })
	}
	return s.save(ctx, r, func(r Release) Release {
		r.State, r.Hold, r.Reason, r.Until = Running, NoHold, "", time.Time{}
		return r
	})
}

// reconsider lets a release go on whose approvals no rule asks for any more. It is asked once after a hint.
func (s *Service) reconsider(ctx context.Context, r Release) (Release, error) {
	if _, asked := s.asked[r.ID]; asked {
		return r, nil
	}
	s.asked[r.ID] = s.Now()
	verdict, err := s.verdict(ctx, r)
	if err != nil {
		return r, err
	}
	approvals, err := s.Store.Approvals(ctx, r.ID)
	if err != nil {
		return r, err
	}
	asks := r
	asks.Needs = verdict.needs(r.ApproveBy)
	if len(Lacking(asks, approvals)) > 0 {
		return r, nil
	}
	return s.save(ctx, r, func(r Release) Release {
		r.State, r.Reason = Running, ""
		return r
	})
}

// save takes a step of the release itself, decided on what is stored: if somebody else changed it meanwhile, there is
// nothing to take.
func (s *Service) save(ctx context.Context, r Release, step func(Release) Release, targets ...Target) (Release, error) {
	next := step(r)
	c := Change{Base: r.Revision, Release: next, Targets: targets}
	if text := told(r, next); text != "" {
		c.Entries = []Entry{{At: s.Now(), Text: text}}
	}
	now, err := s.Store.SaveRelease(ctx, c)
	if fault.Is(err, fault.Conflict) {
		return s.Store.Release(ctx, r.ID)
	}
	if err == nil {
		s.changes.Tell(r.ID)
		if now.State != r.State {
			s.Log.InfoContext(ctx, "release "+string(now.State), "release", r.ID, "reason", now.Reason)
		}
	}
	return now, err
}

// told is what a step is, for people; empty: not worth a word.
func told(before, after Release) string {
	text := ""
	switch {
	case after.State != before.State || after.Hold != before.Hold:
		text = inWords(after.State)
		if after.Reason != "" {
			text += ": " + after.Reason
		}
	case after.Wave != before.Wave:
		w := after.current()
		text = fmt.Sprintf("wave %d (%s) begins: %s", w.Number, w.Size, nodes(w.Nodes))
	case after.Wave > 0 && after.current().Phase == Ended && before.current().Phase != Ended:
		text = fmt.Sprintf("wave %d has ended", after.Wave)
	case after.Wave > 0 && after.current().job() != 0 && before.current().job() == 0:
		text = fmt.Sprintf("job %d runs wave %d", after.current().job(), after.Wave)
	}
	return text
}
