package release_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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
				s := world.Service(releasetest.NewStore())
				s.Now, s.Poll = time.Now, time.Second
				id := create(t, s, release.Order{Preview: 1}).ID
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				go func() { _ = s.Run(ctx) }()
				stands := func(state release.State, hold release.Hold) {
					t.Helper()
					synctest.Wait()
					r, err := s.Release(t.Context(), id)
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
					s.Wake()
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
	if _, err := s.Resume(t.Context(), ann, r.ID, nil); err != nil {
		t.Fatal(err)
	}
	isState(t, run(t, world, s, r.ID), release.Done, release.NoHold)
}

// A roll back is judged, and asked for, in the environments that nodes go back to.
func TestRollbackOfNodesHasAnEnvironment(t *testing.T) {
	t.Parallel()
	world := releasetest.NewWorld(healthy(2))
	s := world.Service(releasetest.NewStore())
	run(t, world, s, create(t, s, release.Order{Preview: 1}).ID)
	var judged, asked []fleet.Environment
	world.Verdicts = func(q release.Question) (v release.Verdict) {
		judged = q.Environments
		return v
	}
	refuse := fault.New(fault.Denied, "not in production")
	o := release.Order{Nodes: []fleet.Certname{"n00", "n01"}, Allowed: func(_ context.Context, env fleet.Environment, _ []fleet.Certname) error {
		if env != "" {
			return refuse
		}
		return nil
	}}
	if _, err := s.Create(t.Context(), ann, o); fault.Of(err) != fault.Denied {
		t.Errorf("rolled back into an environment that is not allowed: %v", err)
	}
	o.Allowed = func(_ context.Context, env fleet.Environment, _ []fleet.Certname) error {
		asked = append(asked, env)
		return nil
	}
	r := create(t, s, o)
	if diff := cmp.Diff([]fleet.Environment{"production"}, judged); diff != "" || r.Environment != "production" {
		t.Errorf("the roll back is of %q, judged in (-want +got):\n%s", r.Environment, diff)
	}
	if diff := cmp.Diff([]fleet.Environment{"", "production"}, asked); diff != "" {
		t.Errorf("allowed were (-want +got):\n%s", diff)
	}
}

// The server is stopped when it has ordered a wave's job and could not say so yet; the release is paused, and resumed while nodes of
// the wave are skipped. It finds the job again: nobody is run twice.
func TestOrderedWithoutAWord(t *testing.T) {
	t.Parallel()
	seen := 0
	for call := 1; call < 40; call++ {
		world, store := releasetest.NewWorld(healthy(3)), releasetest.NewStore()
		world.Slow = 3
		s := world.Service(store)
		o := release.Order{Preview: 1}
		o.NoopFirst, o.Concurrency = true, 1
		id := create(t, s, o).ID
		for len(world.Jobs()) == 0 {
			if err := s.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := world.Stop(t.Context(), 1, false); err != nil { // the rest of the rehearsal is skipped
			t.Fatal(err)
		}
		world.StopAt(call, true)
		for range 20 {
			_ = s.Look(t.Context()) // until it is stopped
		}
		if !world.Start() {
			break
		}
		s = world.Service(store)
		r, _ := s.Release(t.Context(), id)
		if r.State.Final() {
			break
		}
		if len(world.Jobs()) == 2 && r.Waves[0].Job == 0 {
			seen++
		}
		if _, err := s.Pause(t.Context(), ann, id, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Resume(t.Context(), ann, id, nil); err != nil {
			t.Fatal(err)
		}
		isState(t, run(t, world, s, id), release.Done, release.NoHold)
		for i := range 3 {
			if n := world.Ran(nodeOf(i)); n != 1 {
				t.Errorf("stopped at call %d: %s was run %d times", call, nodeOf(i), n)
			}
		}
	}
	if seen == 0 {
		t.Error("the server was never stopped between the job and its number")
	}
}

// While it is paused, a job that could not be written down yet is found, and what runs is taken in.
func TestPausedWithoutAWord(t *testing.T) {
	t.Parallel()
	for call := 1; call < 40; call++ {
		world, store := releasetest.NewWorld(healthy(2)), releasetest.NewStore()
		s := world.Service(store)
		id := create(t, s, release.Order{Preview: 1}).ID
		world.StopAt(call, true)
		for range 5 {
			_ = s.Look(t.Context())
		}
		if !world.Start() {
			t.Error("the server was never stopped between the job and its number")
			break
		}
		s = world.Service(store)
		r, _ := s.Release(t.Context(), id)
		if len(world.Jobs()) == 0 || r.Waves[0].Job != 0 {
			continue
		}
		if _, err := s.Pause(t.Context(), ann, id, ""); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if err := s.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if r, _ = s.Release(t.Context(), id); r.State != release.Paused || r.Counts[release.Changed] != 2 {
			t.Errorf("the paused release is %s, %v", r.State, r.Counts)
		}
		return
	}
}

// Who raises the budget of a release that runs has it from then on.
func TestBudgetRaisedWhileItRuns(t *testing.T) {
	t.Parallel()
	fates := healthy(4)
	for node, f := range fates {
		f.Run = release.RunFailed
		fates[node] = f
	}
	world := releasetest.NewWorld(fates)
	world.Slow = 3
	s := world.Service(releasetest.NewStore())
	o := release.Order{Preview: 1}
	none, more := 0, 10
	o.MaxFailures, o.Concurrency = &none, 1
	id := create(t, s, o).ID
	for len(world.Jobs()) == 0 {
		if err := s.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	r, err := s.Resume(t.Context(), ann, id, &more)
	if err != nil || r.State != release.Running || *r.MaxFailures != more {
		t.Fatalf("the release is %s with a budget of %d, %v", r.State, *r.MaxFailures, err)
	}
	r = run(t, world, s, id)
	isState(t, r, release.DoneWithFailures, release.NoHold)
	if r.Counts[release.Failed] != 4 {
		t.Errorf("counts: %v", r.Counts)
	}
}
