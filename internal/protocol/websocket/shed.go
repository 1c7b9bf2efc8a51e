package websocket

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/broker"
)

// shedEvery is the time between two slices.
const shedEvery = 250 * time.Millisecond

// Shed lets nobody in any more, and says farewell to all who are connected, in equal slices over a time: other brokers get them a few at a
// time. It returns when all were told, or when ctx is done. The server goes on to run.
func (s *Server) Shed(ctx context.Context, over time.Duration) {
	s.shedding.Store(true)
	tick := time.NewTicker(shedEvery)
	defer tick.Stop()
	for slices := max(1, int(over/shedEvery)); ; slices = max(1, slices-1) {
		left := s.all()
		for _, c := range left[:(len(left)+slices-1)/slices] {
			c.Close(broker.Stopping)
		}
		if slices == 1 || len(left) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
