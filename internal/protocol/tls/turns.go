package tls

import (
	"container/list"
	"net"
	"sync"
)

// turns lets so many handshakes compute at once. Who has begun goes before who has not: when a whole
// fleet comes at once, handshakes would else all be begun, and all be given up, before the
// first of them is done. Among equals, who came first goes first.
type turns struct {
	mu    sync.Mutex
	free  int
	begun list.List // of chan struct{}, closed when it is the turn
	fresh list.List
}

func newTurns(n int) *turns { return &turns{free: n} }

// take waits for a turn, or until closed is.
func (t *turns) take(begun bool, closed <-chan struct{}) error {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return nil
	}
	queue := &t.fresh
	if begun {
		queue = &t.begun
	}
	mine := make(chan struct{})
	place := queue.PushBack(mine)
	t.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-closed:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-mine: // it came at the same time: somebody else needs it
		t.pass()
	default:
		queue.Remove(place)
	}
	return net.ErrClosed
}

// giveBack ends a turn.
func (t *turns) giveBack() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass()
}

// pass gives a turn to the next. The caller holds mu.
func (t *turns) pass() {
	for _, queue := range [2]*list.List{&t.begun, &t.fresh} {
		if first := queue.Front(); first != nil {
			close(queue.Remove(first).(chan struct{}))
			return
		}
	}
	t.free++
}
