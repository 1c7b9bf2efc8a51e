package sql

import (
	"sync"

	"github.com/tutti-project/tutti/internal/facts"
)

// maxPaths bounds the memory of a pathCache. A fleet has a few thousand.
const maxPaths = 100_000

// knownPath is the id of a path, and a bit for each kind of value that it is known
// to have had.
type knownPath struct {
	id    int64
	kinds uint8
}

func kindBit(k facts.Kind) uint8 { return 1 << k } // there are seven

// pathCache remembers the fact paths that are committed, and their kinds. Who removes
// some forgets all in the same transaction. This server is the only one on its database.
type pathCache struct {
	mu    sync.RWMutex
	era   int // how often all was forgotten
	paths map[string]knownPath
}

// now is what add has to be told of what is read from now on.
func (c *pathCache) now() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.era
}

func (c *pathCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.era++
	c.paths = nil
}

// find fills ids for the changes whose paths it knows, and returns the positions
// of the others, and of all whose kind it does not know.
func (c *pathCache) find(changes []facts.Change, ids []int64) (unknown, unseen []int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for i := range changes {
		path, ok := c.paths[changes[i].Path]
		if !ok {
			unknown = append(unknown, i)
		}
		if !changes[i].Removed && path.kinds&kindBit(changes[i].Kind) == 0 {
			unseen = append(unseen, i)
		}
		ids[i] = path.id
	}
	return unknown, unseen
}

// add remembers what was read since an era was the present one: it may be gone if there was another one since.
func (c *pathCache) add(era int, fresh map[string]knownPath) {
	if len(fresh) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.era != era {
		return
	}
	if c.paths == nil || len(c.paths)+len(fresh) > maxPaths {
		c.paths = map[string]knownPath{}
	}
	for text, path := range fresh {
		path.kinds |= c.paths[text].kinds
		c.paths[text] = path
	}
}
