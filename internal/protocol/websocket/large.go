package websocket

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"
)

// Large messages are read and handled a few at a time: what waits stays with its
// sender. Without that, 200 agents that answer with a megabyte each at once cost half
// a gigabyte: every message lies there in several forms until it is stored.
const (
	largeBytes = 64 << 10    // from here on a message is large
	largeRoom  = 16 << 20    // for large messages at the same time; a larger one comes alone
	largeWait  = time.Minute // then a message is read all the same: who stalls in the middle holds up nobody for ever
)

func newLargeRoom() *semaphore.Weighted { return semaphore.NewWeighted(largeRoom) }

// admit waits for a large message's turn; false: its time is over, or the server stops.
func (c *conn) admit(ctx context.Context, bytes int64) bool {
	weight := min(bytes, largeRoom)
	ctx, cancel := context.WithTimeout(ctx, largeWait)
	defer cancel()
	if c.server.large.Acquire(ctx, weight) != nil {
		return false
	}
	c.mu.Lock()
	ended := c.ended
	if !ended {
		c.admitted = weight
	}
	c.mu.Unlock()
	if ended {
		c.server.large.Release(weight)
	}
	return !ended
}

// leaveRoom makes room for others.
func (c *conn) leaveRoom() {
	c.mu.Lock()
	weight := c.admitted
	c.admitted = 0
	c.mu.Unlock()
	if weight > 0 {
		c.server.large.Release(weight)
	}
}
