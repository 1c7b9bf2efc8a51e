package code

import (
	"context"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// maxAge is how long a deploy by another server on the same rows may stay
// unseen by Current. It costs one query a second for each environment in use. A
// deploy by this Library is seen at once, and so is one that Refresh has seen:
// a node that was given a catalog of a new version gets files of that version.
const maxAge = time.Second

// currents remembers what environments use. The zero value is ready.
type currents struct {
	mu      sync.RWMutex
	changes uint64 // so that an answer from before a change is not kept after it
	known   map[fleet.Environment]current
}

type current struct {
	version Version
	asked   time.Time // before the rows were
}

// of returns what is known and not too old.
func (c *currents) of(env fleet.Environment) (Version, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	known, ok := c.known[env]
	return known.version, ok && time.Since(known.asked) < maxAge
}

// ask asks the rows and keeps the answer, unless something changed meanwhile.
// That an environment does not exist is not kept: anybody can ask for any name.
func (c *currents) ask(ctx context.Context, store Store, env fleet.Environment) (Version, error) {
	asked, changes := time.Now(), c.seen()
	v, err := store.CurrentVersion(ctx, env)
	if err != nil {
		return v, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes == changes && !asked.Before(c.known[env].asked) {
		if c.known == nil {
			c.known = map[fleet.Environment]current{}
		}
		c.known[env] = current{v, asked}
	}
	return v, nil
}

func (c *currents) seen() uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.changes
}

// changed forgets everything; call it after a change, whether or not it seemed
// to succeed.
func (c *currents) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	clear(c.known)
}
