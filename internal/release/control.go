package release

import (
	"context"
	"slices"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Control is what people do with a release that is made.
type Control struct {
	records *Records
	hasRole func(ctx context.Context, actor fleet.Actor, role string) (bool, error)
	wake    func() // the worker
}

// Pause lets nothing more of a release begin.
func (t *Control) Pause(ctx context.Context, actor fleet.Actor, id int64, why string) (Release, error) {
	return t.act(ctx, actor, id, "paused", why, func(r Release) (Release, error) { return r.Pause(actor.Name, why) })
}

// Resume lets a paused release go on.
func (t *Control) Resume(ctx context.Context, actor fleet.Actor, id int64, maxFailures *int) (Release, error) {
	if maxFailures != nil && *maxFailures < 0 {
		return Release{}, fault.New(fault.Invalid, "field max_failures: it must not be negative")
	}
	return t.act(ctx, actor, id, "resumed", "", func(r Release) (Release, error) { return r.Resume(maxFailures) })
}

// Promote lets the next wave of a release begin.
func (t *Control) Promote(ctx context.Context, actor fleet.Actor, id int64) (Release, error) {
	return t.act(ctx, actor, id, "promoted the wave", "", func(r Release) (Release, error) { return r.Promote() })
}

// Abort ends a release.
func (t *Control) Abort(ctx context.Context, actor fleet.Actor, id int64, why string, kill bool) (Release, error) {
	return t.act(ctx, actor, id, "aborted", why, func(r Release) (Release, error) { return r.Abort(actor.Name, why, kill) })
}

// Approve says yes to a release, for each role that its needs name and actor has. Denied if there is none.
func (t *Control) Approve(ctx context.Context, actor fleet.Actor, id int64, text string) (Release, error) {
	r, err := t.records.Release(ctx, id)
	if err != nil {
		return r, err
	}
	if r.State.Final() {
		return r, ended(r)
	}
	roles, err := t.mayApprove(ctx, actor, r)
	if err != nil {
		return r, err
	}
	for _, role := range roles {
		a := Approval{Role: role, By: actor.Name, Text: text, Digest: r.Digest, At: t.records.now()}
		if err := t.records.store.AddApproval(ctx, id, a); err != nil {
			return r, err
		}
	}
	return t.act(ctx, actor, id, "approved", text, func(r Release) (Release, error) {
		approvals, err := t.records.store.Approvals(ctx, id)
		return r.Approved(approvals), err
	})
}

// mayApprove is the roles of a release's needs that somebody may approve for.
func (t *Control) mayApprove(ctx context.Context, actor fleet.Actor, r Release) (roles []string, err error) {
	own := false
	for _, need := range r.Needs {
		has, err := t.hasRole(ctx, actor, need.Role)
		switch {
		case err != nil:
			return nil, err
		case !has:
		case actor.Name == r.Author && !need.AuthorMay:
			own = true
		case !slices.Contains(roles, need.Role):
			roles = append(roles, need.Role)
		}
	}
	switch {
	case len(r.Needs) == 0:
		return nil, fault.New(fault.Conflict, "release %d needs no approval", r.ID)
	case len(roles) == 0 && own:
		return nil, fault.New(fault.Denied, "nobody approves a release of their own; release %d was made by %s", r.ID, r.Author)
	case len(roles) == 0:
		return nil, fault.New(fault.Denied, "release %d needs the approval of somebody with the role %s", r.ID, r.Needs[0].Role)
	}
	return roles, nil
}

// act does what somebody wants of a release, which may change meanwhile.
func (t *Control) act(ctx context.Context, actor fleet.Actor, id int64, word, why string, step func(Release) (Release, error)) (Release, error) {
	e := Entry{At: t.records.now(), By: actor.Name, Text: word}
	if why != "" {
		e.Text += ": " + why
	}
	r, err := t.records.change(ctx, id, func(r Release) (Change, error) {
		next, err := step(r)
		return Change{Release: next, Entries: []Entry{e}}, err
	})
	if err == nil {
		t.records.log.InfoContext(ctx, "release "+word, "release", id, "state", r.State, "actor", actor.Name)
		t.wake()
	}
	return r, err
}
