// Package bell wakes those who wait for something with a number to change.
//
// A bell is a hint: who waits takes the bell, looks at what is stored, and if that is not what it waits for, listens for
// a while and looks again. What rings between the look and the listening is heard, as the bell was taken before.
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
	mu      sync.Mutex
	waiting map[int64]chan struct{}
}

// Of is the bell of a number: it is closed when that rings the next time.
func (t *Tower) Of(id int64) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting == nil {
		t.waiting = map[int64]chan struct{}{}
	}
	if t.waiting[id] == nil {
		t.waiting[id] = make(chan struct{})
	}
	return t.waiting[id]
}

// Ring wakes all who wait for a number.
func (t *Tower) Ring(id int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if bell := t.waiting[id]; bell != nil {
		close(bell)
		delete(t.waiting, id)
	}
}

// atMost is how long is listened for a bell: what changed may have lost its ring.
const atMost = time.Second

// Listen returns when a bell rings, or after about a second. The error is that of ctx.
func Listen(ctx context.Context, bell <-chan struct{}) error {
	look := time.NewTimer(atMost)
	defer look.Stop()
	select {
	case <-bell:
	case <-look.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
