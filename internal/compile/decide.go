package compile

import (
	"math"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// This file holds the decisions: values in, values out.

// situation is what a dispatcher sees when it looks whether to start something.
type situation struct {
	slots      int  // how many compilations may run at once
	running    int  // how many do
	background int  // how many of them are background work
	room       Room // what the machine has
}

// pick is how many compilations to start and how unimportant they may be.
type pick struct {
	n     int
	worst Priority
}

// next says what to start; the second pick only if there is nothing for the first.
// While the machine is full only one runs, the most important one: a busy machine
// gets slow, never mute. Background work starts only where nothing better is wanted or
// runs, and takes a quarter of the slots, so that what comes meanwhile finds room.
func next(s situation) []pick {
	free := max(0, s.slots-s.running)
	switch {
	case free == 0:
		return nil
	case s.room == Full && s.running == 0:
		return []pick{{1, Background - 1}}
	case s.room == Full:
		return nil
	}
	picks := []pick{{free, Background - 1}}
	if n := min(free, max(1, s.slots/4)-s.background); s.room == Idle && s.running == s.background && n > 0 {
		picks = append(picks, pick{n, Background})
	}
	return picks
}

// backoff is how long a row rests that could not be tried for the n-th time:
// 1, 2, 4 … 60 seconds.
func backoff(n int) time.Duration {
	return min(time.Minute, time.Second<<min(max(n-1, 0), 10))
}

// failureStands is how long a failed compilation answers for the same order, where
// nobody waits. Only what is not part of an order can mend it meanwhile, such as what
// other nodes export: who knows of that wants the node anew with a better priority.
const failureStands = 10 * time.Minute

// standsFor says whether the failed compilation was of order, wanted with priority,
// and lately enough for another one not to be tried.
func standsFor(order fleet.Digest, priority Priority, failed Compilation, now time.Time) bool {
	return priority >= NewCode && failed.Err != nil && failed.Err.Cause == CauseCode && failed.Order == order &&
		now.Sub(failed.FinishedAt) < failureStands
}

// standIn is the transaction of an ask that has none, as old clients send. It is
// the same for five minutes, so that somebody who is told to come back finds
// what was compiled for him instead of having it compiled for ever.
func standIn(now time.Time) string {
	return "none-" + now.UTC().Truncate(5*time.Minute).Format("20060102T1504")
}

// The bounds of what an agent that has to come back is told. Agents give up
// after 100 repeats, so it must not be too little.
const (
	soonest = time.Second
	latest  = 30 * time.Second
)

// load is how busy the queue is.
type load struct {
	wanted, leased int
	oldest         time.Duration // age of the oldest wanted row
	wall           time.Duration // what a compilation takes; zero when not known
	pauses         []Pause
}

// retryAfter says when a node should come back whose catalog is not ready: about
// when the queue should be empty, spread by roll (0 to 1) over as long again, so
// that a crowd that came together does not come back together. As many compile
// at once as hold leases now. A queue that stands still is as slow as it is old.
// Whole seconds, as HTTP has no finer ones.
func retryAfter(l load, roll float64) time.Duration {
	wall := l.wall
	if wall == 0 {
		wall = time.Second
	}
	ahead := float64(max(1, l.wanted+l.leased)) * wall.Seconds() / float64(max(1, l.leased))
	guess := max(seconds(min(ahead, latest.Seconds())), l.oldest/2)
	from := min(max(guess/2, soonest), latest/2)
	to := min(max(min(guess, latest)+min(guess, latest)/2, from+2*time.Second), latest)
	return seconds(math.Round((from + time.Duration(roll*float64(to-from))).Seconds()))
}

// whilePaused says when a node should come back for which nobody compiles: late, and
// spread by roll (0 to 1).
func whilePaused(roll float64) time.Duration {
	return seconds(math.Round((latest/2 + time.Duration(roll*float64(latest/2))).Seconds()))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// target is a version that should be warm.
type target struct {
	version fleet.Digest
	asked   time.Time // when it was deployed, or when to try again
	tries   int
}

// shouldWarm picks the environment whose turn it is. Where nothing is due yet it
// says how long until something is; zero when nothing is left.
func shouldWarm(targets map[fleet.Environment]target, now time.Time) (env fleet.Environment, due bool, wait time.Duration) {
	for name, t := range targets {
		first := targets[env]
		if env == "" || t.asked.Before(first.asked) || t.asked.Equal(first.asked) && name < env {
			env = name
		}
	}
	if env == "" {
		return "", false, 0
	}
	if wait = targets[env].asked.Sub(now); wait > 0 {
		return "", false, wait
	}
	return env, true, 0
}
