package e2e_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// turns lets some stories be told at a time. Those that take longest come first: none of them
// is left to be told alone at the end, while the other cores have nothing to do.
type turns struct {
	mu        sync.Mutex
	free      int      // turns that nobody has
	announced int      // stories that will want a turn, and have not asked for it yet
	waiting   []waiter // the one to come next is last
}

type waiter struct {
	seconds int
	turn    chan struct{}
}

var queue turns

// begin makes a story one of those that are told at the same time, and returns when it is its turn. seconds is about
// how long it takes; only its order matters, and a short one need not say it. A test whose subtests begin is parallel itself: nobody
// has a turn before all tests have begun.
func begin(t *testing.T, seconds ...int) {
	t.Helper()
	queue.announce(1)
	t.Parallel()
	queue.announce(-1)
	t.Cleanup(told(t, queue.take(append(seconds, 0)[0])))
}

// told ends a turn, and says how long the story took without the wait for it: `make test` lists the slowest by that (tools/slowest).
func told(t interface{ Log(args ...any) }, give func()) (end func()) {
	begun := time.Now()
	return func() {
		t.Log(fmt.Sprintf("told in %.1f s, besides the wait for its turn", time.Since(begun).Seconds()))
		give()
	}
}

// announce keeps everybody waiting until all are there of whom it is known that they come.
func (q *turns) announce(stories int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.announced += stories
}

// take waits for a turn; give ends it.
func (q *turns) take(seconds int) (give func()) {
	me := waiter{seconds, make(chan struct{})}
	q.mu.Lock()
	at, _ := slices.BinarySearchFunc(q.waiting, seconds, func(w waiter, s int) int { return w.seconds - s })
	q.waiting = slices.Insert(q.waiting, at, me)
	q.next()
	q.mu.Unlock()
	<-me.turn
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.free++
		q.next()
	}
}

func (q *turns) next() {
	for q.free > 0 && q.announced == 0 && len(q.waiting) > 0 {
		last := len(q.waiting) - 1
		close(q.waiting[last].turn)
		q.waiting = q.waiting[:last]
		q.free--
	}
}
