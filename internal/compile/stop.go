package compile

import (
	"errors"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// This file decides which compilation gives its worker to others.

// errStopped is why a compilation ends that had its turn.
var errStopped = errors.New("others wait, and the compilation had its turn")

// held is a compilation that a dispatcher runs.
type held struct {
	environment fleet.Environment
	apart       bool          // see Priority.Apart
	ran         time.Duration // until now
	turns       int           // how often it was stopped because it was another's turn
}

// fairness is the bounds of a dispatcher.
type fairness struct {
	most    int           // see Offer.Most
	slice   time.Duration // how long a compilation runs at least, whoever waits
	timeout time.Duration // how long it runs at most
}

// turn is how long a compilation runs in its n-th turn, whoever waits: twice as long each time,
// so that it ends.
func (f fairness) turn(n int) time.Duration {
	return min(f.timeout, f.slice<<min(n, 16))
}

// stop says which of the running ones is stopped for somebody in lanes, where nothing more can be
// started; -1: none. share says that it was of an environment, or of previews, that has more than
// its share: of those, the youngest one that had a slice is stopped, as the older ones can go on.
// Otherwise it was somebody's turn of whom none runs; then the one is stopped that had most of its
// own time. Only catalogs that can be leased now have others stopped, previews never.
func (f fairness) stop(running []held, lanes []Lane, now time.Time) (at int, share bool) {
	at = -1
	for _, l := range lanes {
		if l.Priority.Apart() || !l.ready(now) {
			continue
		}
		own := kin(running, held{environment: l.Environment})
		if own >= f.most {
			continue
		}
		for i, h := range running {
			if !h.apart && h.environment == l.Environment {
				continue
			}
			over := kin(running, h) > f.most
			switch {
			case over && h.ran >= f.slice:
				if at < 0 || !share || h.ran < running[at].ran {
					at, share = i, true
				}
			case own == 0 && !share && h.ran >= f.turn(h.turns) && h.ran < f.timeout:
				if at < 0 || h.ran-f.turn(h.turns) > running[at].ran-f.turn(running[at].turns) {
					at = i
				}
			}
		}
	}
	return at, share
}

// kin counts the running ones that share with h: catalogs of one environment, or all previews.
func kin(running []held, h held) (n int) {
	for _, r := range running {
		if r.apart == h.apart && (h.apart || r.environment == h.environment) {
			n++
		}
	}
	return n
}

// turns counts, by row, how often it was stopped in its turn. As with strikes the count ends with
// the process: then a row has short turns again.
type turns struct {
	mu  sync.Mutex
	row map[int64]int
}

func (t *turns) add(row int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.row == nil || len(t.row) >= maxStruck {
		t.row = map[int64]int{}
	}
	t.row[row]++
}

func (t *turns) of(row int64) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.row[row]
}

func (t *turns) over(row int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.row, row)
}

// terms are environments with a time until which something holds of them.
type terms map[fleet.Environment]time.Time

// now lists them, in no order, and forgets those whose time is over.
func (t terms) now(now time.Time) (list []fleet.Environment) {
	for env, until := range t {
		if !now.Before(until) {
			delete(t, env)
			continue
		}
		list = append(list, env)
	}
	return list
}
