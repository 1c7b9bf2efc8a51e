package agent

import (
	"context"
	"time"
)

// signal wakes one that waits. Given twice before somebody looked, it counts once.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) give() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// await waits for the signal, for a while.
func (s signal) await(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-s:
	case <-timer.C:
	}
}
