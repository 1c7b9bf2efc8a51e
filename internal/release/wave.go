package release

import (
	"context"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/parallel"
)

// batch is how many targets are given their catalogs in one step.
const batch = 250

// job is the one of the wave's phase.
func (w Wave) job() int64 {
	if w.Phase == Rehearsing {
		return w.Rehearse
	}
	return w.Job
}

// key names the job of a wave's phase, whoever orders it and however often.
func (r Release) key(w Wave) string {
	key := fmt.Sprintf("release/%d/wave/%d/round/%d", r.ID, w.Number, w.Round)
	if w.Phase == Rehearsing {
		key += "/noop"
	}
	return key
}

// give judges some targets of a wave and sets their generations; when there is none any more, their runs are next.
func (s *Service) give(ctx context.Context, r Release, w Wave) (Release, error) {
	targets, err := s.Store.Targets(ctx, r.ID, TargetPage{Wave: w.Number, States: []Standing{Waiting}, Limit: batch})
	if err != nil {
		return r, err
	}
	if len(targets) == 0 {
		again, err := s.skippedBefore(ctx, r, w)
		switch {
		case err != nil:
			return r, err
		case len(again) > 0:
			return s.keep(ctx, r.ID, again)
		}
		return s.save(ctx, r, func(r Release) Release {
			w.Phase = Applying
			if r.NoopFirst {
				w.Phase = Rehearsing
			}
			return r.with(w)
		})
	}
	err = parallel.Each(len(targets), atOnce, func(i int) (err error) {
		targets[i], err = s.giveOne(ctx, r, targets[i])
		return err
	})
	if err != nil {
		return r, err
	}
	return s.keep(ctx, r.ID, targets)
}

// skippedBefore is the targets of a wave that were skipped in rounds before this one: they wait again.
func (s *Service) skippedBefore(ctx context.Context, r Release, w Wave) (again []Target, err error) {
	if w.Round == 1 {
		return nil, nil
	}
	skipped, err := s.all(ctx, r.ID, TargetPage{Wave: w.Number, States: []Standing{Skipped}})
	for _, t := range skipped {
		if t.Round < w.Round {
			again = append(again, t.Again(w.Round))
		}
	}
	return again, err
}

func (s *Service) giveOne(ctx context.Context, r Release, t Target) (Target, error) {
	t, err := s.examine(ctx, t, r.ID, r.Kind == Forward)
	if err != nil || t.State.Final() {
		return t, err
	}
	generation, err := s.Delivery.Give(ctx, t.Node, deliver.Order{Catalog: t.Catalog, Release: r.ID, By: r.Author, Why: r.why()})
	if fault.Is(err, fault.Conflict) {
		return t.end(Refused, fault.Detail(err)), nil
	}
	if err == nil {
		t.State, t.Generation = Sent, generation
	}
	return t, err
}

// lost is those of the targets that do not have any more what they were given, given again or ended: since then somebody may have given
// them something else, or the server was stopped while it spared them.
func (s *Service) lost(ctx context.Context, r Release, targets []Target) (changed []Target, err error) {
	now := make([]Target, len(targets))
	err = parallel.Each(len(targets), atOnce, func(i int) error {
		has, err := s.Delivery.Has(ctx, targets[i].Node)
		if now[i] = targets[i]; err == nil && (has.Generation != targets[i].Generation || has.Catalog != targets[i].Catalog.Digest) {
			now[i], err = s.giveOne(ctx, r, targets[i])
		}
		return err
	})
	for i, t := range now {
		if t != targets[i] {
			changed = append(changed, t)
		}
	}
	return changed, err
}

// why is what generations say of where they come from.
func (r Release) why() string {
	text := fmt.Sprintf("release %d of preview %d", r.ID, r.Preview)
	switch {
	case r.Kind == Rollback && r.Of != 0:
		text = fmt.Sprintf("release %d rolls back release %d", r.ID, r.Of)
	case r.Kind == Rollback:
		text = fmt.Sprintf("release %d rolls back", r.ID)
	}
	if r.Description != "" {
		text += ": " + r.Description
	}
	return text
}

// keep stores targets, whatever became of the release meanwhile: nobody else changes them.
func (s *Service) keep(ctx context.Context, id int64, targets []Target) (Release, error) {
	return s.change(ctx, id, func(r Release) (Change, error) { return Change{Release: r, Targets: targets}, nil })
}

