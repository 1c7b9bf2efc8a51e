package compile

import (
	"cmp"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Lane is the wanted rows of one priority and environment, of which the oldest is
// leased first.
type Lane struct {
	Priority    Priority
	Environment fleet.Environment
	Running     int       // of the environment, leased and not resting, in all lanes
	Turn        int64     // of the environment's last lease; a smaller one was earlier, zero: none yet
	Oldest      time.Time // when the lane's first row was wanted
}

// NextLane says from which lane a row is leased next: of the best priority, so that
// somebody who waits always goes first; of these the environment of which the fewest
// run, so that environments share the workers' time and not the number of catalogs;
// then the one whose last turn is longest ago; then the oldest row. It is -1 when there
// are no lanes. Who leases raises Running and Turn of the environment in all its lanes.
func NextLane(lanes []Lane) int {
	best := -1
	for i, l := range lanes {
		if best < 0 || compareLanes(l, lanes[best]) < 0 { //nolint:gosec // best is one of them
			best = i
		}
	}
	return best
}

func compareLanes(a, b Lane) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Running, b.Running), cmp.Compare(a.Turn, b.Turn),
		a.Oldest.Compare(b.Oldest), cmp.Compare(a.Environment, b.Environment))
}

// TakeTurn notes that a row of env was leased as the turn-th.
func TakeTurn(lanes []Lane, env fleet.Environment, turn int64) {
	for i := range lanes {
		if lanes[i].Environment == env {
			lanes[i].Running++
			lanes[i].Turn = turn
		}
	}
}
