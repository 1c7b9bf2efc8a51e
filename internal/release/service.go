package release

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/hint"
)

// Config is what a service works with.
type Config struct {
	Store    Store
	Previews Previews
	Delivery Delivery
	Runs     Runs
	Resolver Resolver
	Gate     Gate
	// HasRole says whether somebody may approve for a role.
	HasRole func(ctx context.Context, actor fleet.Actor, role string) (bool, error)
	Poll    time.Duration // how often it looks without a hint; default 1 s
	Now     func() time.Time
	Log     *slog.Logger
}

// Service makes releases and brings them to their end.
type Service struct {
	Config
	wake    chan struct{}
	changes hint.Board
	seen    map[int64]int64     // of Run alone, as asked: up to which change a job's results were taken in
	asked   map[int64]time.Time // when the gate was asked about a release that waits for it
}

// NewService returns a service; Run does the work.
func NewService(c Config) *Service {
	if c.Gate == nil {
		c.Gate = Open{}
	}
	if c.Poll == 0 {
		c.Poll = time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{Config: c, wake: make(chan struct{}, 1), seen: map[int64]int64{}, asked: map[int64]time.Time{}}
}

// Wake hints that there is something to do, or that rules or freezes changed. It never blocks.
func (s *Service) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Release is one release; NotFound.
func (s *Service) Release(ctx context.Context, id int64) (Release, error) {
	return s.Store.Release(ctx, id)
}

// Releases is a page of releases, the newest first.
func (s *Service) Releases(ctx context.Context, page Page) ([]Release, error) {
	return s.Store.Releases(ctx, page)
}

// Targets is a page of a release's targets; NotFound.
func (s *Service) Targets(ctx context.Context, id int64, page TargetPage) ([]Target, error) {
	if _, err := s.Store.Release(ctx, id); err != nil {
		return nil, err
	}
	return s.Store.Targets(ctx, id, page)
}

// Entries is what happened in a release, in order.
func (s *Service) Entries(ctx context.Context, id int64) ([]Entry, error) {
	return s.Store.Entries(ctx, id)
}

// Approvals is those of a release, by time.
func (s *Service) Approvals(ctx context.Context, id int64) ([]Approval, error) {
	return s.Store.Approvals(ctx, id)
}

// Wait returns when a release has another revision than after, or has ended, or after about a second: what it waits for is a
// hint. NotFound.
func (s *Service) Wait(ctx context.Context, id, after int64) error {
	return s.changes.Wait(ctx, id, func() (bool, error) {
		r, err := s.Store.Release(ctx, id)
		return r.Revision > after || r.State.Final(), err
	})
}

// Pause lets nothing more of a release begin.
func (s *Service) Pause(ctx context.Context, actor fleet.Actor, id int64, why string) (Release, error) {
	return s.act(ctx, actor, id, "paused", why, func(r Release) (Release, error) { return r.Pause(actor.Name, why) })
}

// Resume lets a paused release go on.
func (s *Service) Resume(ctx context.Context, actor fleet.Actor, id int64, maxFailures *int) (Release, error) {
	if maxFailures != nil && *maxFailures < 0 {
		return Release{}, fault.New(fault.Invalid, "field max_failures: it must not be negative")
	}
	return s.act(ctx, actor, id, "resumed", "", func(r Release) (Release, error) { return r.Resume(maxFailures) })
}

// Promote lets the next wave of a release begin.
func (s *Service) Promote(ctx context.Context, actor fleet.Actor, id int64) (Release, error) {
	return s.act(ctx, actor, id, "promoted the wave", "", func(r Release) (Release, error) { return r.Promote() })
}

// Abort ends a release.
func (s *Service) Abort(ctx context.Context, actor fleet.Actor, id int64, why string, kill bool) (Release, error) {
	return s.act(ctx, actor, id, "aborted", why, func(r Release) (Release, error) { return r.Abort(actor.Name, why, kill) })
}

// Approve says yes to a release, for each role that its needs name and actor has. Denied if there is none.
func (s *Service) Approve(ctx context.Context, actor fleet.Actor, id int64, text string) (Release, error) {
	r, err := s.Store.Release(ctx, id)
	if err != nil {
		return r, err
	}
	if r.State.Final() {
		return r, ended(r)
	}
	roles, err := s.mayApprove(ctx, actor, r)
	if err != nil {
		return r, err
	}
	for _, role := range roles {
		a := Approval{Role: role, By: actor.Name, Text: text, Digest: r.Digest, At: s.Now()}
		if err := s.Store.AddApproval(ctx, id, a); err != nil {
			return r, err
		}
	}
	return s.act(ctx, actor, id, "approved", text, func(r Release) (Release, error) {
		approvals, err := s.Store.Approvals(ctx, id)
		return r.Approved(approvals), err
	})
}

// mayApprove is the roles of a release's needs that somebody may approve for.
func (s *Service) mayApprove(ctx context.Context, actor fleet.Actor, r Release) (roles []string, err error) {
	own := false
	for _, need := range r.Needs {
		has, err := s.HasRole(ctx, actor, need.Role)
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
func (s *Service) act(ctx context.Context, actor fleet.Actor, id int64, word, why string, step func(Release) (Release, error)) (Release, error) {
	e := Entry{At: s.Now(), By: actor.Name, Text: word}
	if why != "" {
		e.Text += ": " + why
	}
	r, err := s.change(ctx, id, func(r Release) (Change, error) {
		next, err := step(r)
		return Change{Release: next, Entries: []Entry{e}}, err
	})
	if err == nil {
		s.Log.InfoContext(ctx, "release "+word, "release", id, "state", r.State, "actor", actor.Name)
		s.Wake()
	}
	return r, err
}

// change takes a step that is decided on what is stored, again if that changed meanwhile.
func (s *Service) change(ctx context.Context, id int64, decide func(Release) (Change, error)) (Release, error) {
	for range 10 {
		r, err := s.Store.Release(ctx, id)
		if err != nil {
			return r, err
		}
		c, err := decide(r)
		if err != nil {
			return r, err
		}
		c.Base, c.Release.ID = r.Revision, r.ID
		now, err := s.Store.SaveRelease(ctx, c)
		if err == nil {
			s.changes.Tell(id)
			return now, nil
		}
		if fault.Of(err) != fault.Conflict {
			return r, err
		}
	}
	return Release{}, fault.Later(time.Second, "release %d changes all the time", id)
}
