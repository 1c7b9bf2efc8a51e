package connection

import "time"

// course decides which server is next, and how long to wait before. It is pure.
type course struct {
	servers        int
	first, longest time.Duration
	away           time.Duration // the longest while nobody is there

	at       int  // the server to try, or that is connected
	failures int  // in a row
	begun    bool // there was an attempt
	hopeless bool // the last server refused for a reason that does not go away by itself
	absent   bool // nobody was there
}

// pause is the bound of the time to wait before the next attempt.
func (c *course) pause() time.Duration {
	switch {
	case !c.begun:
		return 0
	case c.hopeless:
		return c.longest
	}
	longest := c.longest
	if c.absent { // nobody has work with these attempts, and who comes back is wanted soon
		longest = min(c.away, longest)
	}
	pause := min(c.first, longest)
	for range c.failures / c.servers {
		if pause *= 2; pause >= longest {
			return longest
		}
	}
	return pause
}

// failed is told that the attempt at the current server failed.
func (c *course) failed(hopeless, absent bool) {
	c.begun, c.hopeless, c.absent = true, hopeless, absent
	c.failures++
	c.at = (c.at + 1) % c.servers
}

// lost is told that the connection ended. A good one is tried for at the same server.
func (c *course) lost(steady, hopeless bool) {
	if !steady || hopeless {
		c.failed(hopeless, false)
		return
	}
	c.begun, c.hopeless, c.absent, c.failures = true, false, false, 0
}
