package release_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/release"
	"github.com/tutti-project/tutti/internal/release/releasetest"
)

// want is the state that a target ends in whose release is not stopped by anybody.
func want(f releasetest.Fate, noop bool) release.Standing {
	outcome := f.Run
	if noop && (f.Noop == release.RunFailed || f.Noop == release.RunOffline) {
		outcome = f.Noop
	}
	switch {
	case f.Failure != "" || f.Refuses != "":
		return release.Refused
	case f.Drifts != "":
		return release.Superseded
	case outcome == release.RunOffline:
		return release.Offline
	case outcome == release.RunFailed:
		return release.Failed
	case outcome == release.RunTimedOut:
		return release.TimedOut
	case f.Reports == "-":
		return release.Failed
	case f.Reports != "":
		return release.Foreign
	}
	return release.Changed
}

func fate(rt *rapid.T, name string) releasetest.Fate {
	return releasetest.Fate{
		Base: "old", Fresh: "new",
		Failure: rapid.SampledFrom([]string{"", "", "", "", "Syntax error"}).Draw(rt, name+" failure"),
		Refuses: rapid.SampledFrom([]string{"", "", "", "", "", "pinned"}).Draw(rt, name+" refuses"),
		Drifts:  rapid.SampledFrom([]string{"", "", "", "", "facts.role changed"}).Draw(rt, name+" drifts"),
		Run: rapid.SampledFrom([]release.Outcome{
			release.Succeeded, release.Succeeded, release.Succeeded, release.RunFailed, release.RunTimedOut, release.RunOffline,
		}).Draw(rt, name+" run"),
		Noop:    rapid.SampledFrom([]release.Outcome{release.Succeeded, release.Succeeded, release.RunFailed, release.RunOffline}).Draw(rt, name+" rehearsal"),
		Reports: rapid.SampledFrom([]string{"", "", "", "", "another", "-"}).Draw(rt, name+" reports"),
	}
}

// TestEndsWhateverStopsTheServer stops the server before and after any of its calls, many times, and has people act in
// between. Each target ends in the state of its fate or was left out by somebody; no node is given a generation twice, no wave is run
// twice, and who was not run has what it had.
func TestEndsWhateverStopsTheServer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		fates := map[fleet.Certname]releasetest.Fate{"n00": {Base: "old", Fresh: "new"}}
		for i := range rapid.IntRange(0, 12).Draw(rt, "nodes") {
			fates[nodeOf(i+1)] = fate(rt, string(nodeOf(i+1)))
		}
		world, store := releasetest.NewWorld(fates), releasetest.NewStore()
		world.Slow = rapid.IntRange(0, 2).Draw(rt, "slow")
		s := world.Service(store)
		order := release.Order{Preview: 1, Waves: rapid.SampledFrom([][]string{nil, {"1", "rest"}, {"10%", "50%", "rest"}}).Draw(rt, "waves")}
		order.NoopFirst, order.Concurrency = rapid.Bool().Draw(rt, "noop first"), rapid.IntRange(0, 2).Draw(rt, "at once")
		order.Promotion = rapid.SampledFrom([]release.Promotion{release.Automatic, release.Manual, release.Soaked}).Draw(rt, "promote")
		if order.Promotion == release.Soaked {
			order.Soak = time.Minute
		}
		if rapid.Bool().Draw(rt, "budget") {
			budget := rapid.IntRange(0, 3).Draw(rt, "may fail")
			order.MaxFailures = &budget
		}
		plan, err := s.Planner.Create(t.Context(), ann, order)
		if err != nil {
			rt.Fatal(err)
		}
		moods(rt, world)
		id, aborted := plan.Release.ID, false
		for round := 0; ; round++ {
			if round > 3000 {
				r, _ := store.Release(t.Context(), id)
				rt.Fatalf("it never ends: %+v", r)
			}
			if rapid.IntRange(0, 2).Draw(rt, "stop") == 0 {
				world.StopAt(rapid.IntRange(1, 12).Draw(rt, "at call"), rapid.Bool().Draw(rt, "after"))
			}
			if err := s.Worker.Look(t.Context()); err != nil && !errors.Is(err, releasetest.ErrStopped) {
				rt.Fatal(err)
			}
			if world.Start() {
				s = world.Service(store)
			}
			r, err := store.Release(t.Context(), id)
			if err != nil {
				rt.Fatal(err)
			}
			consistent(rt, store, r)
			if r.State.Final() {
				break
			}
			world.Pass(40 * time.Second)
			switch act := rapid.IntRange(0, 30).Draw(rt, "act"); {
			case r.State == release.Paused && r.Hold != release.Frozen || r.State == release.Paused && act < 3:
				aborted = goOn(rt, s, r) || aborted
			case r.State == release.WaitingApproval:
				_, err = s.Control.Approve(t.Context(), fleet.Actor{Name: "bob"}, id, "")
			case act == 0:
				_, _ = s.Control.Pause(t.Context(), ann, id, "")
			case act == 1 && r.MaxFailures != nil:
				more := *r.MaxFailures + 1
				_, _ = s.Control.Resume(t.Context(), ann, id, &more)
			}
			if err != nil {
				rt.Fatal(err)
			}
		}
		judgeEnd(rt, world, store, id, aborted, order.NoopFirst)
	})
}