// order has the targets of a wave run that were given their catalogs.
func (s *Service) order(ctx context.Context, r Release, w Wave) (Release, error) {
	targets, err := s.all(ctx, r.ID, TargetPage{Wave: w.Number, States: []Standing{Sent}})
	switch {
	case err != nil:
		return r, err
	case len(targets) == 0:
		return s.endWave(ctx, r, w)
	case r.overBudget(): // in the rehearsal
		return s.spare(ctx, r, targets, "its turn did not come: "+r.spent())
	}
	others, err := s.lost(ctx, r, targets)
	switch {
	case err != nil:
		return r, err
	case len(others) > 0:
		return s.keep(ctx, r.ID, others)
	}
	o := RunOrder{
		Key: r.key(w), Description: fmt.Sprintf("release %d, wave %d", r.ID, w.Number), Author: r.Author, AuthorKind: r.AuthorKind, Noop: w.Phase == Rehearsing,
		MaxFailures: r.left(), Concurrency: r.Concurrency, Timeout: r.Timeout, WaitOffline: r.WaitOffline,
	}
	for _, t := range targets {
		o.Nodes = append(o.Nodes, t.Node)
	}
	id, err := s.Runs.Order(ctx, o)
	if err != nil {
		return s.trouble(ctx, r, err, "wave %d could not be run", w.Number)
	}
	return s.save(ctx, r, func(r Release) Release { return r.with(w.ran(id)) })
}

// trouble pauses a release whose next step cannot be taken, if that stays so when it is tried again.
func (s *Service) trouble(ctx context.Context, r Release, err error, format string, args ...any) (Release, error) {
	switch fault.Of(err) {
	case fault.Invalid, fault.Denied, fault.Conflict, fault.NotFound:
		return s.save(ctx, r, func(r Release) Release {
			r.Until = time.Time{}
			return r.pause(Trouble, "%s: %s", fmt.Sprintf(format, args...), fault.Detail(err))
		})
	case fault.Internal, fault.Unavailable:
	}
	return r, err
}

// ran is w with its phase's job.
func (w Wave) ran(job int64) Wave {
	if w.Phase == Rehearsing {
		w.Rehearse = job
	} else {
		w.Job = job
	}
	return w
}

func (s *Service) endWave(ctx context.Context, r Release, w Wave) (Release, error) {
	return s.save(ctx, r, func(r Release) Release {
		w.Phase, w.EndedAt = Ended, s.Now()
		return r.with(w)
	})
}

// follow takes in what became of the runs of a wave.
func (s *Service) follow(ctx context.Context, r Release) (Release, error) {
	w := r.current()
	switch {
	case w == nil, w.Phase != Rehearsing && w.Phase != Applying:
		return r, nil
	case w.job() == 0: // paused
		next, _, err := s.lookUp(ctx, r, *w)
		return next, err
	case w.Phase == Rehearsing:
		return s.rehearsed(ctx, r, *w)
	default:
		return s.applied(ctx, r, *w)
	}
}

// lookUp finds the job of a wave that may have been ordered just before the release was paused or aborted, or the server stopped.
func (s *Service) lookUp(ctx context.Context, r Release, w Wave) (next Release, found bool, err error) {
	id, err := s.Runs.Find(ctx, r.key(w))
	if fault.Is(err, fault.NotFound) {
		return r, false, nil // it was not
	}
	if err != nil {
		return r, false, err
	}
	next, err = s.save(ctx, r, func(r Release) Release { return r.with(w.ran(id)) })
	return next, true, err
}

// rehearsed takes in a run in noop mode when it is over.
func (s *Service) rehearsed(ctx context.Context, r Release, w Wave) (Release, error) {
	results, over, _, err := s.results(ctx, w.Rehearse, 0)
	if err != nil || !over {
		return r, err
	}
	open, err := s.openOf(ctx, r, w)
	if err != nil {
		return r, err
	}
	var changed []Target
	for _, t := range open {
		if now := t.Rehearsed(results[t.Node]); now != t {
			changed = append(changed, now)
		}
	}
	if err := s.restoreAll(ctx, r, changed); err != nil {
		return r, err
	}
	return s.save(ctx, r, func(r Release) Release {
		w.Phase = Applying
		return r.with(w)
	}, changed...)
}

