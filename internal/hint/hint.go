// Package hint wakes goroutines that wait until something with a number changes.
//
// A hint says only that something may have changed: a waiter looks at the stored row. If the row is not yet in
// the wanted state, the waiter waits for the next hint or about a second, and looks again. A hint between the
// look and the waiting is not lost. The package keeps nothing for a number for which nobody waits.
//
// All of it may be used concurrently.
package hint

import (
	"context"
	"sync"
	"time"
)

// Board has the waiters of each number. The zero value is ready.
type Board struct {
	mu      sync.Mutex
	waiting map[int64]*waiters
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
