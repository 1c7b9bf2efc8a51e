package sqlstore

import (
	"maps"
	"sync"

	"github.com/tutti-project/tutti/internal/inventory"
)

// maxPaths bounds the memory of a pathCache. A fleet has a few thousand.
const maxPaths = 100_000

// pathCache remembers the ids of fact paths that are committed. Paths are never
// removed, so an id never becomes wrong.
type pathCache struct {
	mu  sync.RWMutex
	ids map[string]int64
}

// find fills ids for the changes whose paths it knows, and returns the positions
// of the others.
func (c *pathCache) find(changes []inventory.Change, ids []int64) (unknown []int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for i := range changes {
		id, ok := c.ids[changes[i].Path]
		if !ok {
			unknown = append(unknown, i)
		}
		ids[i] = id
	}
	return unknown
}

func (c *pathCache) add(fresh map[string]int64) {
	if len(fresh) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids == nil || len(c.ids)+len(fresh) > maxPaths {
		c.ids = map[string]int64{}
	}
	maps.Copy(c.ids, fresh)
}
