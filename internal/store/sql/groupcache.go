package sql

import (
	"sync"

	"github.com/tutti-project/tutti/internal/fleet"
)

// maxGroupBytes bounds the memory of a groupCache.
const maxGroupBytes = 32 << 20

// groupCache remembers groups of source files by their digests. A digest's text
// never changes. Every method may be called concurrently.
type groupCache struct {
	mu    sync.Mutex
	bytes int
	texts map[fleet.Digest][]byte
}

func (c *groupCache) get(digest fleet.Digest) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, ok := c.texts[digest]
	return text, ok
}

// put keeps a text. When there are too many it begins anew: those in use come back.
func (c *groupCache) put(digest fleet.Digest, text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.texts == nil || c.bytes+len(text) > maxGroupBytes {
		c.texts, c.bytes = map[fleet.Digest][]byte{}, 0
	}
	if _, known := c.texts[digest]; !known {
		c.texts[digest] = text
		c.bytes += len(text) + len(digest)
	}
}
