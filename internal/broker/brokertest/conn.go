// Package brokertest has the in-memory connection for tests of the broker and of
// what stands on it. It reads what it is sent only when it is asked to.
//
// Concurrency: a Conn is safe for concurrent use.
package brokertest

import (
	"sync"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/wire"
)

// Conn is a connection without a network.
type Conn struct {
	mu       sync.Mutex
	woken    int
	farewell *broker.Farewell
	ousted   bool
	asked    bool

	// Gone says that nobody is there any more who would notice being ousted. It is set before the connection is used.
	Gone bool
}

var _ broker.Conn = (*Conn)(nil)

// Wake counts.
func (c *Conn) Wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.woken++
}

// Close remembers the first farewell.
func (c *Conn) Close(f broker.Farewell) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.farewell == nil && !c.ousted {
		c.farewell = &f
	}
}

// Oust remembers, and says at once whether somebody is there.
func (c *Conn) Oust(alive func()) {
	c.mu.Lock()
	c.ousted, c.asked = true, alive != nil
	c.mu.Unlock()
	if alive != nil && !c.Gone {
		alive()
	}
}

// Woken is how often there was something to write after there was nothing.
func (c *Conn) Woken() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.woken
}

// Farewell is what was said; false if nothing was.
func (c *Conn) Farewell() (broker.Farewell, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.farewell == nil {
		return broker.Farewell{}, false
	}
	return *c.farewell, true
}

// Asked tells that who was ousted was asked whether somebody is there.
func (c *Conn) Asked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

// Ousted tells that the connection was ended without a farewell.
func (c *Conn) Ousted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ousted
}

// Drain reads all that a session has to say.
func Drain(s *broker.Session) []wire.Message {
	var all []wire.Message
	for {
		m, ok := s.Next()
		if !ok {
			return all
		}
		all = append(all, m)
	}
}
