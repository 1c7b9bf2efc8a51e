package release_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/release"
	"github.com/tutti-project/tutti/internal/release/releasetest"
)

func TestRollback(t *testing.T) {
	t.Parallel()
	world := releasetest.NewWorld(healthy(3))
	s := world.Service(releasetest.NewStore())
	forward := run(t, world, s, create(t, s, release.Order{Preview: 1}).ID)
	world.Release("n02", "later")
	plan, err := s.Planner.Create(t.Context(), ann, release.Order{Of: forward.ID, Waves: []string{"1", "rest"}})
	if err != nil {
		t.Fatal(err)
	}
	if plan.Targets[2].State != release.Refused || !strings.Contains(plan.Targets[2].Reason, "--to") ||
		!strings.Contains(plan.Targets[2].Reason, "from no release") {
		t.Errorf("a node that has another generation since: %+v", plan.Targets[2])
	}
	r := run(t, world, s, plan.Release.ID)
	if r.Counts[release.Changed] != 2 {
		t.Errorf("counts: %v", r.Counts)
	}
	for _, node := range []fleet.Certname{"n00", "n01"} {
		has, _ := world.Has(t.Context(), node)
		if has.Catalog != "old" || has.Generation != 3 || has.Release != r.ID {
			t.Errorf("%s has %+v", node, has)
		}
	}
	plan, err = s.Planner.Create(t.Context(), ann, release.Order{Of: forward.ID})
	if want := fmt.Sprintf("from release %d and not from release %d", r.ID, forward.ID); fault.Of(err) != fault.Conflict ||
		!strings.Contains(plan.Targets[0].Reason, want) {
		t.Errorf("once more: %+v, %v", plan.Targets, err)
	}
	plan, err = s.Planner.Create(t.Context(), ann, release.Order{Nodes: []fleet.Certname{"n02"}, To: 1})
	if err != nil {
		t.Fatal(err)
	}
	run(t, world, s, plan.Release.ID)
	if has, _ := world.Has(t.Context(), "n02"); has.Catalog != "old" || has.Generation != 4 {
		t.Errorf("n02 has %+v", has)
	}
	_, err = s.Planner.Create(t.Context(), ann, release.Order{Nodes: []fleet.Certname{"n02"}, To: 77})
	if fault.Of(err) != fault.Conflict || !strings.Contains(err.Error(), "not kept") {
		t.Errorf("to a generation that is not there: %v", err)
	}
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
	if _, err := s.Planner.Create(t.Context(), ann, o); fault.Of(err) != fault.Denied {
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
