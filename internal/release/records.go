package release

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/hint"
)

// Records are the releases that are stored. Each step of one is decided on what is stored, and told to those who watch.
type Records struct {
	store   Store
	changes hint.Board
	now     func() time.Time
	log     *slog.Logger
}

// Release is one release; NotFound.
func (d *Records) Release(ctx context.Context, id int64) (Release, error) {
	return d.store.Release(ctx, id)
}

// Releases is a page of releases, the newest first.
func (d *Records) Releases(ctx context.Context, page Page) ([]Release, error) {
	return d.store.Releases(ctx, page)
}

// Targets is a page of a release's targets; NotFound.
func (d *Records) Targets(ctx context.Context, id int64, page TargetPage) ([]Target, error) {
	if _, err := d.store.Release(ctx, id); err != nil {
		return nil, err
	}
	return d.store.Targets(ctx, id, page)
}

// Entries is what happened in a release, in order.
func (d *Records) Entries(ctx context.Context, id int64) ([]Entry, error) {
	return d.store.Entries(ctx, id)
}

// Approvals is those of a release, by time.
func (d *Records) Approvals(ctx context.Context, id int64) ([]Approval, error) {
	return d.store.Approvals(ctx, id)
}

// Wait returns when a release has another revision than after, or has ended, or after about a second: what it waits for is a
// hint. NotFound.
func (d *Records) Wait(ctx context.Context, id, after int64) error {
	return d.changes.Wait(ctx, id, func() (bool, error) {
		r, err := d.store.Release(ctx, id)
		return r.Revision > after || r.State.Final(), err
	})
}

// change takes a step that is decided on what is stored, again if that changed meanwhile.
func (d *Records) change(ctx context.Context, id int64, decide func(Release) (Change, error)) (Release, error) {
	for range 10 {
		r, err := d.store.Release(ctx, id)
		if err != nil {
			return r, err
		}
		c, err := decide(r)
		if err != nil {
			return r, err
		}
		c.Base, c.Release.ID = r.Revision, r.ID
		now, err := d.store.SaveRelease(ctx, c)
		if err == nil {
			d.changes.Tell(id)
			return now, nil
		}
		if fault.Of(err) != fault.Conflict {
			return r, err
		}
	}
	return Release{}, fault.Later(time.Second, "release %d changes all the time", id)
}

// save takes a step of the release itself, decided on what is stored: if somebody else changed it meanwhile, there is
// nothing to take.
func (d *Records) save(ctx context.Context, r Release, step func(Release) Release, targets ...Target) (Release, error) {
	next := step(r)
	c := Change{Base: r.Revision, Release: next, Targets: targets}
	if text := told(r, next); text != "" {
		c.Entries = []Entry{{At: d.now(), Text: text}}
	}
	now, err := d.store.SaveRelease(ctx, c)
	if fault.Is(err, fault.Conflict) {
		return d.store.Release(ctx, r.ID)
	}
	if err == nil {
		d.changes.Tell(r.ID)
		if now.State != r.State {
			d.log.InfoContext(ctx, "release "+string(now.State), "release", r.ID, "reason", now.Reason)
		}
	}
	return now, err
}

// keep stores targets, whatever became of the release meanwhile: nobody else changes them.
func (d *Records) keep(ctx context.Context, id int64, targets []Target) (Release, error) {
	return d.change(ctx, id, func(r Release) (Change, error) { return Change{Release: r, Targets: targets}, nil })
}

// trouble pauses a release whose next step cannot be taken, if that stays so when it is tried again.
func (d *Records) trouble(ctx context.Context, r Release, err error, format string, args ...any) (Release, error) {
	switch fault.Of(err) {
	case fault.Invalid, fault.Denied, fault.Conflict, fault.NotFound:
		return d.save(ctx, r, func(r Release) Release {
			r.Until = time.Time{}
			return r.pause(Trouble, "%s: %s", fmt.Sprintf(format, args...), fault.Detail(err))
		})
	case fault.Internal, fault.Unavailable:
	}
	return r, err
}

// all is every target that fits.
func (d *Records) all(ctx context.Context, id int64, page TargetPage) (targets []Target, err error) {
	page.Limit = pageSize
	for {
		some, err := d.store.Targets(ctx, id, page)
		targets = append(targets, some...)
		if err != nil || len(some) < page.Limit {
			return targets, err
		}
		page.After = some[len(some)-1].Number
	}
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
		text = fmt.Sprintf("wave %d (%s) begins: %s", w.Number, w.Size, fault.Count(w.Nodes, "node"))
	case after.Wave > 0 && after.current().Phase == Ended && before.current().Phase != Ended:
		text = fmt.Sprintf("wave %d has ended", after.Wave)
	case after.Wave > 0 && after.current().job() != 0 && before.current().job() == 0:
		text = fmt.Sprintf("job %d runs wave %d", after.current().job(), after.Wave)
	}
	return text
}