// moods has the gate deny, freeze and ask for approvals, and jobs not be ordered, now and then.
func moods(rt *rapid.T, world *releasetest.World) {
	world.Verdicts = func(q release.Question) (v release.Verdict) {
		switch rapid.IntRange(0, 9).Draw(rt, "mood") {
		case 0:
			v.Findings = []release.Finding{{Rule: "no", Effect: release.Deny, Message: "not now"}}
		case 1:
			v.Findings = []release.Finding{{Rule: "ask", Effect: release.Approve, Role: "of bob"}}
		case 2:
			v.Frozen = &release.Freeze{Until: q.At.Add(time.Duration(rapid.IntRange(1, 300).Draw(rt, "frozen")) * time.Second), Why: "night"}
		}
		return v
	}
	world.Troubles = func(release.RunOrder) error {
		if rapid.IntRange(0, 9).Draw(rt, "trouble") == 0 {
			return fault.New(fault.Conflict, "it cannot be ordered")
		}
		return nil
	}
}

// goOn does what a paused release waits for, or aborts it.
func goOn(rt *rapid.T, s *release.Service, r release.Release) (aborted bool) {
	ctx := context.Background()
	var err error
	switch {
	case rapid.IntRange(0, 12).Draw(rt, "abort") == 0:
		_, err = s.Control.Abort(ctx, ann, r.ID, "", rapid.Bool().Draw(rt, "kill"))
		aborted = true
	case r.Hold == release.Frozen: // it goes on by itself
	case r.Hold == release.ForPromoter:
		_, err = s.Control.Promote(ctx, ann, r.ID)
	case r.Hold == release.OverBudget:
		more := r.Counts.Failures() + rapid.IntRange(0, 2).Draw(rt, "more")
		_, err = s.Control.Resume(ctx, ann, r.ID, &more)
	default:
		if _, err = s.Control.Resume(ctx, ann, r.ID, nil); fault.Is(err, fault.Conflict) {
			more := r.Counts.Failures()
			_, err = s.Control.Resume(ctx, ann, r.ID, &more)
		}
	}
	if err != nil {
		rt.Fatalf("%s (%s): %v", r.State, r.Hold, err)
	}
	return aborted
}

// consistent is what holds in any state.
func consistent(rt *rapid.T, store release.Store, r release.Release) {
	targets, err := store.Targets(context.Background(), r.ID, release.TargetPage{Limit: 1000})
	if err != nil {
		rt.Fatal(err)
	}
	if diff := cmp.Diff(release.Count(targets), r.Counts); diff != "" {
		rt.Fatalf("counts (-rows +release):\n%s", diff)
	}
	for _, t := range targets {
		if t.State.Final() && t.State != release.Unchanged && t.State != release.Changed && t.Reason == "" {
			rt.Fatalf("%s is %s without a reason", t.Node, t.State)
		}
		if r.State.Final() && !t.State.Final() {
			rt.Fatalf("%s is %s in a release that is %s", t.Node, t.State, r.State)
		}
		if t.Wave > r.Wave && t.State != release.Waiting && t.State != release.Skipped {
			rt.Fatalf("%s of wave %d is %s while the release is at wave %d", t.Node, t.Wave, t.State, r.Wave)
		}
	}
	if (r.Hold != release.NoHold) != (r.State == release.Paused) || !r.Until.IsZero() && r.Hold != release.Frozen {
		rt.Fatalf("a release that is %s holds for %q until %s", r.State, r.Hold, r.Until)
	}
	for _, w := range r.Waves {
		if w.Number > r.Wave && w.Phase != release.NotBegun || w.Number < r.Wave && w.Phase != release.Ended {
			rt.Fatalf("wave %d is %s while the release is at wave %d", w.Number, w.Phase, r.Wave)
		}
	}
}

func judgeEnd(rt *rapid.T, world *releasetest.World, store release.Store, id int64, aborted, noop bool) {
	ctx := context.Background()
	r, _ := store.Release(ctx, id)
	targets, _ := store.Targets(ctx, id, release.TargetPage{Limit: 1000})
	for _, t := range targets {
		if got, wanted := t.State, want(world.Fates[t.Node], noop); got != wanted && (!aborted || got != release.Skipped) {
			rt.Errorf("%s is %s (%s), want %s", t.Node, got, t.Reason, wanted)
		}
		if n := world.Ran(t.Node); n > 1 {
			rt.Errorf("%s was run %d times", t.Node, n)
		}
		kept, _ := world.Generations(ctx, t.Node)
		given := t.Generation != 0
		switch has := kept[0]; {
		case given && (has.Digest != "new" || has.Number != t.Generation || has.Release != id):
			rt.Errorf("%s is %s with generation %d, but has %v", t.Node, t.State, t.Generation, kept)
		case !given && has.Digest != "old":
			rt.Errorf("%s is %s and was given nothing, but has %v", t.Node, t.State, kept)
		case world.Ran(t.Node) == 0 && t.State != release.Offline && given:
			rt.Errorf("%s is %s without a run, and keeps %v", t.Node, t.State, kept)
		}
		for i := range len(kept) - 1 {
			if kept[i].Digest == kept[i+1].Digest {
				rt.Errorf("%s was given the same twice: %v", t.Node, kept)
			}
		}
	}
	keys := map[string]bool{}
	for _, j := range world.Jobs() {
		if keys[j.Key] {
			rt.Errorf("%s was ordered twice", j.Key)
		}
		keys[j.Key] = true
	}
	wanted := release.Done
	switch {
	case aborted:
		wanted = release.Aborted
	case r.Counts.Succeeded() < len(targets):
		wanted = release.DoneWithFailures
	}
	if r.State != wanted {
		rt.Errorf("the release is %s, want %s", r.State, wanted)
	}
}
