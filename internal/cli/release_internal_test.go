package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/api"
)

// An answer names at most 100 of the nodes that a release leaves out; how many there are is said nevertheless.
func TestAllNodesThatAreLeftOutAreCounted(t *testing.T) {
	t.Parallel()
	plan := api.ReleaseReport{
		Release: api.Release{Counts: map[string]int{"waiting": 5, "refused": 250, "superseded": 50}, Waves: []api.ReleaseWave{{Number: 1, Size: "rest", Nodes: 5}}},
		Left:    make([]api.ReleaseTarget, 100),
	}
	var said strings.Builder
	if err := printPlan(plan, func(format string, args ...any) error { fmt.Fprintf(&said, format+"\n", args...); return nil }); err != nil {
		t.Fatal(err)
	}
	if named := strings.Count(said.String(), "left out: "); named != namedAtMost || !strings.Contains(said.String(), "and 290 more that are left out") {
		t.Errorf("%d are named:\n%s", named, said.String())
	}
}
