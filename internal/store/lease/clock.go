package lease

import (
	"sync"
	"time"
)

// Clock is the clock of the records as a server sees it: what they answered last, and the time since then by the server's own
// monotonic clock. So servers whose clocks differ, or jump, agree on what is over. Before it is set it is the server's clock.
type Clock struct {
	mu    sync.Mutex
	told  time.Time // by the records
	asked time.Time // here
}

// Set takes over what the records said the time is, to who asked them at a time here and has just been answered.
func (c *Clock) Set(told, asked time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told, c.asked = told, asked.Add(time.Since(asked)/2)
}

// Now is the time of the records.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told.IsZero() {
		return time.Now()
	}
	return c.told.Add(time.Since(c.asked))
}
