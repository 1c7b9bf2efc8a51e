package release_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/release"
	"github.com/tutti-project/tutti/internal/release/releasetest"
)

func TestWrongOrders(t *testing.T) {
	t.Parallel()
	world := releasetest.NewWorld(healthy(2))
	s := world.Service(releasetest.NewStore())
	minus := -1
	for name, c := range map[string]struct {
		order release.Order
		kind  fault.Kind
		says  string
	}{
		"no preview":     {release.Order{Preview: 9}, fault.NotFound, "preview 9"},
		"strange wave":   {release.Order{Preview: 1, Waves: []string{"some"}}, fault.Invalid, "waves"},
		"half a fleet":   {release.Order{Preview: 1, Waves: []string{"1"}}, fault.Invalid, "rest"},
		"empty group":    {release.Order{Preview: 1, Waves: []string{"@web", "rest"}}, fault.Invalid, "group web"},
		"not previewed":  {release.Order{Preview: 1, Targets: api.JobTargets{Nodes: []string{"other"}}}, fault.Invalid, "preview it first"},
		"budget":         {release.Order{Preview: 1, Options: release.Options{MaxFailures: &minus}}, fault.Invalid, "max_failures"},
		"promotion":      {release.Order{Preview: 1, Options: release.Options{Promotion: "never"}}, fault.Invalid, "promote"},
		"soak":           {release.Order{Preview: 1, Options: release.Options{Soak: time.Hour}}, fault.Invalid, "soak"},
		"nothing at all": {release.Order{}, fault.Invalid, "release"},
		"no release":     {release.Order{Of: 5}, fault.NotFound, "release 5"},
	} {
		_, err := s.Planner.Create(t.Context(), ann, c.order)
		if err == nil || fault.Of(err) != c.kind || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s with %q", name, err, c.kind, c.says)
		}
	}
	world.State = "compiling"
	if _, err := s.Planner.Create(t.Context(), ann, release.Order{Preview: 1}); fault.Of(err) != fault.Conflict {
		t.Errorf("a preview that is not ready: %v", err)
	}
}

// A catalog that an open release still has to hand to a node is in no second release; which one has it is said, and what to do.
func TestOneCatalogIsNotHandedOutTwice(t *testing.T) {
	t.Parallel()
	world := releasetest.NewWorld(healthy(3))
	s := world.Service(releasetest.NewStore())
	first := release.Order{Preview: 1, Waves: []string{"1", "rest"}}
	first.Promotion, first.ApproveBy = release.Manual, "all"
	id := create(t, s, first).ID
	_, err := s.Planner.Create(t.Context(), ann, release.Order{Preview: 1})
	if fault.Of(err) != fault.Conflict || !strings.Contains(err.Error(), "release 1, which is waiting for approval, hands it this catalog") ||
		!strings.Contains(err.Error(), "tutti release abort 1") {
		t.Errorf("a second release while the first one waits: %v", err)
	}
	if _, err := s.Control.Approve(t.Context(), fleet.Actor{Kind: fleet.UserActor, Name: "bob"}, id, ""); err != nil {
		t.Fatal(err)
	}
	isState(t, run(t, world, s, id), release.Paused, release.ForPromoter)
	plan, err := s.Planner.Plan(t.Context(), ann, release.Order{Preview: 1})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(release.Counts{release.Waiting: 1, release.Refused: 2}, plan.Release.Counts); diff != "" {
		t.Errorf("a second release behind the first one's first wave (-want +got):\n%s", diff)
	}
	if _, err := s.Control.Abort(t.Context(), ann, id, "", false); err != nil {
		t.Fatal(err)
	}
	isState(t, run(t, world, s, id), release.Aborted, release.NoHold)
	if r := create(t, s, release.Order{Preview: 1}); r.Counts[release.Waiting] != 3 {
		t.Errorf("after the first was aborted: %v", r.Counts)
	}
}
