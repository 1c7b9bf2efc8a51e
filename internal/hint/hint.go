// Package hint wakes goroutines that wait until something with a number changes.
//
// A hint says only that something may have changed: a waiter looks at the stored row. If the row is not yet in
// the wanted state, the waiter waits for the next hint or about a second, and looks again. A hint between the
// look and the waiting is not lost. The package keeps nothing for a number for which nobody waits.
//
// Other servers that use the same records are told over a Relay.
//
// All of it may be used concurrently.
package hint

import (
	"context"
	"strconv"
	"sync"
	"time"
)

// Board has the waiters of each number. The zero value is ready.
type Board struct {
	others func(id string) // see Join; nil: there are none

	mu      sync.Mutex
	waiting map[int64]*waiters
}

// Join has those who wait on other servers told, too, and those here of what happens there: on boards of the same kind. It comes before all else.
func (b *Board) Join(r *Relay, kind string) {
	b.others = r.Join(kind, func(id string) {
		if n, err := strconv.ParseInt(id, 10, 64); err == nil {
			b.wake(n)
		} else {
			b.wakeAll()
		}
	})
}

// waiters are all who wait for a number. They leave the board when they are told.
type waiters struct {
	told  chan struct{} // closed by a hint
	count int
}

// atMost is how long a waiter waits without a look: a hint may be lost.
const atMost = time.Second

// Wait returns at once if ready says so, and otherwise when there is a hint for the number, or after about a second. It returns the
// error of ready or of ctx.
func (b *Board) Wait(ctx context.Context, id int64, ready func() (bool, error)) error {
	w := b.take(id)
	defer b.leave(id, w)
	if is, err := ready(); is || err != nil {
		return err
	}
	look := time.NewTimer(atMost)
	defer look.Stop()
	select {
	case <-w.told:
	case <-look.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Tell wakes all who wait for a number.
func (b *Board) Tell(id int64) {
	b.wake(id)
	if b.others != nil {
		b.others(strconv.FormatInt(id, 10))
	}
}

// wakeAll wakes all who wait here.
func (b *Board) wakeAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.waiting {
		close(w.told)
	}
	clear(b.waiting)
}

// wake wakes those here.
func (b *Board) wake(id int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w := b.waiting[id]; w != nil {
		close(w.told)
		delete(b.waiting, id)
	}
}

func (b *Board) take(id int64) *waiters {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = map[int64]*waiters{}
	}
	w := b.waiting[id]
	if w == nil {
		w = &waiters{told: make(chan struct{})}
		b.waiting[id] = w
	}
	w.count++
	return w
}

func (b *Board) leave(id int64, w *waiters) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.count--; w.count == 0 && b.waiting[id] == w {
		delete(b.waiting, id)
	}
}
