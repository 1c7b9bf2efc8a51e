package puppet

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// gate lets a bounded number of requests of one class through, and lets a
// bounded number wait for their turn. A full gate says so.
type gate struct {
	class   string
	places  chan struct{}
	waiting atomic.Int64
	limits  Limits
	queue   int64
}

func newGate(class string, limit Limit, limits Limits) *gate {
	return &gate{class: class, places: make(chan struct{}, max(limit.Active, 1)), queue: int64(limit.Waiting), limits: limits}
}

// enter waits for a place; the caller must leave afterwards unless it got an
// error.
func (g *gate) enter(ctx context.Context) error {
	select {
	case g.places <- struct{}{}:
		return nil
	default:
		return g.wait(ctx)
	}
}

func (g *gate) wait(ctx context.Context) error {
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) > g.queue {
		return g.full()
	}
	timer := time.NewTimer(g.limits.Wait)
	defer timer.Stop()
	select {
	case g.places <- struct{}{}:
		return nil
	case <-timer.C:
		return g.full()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) leave() { <-g.places }

func (g *gate) full() error {
	return fault.Later(g.limits.spread(), "all %d places for %s are taken", cap(g.places), g.class)
}

// spread picks when to come back, so that those who were sent away together do
// not come back together.
func (l Limits) spread() time.Duration {
	if l.RetryMax <= l.RetryMin {
		return l.RetryMin
	}
	return l.RetryMin + rand.N(l.RetryMax-l.RetryMin) //nolint:gosec // spreads load, guards nothing
}
