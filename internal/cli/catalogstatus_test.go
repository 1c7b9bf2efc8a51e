package cli

import (
	"testing"

	"github.com/tutti-project/tutti/api"
)

// A node that applied what it may have is not well while its newest catalog does not compile.
func TestNodesThatDoNotCompileAreCounted(t *testing.T) {
	t.Parallel()
	well := api.Node{Status: "unchanged", Delivery: &api.Delivered{State: "current"}}
	broken := well
	broken.CompileError = &api.NodeError{Message: "Syntax error"}
	const counted = "2 nodes, 0 of them in released mode: 2 current, 0 behind, 0 foreign, 0 unknown; 0 nodes failed in the last run"
	for end, nodes := range map[string][]api.Node{"": {well, well}, "; 1 does not compile": {well, broken}, "; 2 do not compile": {broken, broken}} {
		if got := deliveryCounts(nodes); got != counted+end {
			t.Errorf("got %q", got)
		}
	}
	if !isGreen(well) || isGreen(broken) {
		t.Error("which of them is well")
	}
}
