package compile

import (
	"cmp"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Lane is the wanted rows of one priority and environment, of which the oldest is
// leased first.
type Lane struct {
	Priority    Priority
	Environment fleet.Environment
	Running     int       // of the environment, leased and not resting, in all lanes
	Kin         int       // of Running, those of the lane's kind; see Priority.Apart
	Here        int       // of Kin, those that the worker has to whom rows are offered
	Turn        int64     // of the environment's last lease; a smaller one was earlier, zero: none yet
	Oldest      time.Time // when the lane's first row was wanted
	Slow        Slowdown  // of the environment and kind; zero: there is none
}

// Apart says whether p is of the second kind: previews and checks, which no node's next
// catalog comes from. The first kind goes before it, and its shares are counted without it.
func (p Priority) Apart() bool { return p >= Previewing }

// Offer is what a worker would take.
type Offer struct {
	Worker string
	Rows   int      // at most so many
	Worst  Priority // of this priority or better
	// Most is an environment's share: how many rows of it, of one kind, the worker has at once
	// while there are catalogs of other environments to be compiled. Zero: any number.
	Most int
	// Strict environments keep to their share whether others have work or not.
	Strict []fleet.Environment
	// Last is environments that have none of their share while others have catalogs to be
	// compiled: they had their turn.
	Last  []fleet.Environment
	Now   time.Time
	Until time.Time // the end of the leases
}

// NextLane says from which lane a row is leased next for o; -1: from none. Lanes of
// environments that are slowed have to wait for their time, and run one row. Environments
// that have their share give way to others that have catalogs to be compiled. Of what is
// left: of the best priority; of these the environment of which the fewest run, so that
// environments share the workers' time and not the number of catalogs; then the one whose
// last turn is longest ago; then the oldest row. Who leases calls TakeTurn.
func NextLane(lanes []Lane, o Offer) int {
	others := slices.ContainsFunc(lanes, func(l Lane) bool { return l.ready(o.Now) && !l.Priority.Apart() && !l.full(o) })
	best := -1
	for i, l := range lanes {
		if !l.ready(o.Now) || l.full(o) && (others || l.strict(o)) {
			continue
		}
		if best < 0 || compareLanes(l, lanes[best]) < 0 { //nolint:gosec // best is one of them
			best = i
		}
	}
	return best
}

// ready says whether a row of l may run now, as far as it depends on l.
func (l Lane) ready(now time.Time) bool {
	return !l.Slow.Slowed() || l.Kin == 0 && !now.Before(l.Slow.RestsUntil)
}

// full says whether l's environment has its share.
func (l Lane) full(o Offer) bool {
	return o.Most > 0 && l.Here >= o.Most || !l.Priority.Apart() && slices.Contains(o.Last, l.Environment)
}

func (l Lane) strict(o Offer) bool {
	return o.Most > 0 && l.Here >= o.Most && slices.Contains(o.Strict, l.Environment)
}

func compareLanes(a, b Lane) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Running, b.Running), cmp.Compare(a.Turn, b.Turn),
		a.Oldest.Compare(b.Oldest), cmp.Compare(a.Environment, b.Environment))
}

// TakeTurn notes that a row of the lane taken was leased as the turn-th.
func TakeTurn(lanes []Lane, taken Lane, turn int64) {
	for i, l := range lanes {
		if l.Environment != taken.Environment {
			continue
		}
		lanes[i].Running++
		lanes[i].Turn = turn
		if l.Priority.Apart() == taken.Priority.Apart() {
			lanes[i].Kin++
			lanes[i].Here++
		}
	}
}

// Share is how many of a number of workers one environment may have, where the share of one
// is given: one at least, and never all of several.
func Share(workers int, share float64) int {
	return max(1, min(int(float64(workers)*share), workers-1))
}