// applied takes in what changed in the wave's job, and reports that came. While the job goes on there is nothing more to do then.
func (s *Service) applied(ctx context.Context, r Release, w Wave) (Release, error) {
	results, over, last, err := s.results(ctx, w.Job, s.seen[w.Job])
	if err != nil {
		return r, err
	}
	open, err := s.openOf(ctx, r, w)
	if err != nil {
		return r, err
	}
	if over && len(open) == 0 {
		delete(s.seen, w.Job)
		return s.endWave(ctx, r, w)
	}
	stepped := make([]Target, len(open))
	err = parallel.Each(len(open), atOnce, func(i int) (err error) {
		stepped[i], err = s.judge1(ctx, r, open[i], results, over)
		return err
	})
	if err != nil {
		return r, err
	}
	var changed []Target
	for i, t := range stepped {
		if t != open[i] {
			changed = append(changed, t)
		}
	}
	next := r
	if len(changed) > 0 {
		if next, err = s.keep(ctx, r.ID, changed); err != nil {
			return r, err
		}
	}
	s.seen[w.Job] = last
	if !over {
		return r, nil // what comes meanwhile waits for the next look: each reads all targets that are open
	}
	return next, nil
}

// judge1 is what results, and the report of its run, make of a target. A job that is over has said all.
func (s *Service) judge1(ctx context.Context, r Release, t Target, results map[fleet.Certname]Result, over bool) (Target, error) {
	if result, ok := results[t.Node]; ok {
		t = t.Step(result)
	}
	if t.State == Skipped {
		return s.restore(ctx, r, t)
	}
	if t.State == AtWork && !t.RunEnded.IsZero() {
		uuid, ok, err := s.Delivery.ReportedCatalog(ctx, t.Node, t.Report)
		return t.Judge(uuid, ok, s.Now()), err
	}
	if over {
		t = t.end(Failed, "its job has ended, and says nothing of it")
	}
	return t, nil
}

// openOf is the targets of a wave that are not final.
func (s *Service) openOf(ctx context.Context, r Release, w Wave) ([]Target, error) {
	return s.all(ctx, r.ID, TargetPage{Wave: w.Number, States: []Standing{Sent, AtWork}})
}

// results is what became of a job's runs behind a change.
func (s *Service) results(ctx context.Context, job, after int64) (all map[fleet.Certname]Result, over bool, last int64, err error) {
	all = map[fleet.Certname]Result{}
	for {
		page, err := s.Runs.Results(ctx, job, after, pageSize)
		if err != nil {
			return nil, false, after, err
		}
		for _, r := range page.Runs {
			all[r.Node] = r
		}
		if len(page.Runs) == 0 || page.Last == after {
			return all, page.Over, page.Last, nil
		}
		after = page.Last
	}
}

// windUp ends what goes on of a release that is aborted, and then the release.
func (s *Service) windUp(ctx context.Context, r Release) (Release, error) {
	if w := r.current(); w != nil && (w.Phase == Rehearsing || w.Phase == Applying) {
		next, going, err := s.stopWave(ctx, r, *w)
		if err != nil || going {
			return next, err
		}
	}
	open, err := s.Store.Targets(ctx, r.ID, TargetPage{States: []Standing{Waiting, Sent, AtWork}, Limit: batch})
	if err != nil {
		return r, err
	}
	if len(open) == 0 {
		return s.save(ctx, r, func(r Release) Release {
			r.State, r.EndedAt = Aborted, s.Now()
			return r
		})
	}
	for i, t := range open {
		if open[i], err = s.leftOut(ctx, r, t); err != nil {
			return r, err
		}
	}
	return s.keep(ctx, r.ID, open)
}

// stopWave ends the job of a wave; going says that it, or what it left to judge, goes on.
func (s *Service) stopWave(ctx context.Context, r Release, w Wave) (next Release, going bool, err error) {
	if w.job() == 0 {
		return s.lookUp(ctx, r, w)
	}
	if err := s.Runs.Stop(ctx, w.job(), r.Kill); err != nil {
		return r, true, err
	}
	if w.Phase == Rehearsing {
		_, over, _, err := s.results(ctx, w.Rehearse, 0)
		return r, !over, err
	}
	next, err = s.applied(ctx, r, w)
	return next, true, err
}

// leftOut is a target to which nothing more happens.
func (s *Service) leftOut(ctx context.Context, r Release, t Target) (Target, error) {
	if t.State == Waiting && t.Wave == r.Wave {
		has, err := s.Delivery.Has(ctx, t.Node)
		if err != nil {
			return t, err
		}
		if has.Release == r.ID && has.Catalog == t.Catalog.Digest {
			t.State, t.Generation = Sent, has.Generation
		}
	}
	if t.State == Sent {
		return s.restore(ctx, r, t.end(Skipped, "it was not run: the release was aborted"))
	}
	return t.end(Skipped, "the release was aborted before its turn"), nil
}
