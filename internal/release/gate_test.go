package release_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/release"
	"github.com/tutti-project/tutti/internal/release/releasetest"
)

// A frozen release goes on when the freeze ends, and at once when somebody removes the freeze and says so.
func TestFreezeEnds(t *testing.T) {
	t.Parallel()
	for name, removed := range map[string]bool{"by itself": false, "by somebody": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var gone atomic.Bool
				until := time.Now().Add(time.Hour)
				world := releasetest.NewWorld(healthy(2))
				world.Slow = 1000
				world.Verdicts = func(q release.Question) (v release.Verdict) {
					if q.At.Before(until) && !gone.Load() {
						v.Frozen = &release.Freeze{Until: until, Why: "night"}
					}
					return v
				}
				config := world.Config(releasetest.NewStore())
				config.Now, config.Poll = time.Now, time.Second
				s := release.NewService(config)
				id := create(t, s, release.Order{Preview: 1}).ID
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				go func() { _ = s.Worker.Run(ctx) }()
				stands := func(state release.State, hold release.Hold) {
					t.Helper()
					synctest.Wait()
					r, err := s.Records.Release(t.Context(), id)
					if err != nil {
						t.Fatal(err)
					}
					isState(t, r, state, hold)
				}
				stands(release.Paused, release.Frozen)
				<-time.After(10*time.Second + 500*time.Millisecond)
				stands(release.Paused, release.Frozen)
				if removed {
					gone.Store(true)
					stands(release.Paused, release.Frozen)
					s.Worker.Wake()
				} else {
					<-time.After(time.Until(until) - time.Millisecond)
					stands(release.Paused, release.Frozen)
					<-time.After(time.Second)
				}
				stands(release.Running, release.NoHold)
			})
		})
	}
}

// A freeze that is moved goes on as one: the release stays frozen, and says until when.
func TestFreezeMoves(t *testing.T) {
	t.Parallel()
	world := releasetest.NewWorld(healthy(2))
	until := world.Now().Add(time.Hour)
	world.Verdicts = func(release.Question) release.Verdict {
		return release.Verdict{Frozen: &release.Freeze{Until: until, Why: "night"}}
	}
	s := world.Service(releasetest.NewStore())
	r := run(t, world, s, create(t, s, release.Order{Preview: 1}).ID)
	isState(t, r, release.Paused, release.Frozen)
	until = until.Add(time.Hour)
	world.Pass(time.Minute)
	r = run(t, world, s, r.ID)
	isState(t, r, release.Paused, release.Frozen)
	if !r.Until.Equal(until) || !strings.Contains(r.Reason, until.UTC().Format(time.RFC3339)) {
		t.Errorf("it is frozen until %s (%s), want %s", r.Until, r.Reason, until)
	}
}

// A release that waits for an approval goes on when no rule asks for it any more, but not without the one that it asked for itself.
func TestApprovalThatNobodyAsksFor(t *testing.T) {
	t.Parallel()
	for role, state := range map[string]release.State{"": release.Done, "lead": release.WaitingApproval} {
		world := releasetest.NewWorld(healthy(2))
		asked := true
		world.Verdicts = func(release.Question) (v release.Verdict) {
			if asked {
				v.Findings = []release.Finding{{Rule: "ask", Effect: release.Approve, Role: "operator"}}
			}
			return v
		}
		store := releasetest.NewStore()
		s := world.Service(store)
		o := release.Order{Preview: 1}
		o.ApproveBy = role
		r := run(t, world, s, create(t, s, o).ID)
		isState(t, r, release.WaitingApproval, release.NoHold)
		asked = false
		isState(t, run(t, world, world.Service(store), r.ID), state, release.NoHold)
	}
}

// What cannot be judged is in trouble, and goes on when somebody has mended that.
func TestUnjudged(t *testing.T) {
	t.Parallel()
	world := releasetest.NewWorld(healthy(2))
	s := world.Service(releasetest.NewStore())
	r := create(t, s, release.Order{Preview: 1})
	world.Unjudged = fault.New(fault.NotFound, "there is no preview 1")
	r = run(t, world, s, r.ID)
	isState(t, r, release.Paused, release.Trouble)
	if !strings.Contains(r.Reason, "there is no preview 1") {
		t.Errorf("the reason is %q", r.Reason)
	}
	world.Unjudged = nil
	if _, err := s.Control.Resume(t.Context(), ann, r.ID, nil); err != nil {
		t.Fatal(err)
	}
	isState(t, run(t, world, s, r.ID), release.Done, release.NoHold)
}

func TestApproval(t *testing.T) {
	t.Parallel()
	world := releasetest.NewWorld(healthy(3))
	s := world.Service(releasetest.NewStore())
	o := release.Order{Preview: 1}
	o.ApproveBy = "of bob"
	r := run(t, world, s, create(t, s, o).ID)
	isState(t, r, release.WaitingApproval, release.NoHold)
	if _, err := s.Control.Approve(t.Context(), ann, r.ID, ""); fault.Of(err) != fault.Denied {
		t.Errorf("approved without the role: %v", err)
	}
	if _, err := s.Control.Approve(t.Context(), fleet.Actor{Name: "bob"}, r.ID, "fine"); err != nil {
		t.Fatal(err)
	}
	isState(t, run(t, world, s, r.ID), release.Done, release.NoHold)

	o.ApproveBy = "all" // which ann has, too
	world.Release("n00", "older")
	fates := world.Fates
	fates["n00"] = releasetest.Fate{Base: "older", Fresh: "newer"}
	o.Targets = api.JobTargets{Nodes: []string{"n00"}}
	r = create(t, s, o)
	if _, err := s.Control.Approve(t.Context(), ann, r.ID, ""); fault.Of(err) != fault.Denied || !strings.Contains(err.Error(), "of their own") {
		t.Errorf("the author approves: %v", err)
	}
}

func TestFreeze(t *testing.T) {
	t.Parallel()
	world := releasetest.NewWorld(healthy(4))
	until := world.Now().Add(time.Hour)
	world.Verdicts = func(q release.Question) (v release.Verdict) {
		if q.Wave == 2 && q.At.Before(until) {
			v.Frozen = &release.Freeze{Until: until, Why: "night"}
		}
		return v
	}
	s := world.Service(releasetest.NewStore())
	r := run(t, world, s, create(t, s, release.Order{Preview: 1, Waves: []string{"1", "rest"}}).ID)
	isState(t, r, release.Paused, release.Frozen)
	if r.Counts[release.Changed] != 1 {
		t.Errorf("counts: %v", r.Counts)
	}
	world.Pass(2 * time.Hour)
	isState(t, run(t, world, s, r.ID), release.Done, release.NoHold)
}

func TestDenied(t *testing.T) {
	t.Parallel()
	world := releasetest.NewWorld(healthy(2))
	deny := true
	world.Verdicts = func(q release.Question) (v release.Verdict) {
		if deny && len(q.Nodes) == 2 && q.Digest != "" {
			v.Findings = []release.Finding{{Rule: "no-users", Effect: release.Deny, Message: "removes a User"}}
		}
		return v
	}
	s := world.Service(releasetest.NewStore())
	_, err := s.Planner.Create(t.Context(), ann, release.Order{Preview: 1})
	if fault.Of(err) != fault.Conflict || !strings.Contains(err.Error(), "no-users") {
		t.Errorf("a rule denies: %v", err)
	}
	deny = false
	r := create(t, s, release.Order{Preview: 1})
	deny = true
	isState(t, run(t, world, s, r.ID), release.Paused, release.ByPolicy)
}
