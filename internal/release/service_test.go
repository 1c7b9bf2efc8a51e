package release_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/release"
	"github.com/tutti-project/tutti/internal/release/releasetest"
)

var ann = fleet.Actor{Kind: fleet.UserActor, Name: "ann"}

func nodeOf(i int) fleet.Certname { return fleet.Certname(fmt.Sprintf("n%02d", i)) }

// run brings a release on until nothing more happens by itself.
func run(t *testing.T, world *releasetest.World, s *release.Service, id int64) release.Release {
	t.Helper()
	for range 100 {
		if err := s.Worker.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, err := s.Records.Release(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if r.State != release.Running && r.State != release.Stopping {
			return r
		}
		world.Pass(time.Second)
	}
	t.Fatal("it goes on and on")
	return release.Release{}
}

func healthy(n int) map[fleet.Certname]releasetest.Fate {
	fates := map[fleet.Certname]releasetest.Fate{}
	for i := range n {
		fates[nodeOf(i)] = releasetest.Fate{Base: "old", Fresh: "new"}
	}
	return fates
}

func create(t *testing.T, s *release.Service, o release.Order) release.Release {
	t.Helper()
	plan, err := s.Planner.Create(t.Context(), ann, o)
	if err != nil {
		t.Fatal(err)
	}
	return plan.Release
}

func isState(t *testing.T, r release.Release, state release.State, hold release.Hold) {
	t.Helper()
	if r.State != state || r.Hold != hold {
		t.Fatalf("the release is %s %s (%s), want %s %s", r.State, r.Hold, r.Reason, state, hold)
	}
}

func TestFailuresStopWithinTheBudget(t *testing.T) {
	t.Parallel()
	fates := healthy(10)
	for i := range 10 {
		fates[nodeOf(i)] = releasetest.Fate{Base: "old", Fresh: "new", Run: release.RunFailed}
	}
	world := releasetest.NewWorld(fates)
	s := world.Service(releasetest.NewStore())
	budget := 2
	o := release.Order{Preview: 1, Waves: []string{"2", "rest"}}
	o.MaxFailures, o.Concurrency = &budget, 1
	r := run(t, world, s, create(t, s, o).ID)
	isState(t, r, release.Paused, release.OverBudget)
	want := release.Counts{release.Failed: 3, release.Skipped: 7}
	if diff := cmp.Diff(want, r.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if _, err := s.Control.Resume(t.Context(), ann, r.ID, nil); fault.Of(err) != fault.Conflict {
		t.Errorf("resumed without more budget: %v", err)
	}
	more := 100
	if _, err := s.Control.Resume(t.Context(), ann, r.ID, &more); err != nil {
		t.Fatal(err)
	}
	r = run(t, world, s, r.ID)
	isState(t, r, release.DoneWithFailures, release.NoHold)
	if r.Counts[release.Failed] != 10 {
		t.Errorf("counts: %v", r.Counts)
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
		if err := s.Worker.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	r, err := s.Control.Resume(t.Context(), ann, id, &more)
	if err != nil || r.State != release.Running || *r.MaxFailures != more {
		t.Fatalf("the release is %s with a budget of %d, %v", r.State, *r.MaxFailures, err)
	}
	r = run(t, world, s, id)
	isState(t, r, release.DoneWithFailures, release.NoHold)
	if r.Counts[release.Failed] != 4 {
		t.Errorf("counts: %v", r.Counts)
	}
}

func TestSuperseded(t *testing.T) {
	t.Parallel()
	fates := healthy(4)
	fates["n01"] = releasetest.Fate{Base: "old", Fresh: "new", Drifts: "facts.role changed"}
	world := releasetest.NewWorld(fates)
	world.Release("n02", "other")
	s := world.Service(releasetest.NewStore())
	plan, err := s.Planner.Create(t.Context(), ann, release.Order{Preview: 1, Waves: []string{"1", "rest"}, Refresh: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]fleet.Certname{"n01", "n02"}, world.Again1()); diff != "" || plan.Refreshed != 2 {
		t.Errorf("a new preview %d of (-want +got):\n%s", plan.Refreshed, diff)
	}
	reasons := map[fleet.Certname]string{"n01": "facts.role changed", "n02": "it has catalog other (generation 2)"}
	for _, target := range plan.Targets {
		if want := reasons[target.Node]; (target.State == release.Superseded) != (want != "") || !strings.Contains(target.Reason, want) {
			t.Errorf("%s is %s: %s; want %q", target.Node, target.State, target.Reason, want)
		}
	}
	// Just before its wave one more is superseded.
	last := fleet.Certname("")
	for _, target := range plan.Targets {
		if target.Wave == 2 {
			last = target.Node
		}
	}
	world.Release(last, "other")
	r := run(t, world, s, plan.Release.ID)
	isState(t, r, release.DoneWithFailures, release.NoHold)
	if r.Counts[release.Superseded] != 3 || r.Counts[release.Changed] != 1 {
		t.Errorf("counts: %v", r.Counts)
	}
}
