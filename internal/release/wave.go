package release

import (
	"context"
	"fmt"

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

// waves does what one wave needs: its targets are given their catalogs and run, and what became of them is taken in.
type waves struct {
	records    *Records
	recipients recipients
	runs       Runs
	seen       map[int64]int64 // up to which change a job's results were taken in
}

// give judges some targets of a wave and sets their generations; when there is none any more, their runs are next.
func (v *waves) give(ctx context.Context, r Release, w Wave) (Release, error) {
	targets, err := v.records.store.Targets(ctx, r.ID, TargetPage{Wave: w.Number, States: []Standing{Waiting}, Limit: batch})
	if err != nil {
		return r, err
	}
	if len(targets) == 0 {
		again, err := v.skippedBefore(ctx, r, w)
		switch {
		case err != nil:
			return r, err
		case len(again) > 0:
			return v.records.keep(ctx, r.ID, again)
		}
		return v.records.save(ctx, r, func(r Release) Release {
			w.Phase = Applying
			if r.NoopFirst {
				w.Phase = Rehearsing
			}
			return r.with(w)
		})
	}
	err = parallel.Each(len(targets), atOnce, func(i int) (err error) {
		targets[i], err = v.recipients.give(ctx, r, targets[i])
		return err
	})
	if err != nil {
		return r, err
	}
	return v.records.keep(ctx, r.ID, targets)
}

// skippedBefore is the targets of a wave that were skipped in rounds before this one: they wait again.
func (v *waves) skippedBefore(ctx context.Context, r Release, w Wave) (again []Target, err error) {
	if w.Round == 1 {
		return nil, nil
	}
	skipped, err := v.records.all(ctx, r.ID, TargetPage{Wave: w.Number, States: []Standing{Skipped}})
	for _, t := range skipped {
		if t.Round < w.Round {
			again = append(again, t.Again(w.Round))
		}
	}
	return again, err
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

// order has the targets of a wave run that were given their catalogs.
func (v *waves) order(ctx context.Context, r Release, w Wave) (Release, error) {
	targets, err := v.records.all(ctx, r.ID, TargetPage{Wave: w.Number, States: []Standing{Sent}})
	switch {
	case err != nil:
		return r, err
	case len(targets) == 0:
		return v.endWave(ctx, r, w)
	case r.overBudget(): // in the rehearsal
		return v.spare(ctx, r, targets, "its turn did not come: "+r.spent())
	}
	others, err := v.recipients.lost(ctx, r, targets)
	switch {
	case err != nil:
		return r, err
	case len(others) > 0:
		return v.records.keep(ctx, r.ID, others)
	}
	o := RunOrder{
		Key: r.key(w), Description: fmt.Sprintf("release %d, wave %d", r.ID, w.Number), Author: r.Author, AuthorKind: r.AuthorKind, Noop: w.Phase == Rehearsing,
		MaxFailures: r.left(), Concurrency: r.Concurrency, Timeout: r.Timeout, WaitOffline: r.WaitOffline,
	}
	for _, t := range targets {
		o.Nodes = append(o.Nodes, t.Node)
	}
	id, err := v.runs.Order(ctx, o)
	if err != nil {
		return v.records.trouble(ctx, r, err, "wave %d could not be run", w.Number)
	}
	return v.records.save(ctx, r, func(r Release) Release { return r.with(w.ran(id)) })
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

func (v *waves) endWave(ctx context.Context, r Release, w Wave) (Release, error) {
	return v.records.save(ctx, r, func(r Release) Release {
		w.Phase, w.EndedAt = Ended, v.records.now()
		return r.with(w)
	})
}

// follow takes in what became of the runs of a wave.
func (v *waves) follow(ctx context.Context, r Release) (Release, error) {
	w := r.current()
	switch {
	case w == nil, w.Phase != Rehearsing && w.Phase != Applying:
		return r, nil
	case w.job() == 0: // paused
		next, _, err := v.lookUp(ctx, r, *w)
		return next, err
	case w.Phase == Rehearsing:
		return v.rehearsed(ctx, r, *w)
	default:
		return v.applied(ctx, r, *w)
	}
}

// lookUp finds the job of a wave that may have been ordered just before the release was paused or aborted, or the server stopped.
func (v *waves) lookUp(ctx context.Context, r Release, w Wave) (next Release, found bool, err error) {
	id, err := v.runs.Find(ctx, r.key(w))
	if fault.Is(err, fault.NotFound) {
		return r, false, nil // it was not
	}
	if err != nil {
		return r, false, err
	}
	next, err = v.records.save(ctx, r, func(r Release) Release { return r.with(w.ran(id)) })
	return next, true, err
}

// rehearsed takes in a run in noop mode when it is over.
func (v *waves) rehearsed(ctx context.Context, r Release, w Wave) (Release, error) {
	results, over, _, err := v.results(ctx, w.Rehearse, 0)
	if err != nil || !over {
		return r, err
	}
	open, err := v.openOf(ctx, r, w)
	if err != nil {
		return r, err
	}
	var changed []Target
	for _, t := range open {
		if now := t.Rehearsed(results[t.Node]); now != t {
			changed = append(changed, now)
		}
	}
	if err := v.recipients.restoreAll(ctx, r, changed); err != nil {
		return r, err
	}
	return v.records.save(ctx, r, func(r Release) Release {
		w.Phase = Applying
		return r.with(w)
	}, changed...)
}

// applied takes in what changed in the wave's job, and reports that came. While the job goes on there is nothing more to do then.
func (v *waves) applied(ctx context.Context, r Release, w Wave) (Release, error) {
	results, over, last, err := v.results(ctx, w.Job, v.seen[w.Job])
	if err != nil {
		return r, err
	}
	open, err := v.openOf(ctx, r, w)
	if err != nil {
		return r, err
	}
	if over && len(open) == 0 {
		delete(v.seen, w.Job)
		return v.endWave(ctx, r, w)
	}
	stepped := make([]Target, len(open))
	err = parallel.Each(len(open), atOnce, func(i int) (err error) {
		stepped[i], err = v.outcome(ctx, r, open[i], results, over)
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
		if next, err = v.records.keep(ctx, r.ID, changed); err != nil {
			return r, err
		}
	}
	v.seen[w.Job] = last
	if !over {
		return r, nil // what comes meanwhile waits for the next look: each reads all targets that are open
	}
	return next, nil
}

// outcome is what results, and the report of its run, make of a target. A job that is over has said all.
func (v *waves) outcome(ctx context.Context, r Release, t Target, results map[fleet.Certname]Result, over bool) (Target, error) {
	if result, ok := results[t.Node]; ok {
		t = t.Step(result)
	}
	if t.State == Skipped {
		return v.recipients.restore(ctx, r, t)
	}
	if t.State == AtWork && !t.RunEnded.IsZero() {
		uuid, ok, err := v.recipients.delivery.ReportedCatalog(ctx, t.Node, t.Report)
		return t.Judge(uuid, ok, v.records.now()), err
	}
	if over {
		t = t.end(Failed, "its job has ended, and says nothing of it")
	}
	return t, nil
}

// openOf is the targets of a wave that are not final.
func (v *waves) openOf(ctx context.Context, r Release, w Wave) ([]Target, error) {
	return v.records.all(ctx, r.ID, TargetPage{Wave: w.Number, States: []Standing{Sent, AtWork}})
}

// results is what became of a job's runs behind a change.
func (v *waves) results(ctx context.Context, job, after int64) (all map[fleet.Certname]Result, over bool, last int64, err error) {
	all = map[fleet.Certname]Result{}
	for {
		page, err := v.runs.Results(ctx, job, after, pageSize)
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

// spare ends targets that were given their catalogs and are not run.
func (v *waves) spare(ctx context.Context, r Release, targets []Target, reason string) (Release, error) {
	for i := range targets {
		targets[i] = targets[i].end(Skipped, reason)
	}
	if err := v.recipients.restoreAll(ctx, r, targets); err != nil {
		return r, err
	}
	return v.records.keep(ctx, r.ID, targets)
}

// windUp ends what goes on of a release that is aborted, and then the release.
func (v *waves) windUp(ctx context.Context, r Release) (Release, error) {
	if w := r.current(); w != nil && (w.Phase == Rehearsing || w.Phase == Applying) {
		next, going, err := v.stopWave(ctx, r, *w)
		if err != nil || going {
			return next, err
		}
	}
	open, err := v.records.store.Targets(ctx, r.ID, TargetPage{States: []Standing{Waiting, Sent, AtWork}, Limit: batch})
	if err != nil {
		return r, err
	}
	if len(open) == 0 {
		return v.records.save(ctx, r, func(r Release) Release {
			r.State, r.EndedAt = Aborted, v.records.now()
			return r
		})
	}
	for i, t := range open {
		if open[i], err = v.leftOut(ctx, r, t); err != nil {
			return r, err
		}
	}
	return v.records.keep(ctx, r.ID, open)
}

// stopWave ends the job of a wave; going says that it, or what it left to judge, goes on.
func (v *waves) stopWave(ctx context.Context, r Release, w Wave) (next Release, going bool, err error) {
	if w.job() == 0 {
		return v.lookUp(ctx, r, w)
	}
	if err := v.runs.Stop(ctx, w.job(), r.Kill); err != nil {
		return r, true, err
	}
	if w.Phase == Rehearsing {
		_, over, _, err := v.results(ctx, w.Rehearse, 0)
		return r, !over, err
	}
	next, err = v.applied(ctx, r, w)
	return next, true, err
}

// leftOut is a target to which nothing more happens.
func (v *waves) leftOut(ctx context.Context, r Release, t Target) (Target, error) {
	if t.State == Waiting && t.Wave == r.Wave {
		has, err := v.recipients.delivery.Has(ctx, t.Node)
		if err != nil {
			return t, err
		}
		if has.Release == r.ID && has.Catalog == t.Catalog.Digest {
			t.State, t.Generation = Sent, has.Generation
		}
	}
	if t.State == Sent {
		return v.recipients.restore(ctx, r, t.end(Skipped, "it was not run: the release was aborted"))
	}
	return t.end(Skipped, "the release was aborted before its turn"), nil
}
