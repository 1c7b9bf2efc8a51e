package sql

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// Bounds of a gathering: how many write at once, how many they write for, how many may wait, and how long a write may take.
const (
	gatherWriters = 2 // while one waits for its commit, another one has its rows ready
	gatherBatch   = 64
	gatherWaiting = 4096
	gatherTime    = time.Minute
)

// gathering lets those who write the same kind of thing at the same moment share a transaction and its statements: on PostgreSQL these are most of
// what a small write costs. Nobody waits for company: who comes when few write begins at once, and those who come meanwhile are the next batch.
// There is no goroutine: of those who wait, one takes a turn and works for all. Safe for concurrent use.
type gathering[T any] struct {
	write func(ctx context.Context, all []T) error // stores all or nothing
	key   func(one T) string                       // two with one key are never written together

	turns   chan struct{} // holds a token for each who writes
	mu      sync.Mutex
	waiting []*gathered[T]
}

// gathered is what one caller wants to write.
type gathered[T any] struct {
	what T
	err  error         // set before done is closed
	done chan struct{} // closed when it is written, or was refused
}

func newGathering[T any](key func(one T) string, write func(ctx context.Context, all []T) error) *gathering[T] {
	return &gathering[T]{write: write, key: key, turns: make(chan struct{}, gatherWriters)}
}

// do returns when one is committed, or was refused. If ctx ends before, one may be written all the same.
func (g *gathering[T]) do(ctx context.Context, one T) error {
	w := &gathered[T]{what: one, done: make(chan struct{})}
	if err := g.wait(w); err != nil {
		return err
	}
	turns := g.turns
	for !w.ended() {
		select {
		case <-w.done:
		case turns <- struct{}{}:
			if !g.lead(ctx, w) {
				turns = nil // w is being written: a turn that is free would be taken again and again
			}
		case <-ctx.Done():
			g.leave(w)
			return ctx.Err()
		}
	}
	return w.err
}

func (w *gathered[T]) ended() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func (g *gathering[T]) wait(w *gathered[T]) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == gatherWaiting {
		return fault.Later(time.Second, "the database has %d writes waiting and takes no more now", gatherWaiting)
	}
	g.waiting = append(g.waiting, w)
	return nil
}

// leave takes w out of those who wait, if it is among them still.
func (g *gathering[T]) leave(w *gathered[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = slices.DeleteFunc(g.waiting, func(other *gathered[T]) bool { return other == w })
}

// take takes the next batch, in the order in which they came but for those whose key is in it already.
func (g *gathering[T]) take() (batch []*gathered[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	taken := map[string]bool{}
	g.waiting = slices.DeleteFunc(g.waiting, func(w *gathered[T]) bool {
		key := g.key(w.what)
		if len(batch) == gatherBatch || taken[key] {
			return false
		}
		taken[key] = true
		batch = append(batch, w)
		return true
	})
	return batch
}

// errBroken is what those get whose writer panicked: they must not wait for good.
var errBroken = errors.New("the write broke off")

// lead writes a batch in the turn of w, unless nobody waits, and gives the turn back. Whose own write has ended works for nobody else.
func (g *gathering[T]) lead(ctx context.Context, w *gathered[T]) bool {
	defer func() { <-g.turns }()
	if w.ended() {
		return false
	}
	batch := g.take()
	if len(batch) == 0 {
		return false
	}
	for _, one := range batch {
		one.err = errBroken
	}
	defer func() {
		for _, one := range batch {
			close(one.done)
		}
	}()
	if len(batch) > 1 || batch[0] != w { // who leads may go away, the others are still there
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), gatherTime)
		defer cancel()
	}
	all := make([]T, len(batch))
	for i, one := range batch {
		all[i] = one.what
	}
	err := g.write(ctx, all)
	alone := err != nil && len(all) > 1 && ctx.Err() == nil && fault.Of(explain(err, "write")) != fault.Unavailable
	for _, one := range batch {
		if one.err = err; alone { // one of them is at fault: the others must not suffer for it
			one.err = g.write(ctx, []T{one.what})
		}
	}
	return true
}
