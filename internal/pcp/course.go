package pcp

import "time"

// course decides which server is next, and how long to wait before. It is pure.
type course struct {
	servers        int
	first, longest time.Duration

	at       int  // the server to try, or that is connected
	failures int  // in a row
	begun    bool // there was an attempt
	hopeless bool // the last server refused for a reason that does not go away by itself
}

// pause is the bound of the time to wait before the next attempt.
func (c *course) pause() time.Duration {
	switch {
	case !c.begun:
		return 0
	case c.hopeless:
		return c.longest
	}
	pause := c.first
	for range c.failures / c.servers {
		if pause *= 2; pause >= c.longest {
			return c.longest
		}
	}
	return pause
}

// failed is told that the attempt at the current server failed.
func (c *course) failed(hopeless bool) {
	c.begun, c.hopeless = true, hopeless
	c.failures++
	c.at = (c.at + 1) % c.servers
}

// lost is told that the connection ended. A good one is tried for at the same server.
func (c *course) lost(steady, hopeless bool) {
	if !steady || hopeless {
		c.failed(hopeless)
		return
	}
	c.begun, c.hopeless, c.failures = true, false, 0
}
