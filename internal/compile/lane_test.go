package compile

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/fleet"
)

// TestNextLaneIsFair plays a worker's slots over environments with endless work: none
// gets a second slot while another that has work has none, and with one slot none waits
// for more than one turn of each other.
func TestNextLaneIsFair(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lanes := make([]Lane, rapid.IntRange(1, 5).Draw(t, "environments"))
		for i := range lanes {
			lanes[i] = Lane{Priority: NewCode, Environment: fleet.Environment(fmt.Sprint(i)), Turn: rapid.Int64Range(0, 3).Draw(t, "turn")}
		}
		slots := rapid.IntRange(1, 6).Draw(t, "slots")
		var running []int
		since := make([]int, len(lanes)) // leases of others since its own
		for turn := range int64(40) {
			if len(running) == slots {
				i := rapid.IntRange(0, len(running)-1).Draw(t, "ends")
				lanes[running[i]].Running--
				running = append(running[:i], running[i+1:]...)
			}
			n := NextLane(lanes)
			for _, other := range lanes {
				if other.Running < lanes[n].Running {
					t.Fatalf("environment %s has %d and gets more, %s has %d", lanes[n].Environment, lanes[n].Running, other.Environment, other.Running)
				}
			}
			for i := range since {
				since[i]++
			}
			since[n] = 0
			if slots == 1 {
				for i, n := range since {
					if n >= 2*len(lanes) {
						t.Fatalf("environment %d waits for %d leases of %d environments", i, n, len(lanes))
					}
				}
			}
			TakeTurn(lanes, lanes[n].Environment, 4+turn)
			running = append(running, n)
		}
	})
}

func TestNextLane(t *testing.T) {
	t.Parallel()
	if got := NextLane(nil); got != -1 {
		t.Errorf("of no lanes: %d", got)
	}
	lanes := []Lane{
		{Priority: NewCode, Environment: "a"},
		{Priority: Waited, Environment: "b", Running: 9, Turn: 9},
		{Priority: NewCode, Environment: "c", Running: 1},
	}
	if got := NextLane(lanes); got != 1 {
		t.Errorf("lane %d goes before the one that somebody waits for", got)
	}
}
