package release_test

import (
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/release"
	"github.com/tutti-project/tutti/internal/release/releasetest"
)

// stopped is a release to eight nodes whose first run fails and whose budget lets nobody else run. Before it begins, the world is prepared.
func stopped(t *testing.T, prepare func(world *releasetest.World, s *release.Service)) (*releasetest.World, *release.Service, release.Release) {
	t.Helper()
	fates := healthy(8)
	fates["n00"] = releasetest.Fate{Base: "old", Fresh: "new", Run: release.RunFailed}
	world := releasetest.NewWorld(fates)
	world.Slow = 3
	s := world.Service(releasetest.NewStore())
	none := 0
	o := release.Order{Preview: 1}
	o.MaxFailures, o.Concurrency = &none, 1
	r := create(t, s, o)
	for len(world.Jobs()) == 0 {
		if err := s.Worker.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if prepare != nil {
		prepare(world, s)
	}
	r = run(t, world, s, r.ID)
	isState(t, r, release.Paused, release.OverBudget)
	return world, s, r
}

func has(t *testing.T, world *releasetest.World, node fleet.Certname) release.Holding {
	t.Helper()
	h, err := world.Has(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// A schedule must not apply what a budget has stopped.
func TestWhoIsNotRunHasWhatItHad(t *testing.T) {
	t.Parallel()
	world, s, r := stopped(t, nil)
	if got := has(t, world, "n00"); got.Catalog != "new" {
		t.Errorf("the node that failed has %+v", got)
	}
	for i := range 7 {
		if got := has(t, world, nodeOf(i+1)); got.Catalog != "old" || got.Generation != 3 {
			t.Errorf("%s, which was not run, has %+v", nodeOf(i+1), got)
		}
	}
	plan, err := s.Planner.Create(t.Context(), ann, release.Order{Of: r.ID, Options: release.Options{}})
	if err != nil || len(plan.Targets) != 1 || plan.Targets[0].Node != "n00" || plan.Already != 7 {
		t.Errorf("to be taken back are %v, and %d have it already; %v", plan.Targets, plan.Already, err)
	}
}

func TestWhoIsNotRunGetsItWhenItsTurnComes(t *testing.T) {
	t.Parallel()
	world, s, r := stopped(t, nil)
	more := 1
	if _, err := s.Control.Resume(t.Context(), ann, r.ID, &more); err != nil {
		t.Fatal(err)
	}
	isState(t, run(t, world, s, r.ID), release.DoneWithFailures, release.NoHold)
	for i := range 8 {
		if got := has(t, world, nodeOf(i)); got.Catalog != "new" || world.Ran(nodeOf(i)) != 1 {
			t.Errorf("%s has %+v, and was run %d times", nodeOf(i), got, world.Ran(nodeOf(i)))
		}
	}
}

// What somebody else gave a node is not ours to take back; a node that refuses, or of which nothing older is kept, stays as it is. All of
// them say so.
func TestWhatCannotBeTakenBack(t *testing.T) {
	t.Parallel()
	world, s, r := stopped(t, func(world *releasetest.World, _ *release.Service) {
		world.Release("n05", "other")
		world.Forget("n06")
		world.Pin("n07")
	})
	targets, err := s.Records.Targets(t.Context(), r.ID, release.TargetPage{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range map[int]struct{ has, says string }{
		4: {"old", "; it has again what it had"}, 5: {"other", "before its turn"},
		6: {"new", "; it keeps generation 2, as none from before is kept"}, 7: {"new", "; it keeps generation 2: pinned"},
	} {
		if got := has(t, world, nodeOf(i)); string(got.Catalog) != want.has || !strings.HasSuffix(targets[i].Reason, want.says) {
			t.Errorf("%s has %s: %s; want %s: %s", nodeOf(i), got.Catalog, targets[i].Reason, want.has, want.says)
		}
	}
}
