package release_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
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
