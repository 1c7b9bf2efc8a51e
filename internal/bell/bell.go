// Package bell wakes those who wait for something with a number to change.
//
// A bell is a hint: who waits looks at what is stored, and if that is not what it waits for, listens for a while, to look
// again. What rings between the look and the listening is heard. A bell is there as long as somebody waits for it.
//
// All of it may be used concurrently.
package bell

import (
	"context"
	"sync"
	"time"
)

// Tower has a bell for each number that somebody waits for. The zero value is ready.
type Tower struct {
	mu    sync.Mutex
	bells map[int64]*bell
}

// bell is for all who wait for a number. One that has rung is not in the tower any more.
type bell struct {
	rung      chan struct{} // closed when it rings
	listeners int
}

// atMost is how long is listened for a bell: what changed may have lost its ring.
const atMost = time.Second

// Wait returns at once if something is so, and otherwise when a number rings, or after about a second. So looks at
// it; its error, or that of ctx, is returned.
func (t *Tower) Wait(ctx context.Context, id int64, so func() (bool, error)) error {
	b := t.take(id)
	defer t.leave(id, b)
	if is, err := so(); is || err != nil {
		return err
	}
	look := time.NewTimer(atMost)
	defer look.Stop()
	select {
	case <-b.rung:
	case <-look.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Ring wakes all who wait for a number.
func (t *Tower) Ring(id int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b := t.bells[id]; b != nil {
		close(b.rung)
		delete(t.bells, id)
	}
}

func (t *Tower) take(id int64) *bell {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bells == nil {
		t.bells = map[int64]*bell{}
	}
	b := t.bells[id]
	if b == nil {
		b = &bell{rung: make(chan struct{})}
		t.bells[id] = b
	}
	b.listeners++
	return b
}

func (t *Tower) leave(id int64, b *bell) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b.listeners--; b.listeners == 0 && t.bells[id] == b {
		delete(t.bells, id)
	}
}
