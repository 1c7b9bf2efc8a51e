package machine

import (
	"context"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Cache is an orders.Cache without files: it has every file that Missing does not name.
type Cache struct {
	Delay   time.Duration // of each file, as if it were downloaded
	Missing map[string]error

	mu   sync.Mutex
	used map[string]time.Time
	made []pxp.FileEntry
}

// File implements orders.Cache.
func (c *Cache) File(ctx context.Context, f pxp.FileSource) (string, error) {
	return c.place(f), c.get(ctx, f.SHA256)
}

func (c *Cache) place(f pxp.FileSource) string {
	return "/cache/" + f.SHA256 + "/" + orders.BaseName(f)
}

// Install implements orders.Cache.
func (c *Cache) Install(ctx context.Context, _ string, files map[string]pxp.FileSource) error {
	for _, f := range files {
		if err := c.get(ctx, f.SHA256); err != nil {
			return err
		}
	}
	return nil
}

// Make implements orders.Cache.
func (c *Cache) Make(ctx context.Context, entry pxp.FileEntry) error {
	if entry.Kind == pxp.RegularFile {
		if err := c.get(ctx, entry.SHA256); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made = append(c.made, entry)
	return nil
}

// Made lists what Make made.
func (c *Cache) Made() []pxp.FileEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]pxp.FileEntry(nil), c.made...)
}

// Purge implements orders.Cache.
func (c *Cache) Purge(_ context.Context, before time.Time) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gone := 0
	for digest, at := range c.used {
		if at.Before(before) {
			delete(c.used, digest)
			gone++
		}
	}
	return gone, nil
}

func (c *Cache) get(ctx context.Context, digest string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.Delay > 0 {
		timer := time.NewTimer(c.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return fault.Wrap(fault.Unavailable, ctx.Err(), "the download was broken off")
		}
	}
	if err := c.Missing[digest]; err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used == nil {
		c.used = map[string]time.Time{}
	}
	c.used[digest] = time.Now()
	return nil
}
