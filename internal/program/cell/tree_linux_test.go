//go:build amd64 || arm64

package cell

import (
	"os/exec"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Processes are read one after the other, 10 before 9, while they die: what a killed group left behind is found, whatever of its parents was seen.
func TestWhatIsBelowAProcessThatDies(t *testing.T) {
	t.Parallel()
	const guard, program, group = 1, 2, 9
	rest := []member{{pid: guard}, {pid: program, parent: guard}, {pid: 3, parent: program}}
	for _, c := range []struct {
		name string
		seen []member
		want []int
	}{
		{"all live", []member{{10, group, false}, {11, 10, false}, {group, program, false}}, []int{9, 10, 11}},
		{"the group was seen dead behind its child", []member{{10, group, false}, {group, program, true}}, []int{10}},
		{"it was seen no more", []member{{10, group, false}}, []int{10}},
		{"one between was seen dead", []member{{10, group, true}, {11, 10, false}, {group, program, true}}, []int{11}},
		{"the child came to the guard", []member{{10, guard, false}, {group, program, true}}, []int{10}},
		{"the child of a child came to the guard", []member{{10, guard, true}, {11, 10, false}, {12, guard, false}}, []int{11, 12}},
		{"nothing is left", []member{{group, program, true}}, nil},
	} {
		seen := slices.Concat(c.seen, rest)
		got := append(descendantsIn(seen, guard, program), withDescendants(seen, group)...)
		slices.Sort(got)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// One look that finds nothing is no proof: a process whose parents died meanwhile may have been missed.
func TestKillingLooksTwice(t *testing.T) {
	t.Parallel()
	child := exec.CommandContext(t.Context(), "sleep", "600")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	looks := 0
	killAll(func() []int {
		if looks++; looks == 2 {
			return []int{child.Process.Pid}
		}
		return nil
	})
	if err := child.Wait(); err == nil || looks != 4 {
		t.Errorf("it ended with %v after %d looks, want it killed, and two looks behind that", err, looks)
	}
}
