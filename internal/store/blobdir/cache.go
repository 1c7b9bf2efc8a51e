package blobdir

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Cache is the last used blobs of a store that is elsewhere, within a bound. Its methods may be called concurrently.
type Cache struct {
	store *Store
	most  int64

	mu    sync.Mutex
	kept  map[fleet.Digest]*list.Element
	order *list.List // of *keptBlob, the last used first
	bytes int64      // of all that is kept, and on its way
}

type keptBlob struct {
	digest fleet.Digest
	size   int64
	noted  time.Time // the last use that its file tells
}

// noteAfter is how much younger a use must be than the one that a file tells, to be written there.
const noteAfter = 10 * time.Minute

// OpenCache opens the cache in dir, for at most so many bytes, and makes it if need be. Conflict when another process uses
// it. The caller closes it.
func OpenCache(dir string, most int64) (*Cache, error) {
	store, err := openStore(dir, true)
	if err != nil {
		return nil, err
	}
	c := &Cache{store: store, most: most, kept: map[fleet.Digest]*list.Element{}, order: list.New()}
	if err := c.recall(); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.makeRoom(0)
	return c, nil
}

// recall finds what an earlier process kept.
func (c *Cache) recall() error {
	var found []*keptBlob
	for i := range c.store.shards {
		entries, err := os.ReadDir(c.store.shardDir(i))
		if err != nil {
			return c.store.diskFault(err)
		}
		for _, entry := range entries {
			d, err := fleet.ParseDigest(entry.Name())
			if err != nil {
				continue
			}
			if info, err := entry.Info(); err == nil {
				found = append(found, &keptBlob{digest: d, size: info.Size(), noted: info.ModTime()})
			}
		}
	}
	slices.SortFunc(found, func(a, b *keptBlob) int { return cmp.Compare(a.noted.UnixNano(), b.noted.UnixNano()) })
	for _, one := range found {
		c.kept[one.digest] = c.order.PushFront(one)
		c.bytes += one.size
	}
	return nil
}

// Close gives the directory free for another process.
func (c *Cache) Close() error { return c.store.Close() }

// Spool is a directory on the same disk for files that are of no use after this process.
func (c *Cache) Spool() string { return c.store.tmpDir() }

// Guard has admit asked before anything is kept from now on: what it returns is the error.
func (c *Cache) Guard(admit func() error) { c.store.Guard(admit) }

// Open is cas.Store's: NotFound for what is not kept, ErrCorrupt for what was damaged and is not kept any more.
func (c *Cache) Open(ctx context.Context, d fleet.Digest) (cas.Blob, error) {
	blob, err := c.store.Open(ctx, d)
	c.used(d, err)
	return blob, err
}

// Fill is cas.Filler's, with the errors of Open.
func (c *Cache) Fill(ctx context.Context, d fleet.Digest, buf []byte) (int64, error) {
	size, err := c.store.Fill(ctx, d, buf)
	c.used(d, err)
	return size, err
}

// Link is cas.Linker's, with the errors of Open.
func (c *Cache) Link(ctx context.Context, d fleet.Digest, path string, executable bool) error {
	err := c.store.Link(ctx, d, path, executable)
	c.used(d, err)
	return err
}

// used remembers a use, or that there is nothing to use.
func (c *Cache) used(d fleet.Digest, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, there := c.kept[d]
	switch {
	case !there:
	case errors.Is(err, cas.ErrCorrupt), fault.Is(err, fault.NotFound):
		c.drop(element)
	default:
		c.order.MoveToFront(element)
		if one := element.Value.(*keptBlob); time.Since(one.noted) > noteAfter { //nolint:forcetypeassert // nothing else is in it
			one.noted = time.Now()
			_, _ = c.store.touch(d) // it only goes earlier after a restart
		}
	}
}

// Keep keeps a blob of so many bytes. Invalid when the content is another; Unavailable when there is no room for it, in the
// bound or on the disk.
func (c *Cache) Keep(ctx context.Context, d fleet.Digest, size int64, r io.Reader) error {
	if there, err := c.reserve(d, size); there || err != nil {
		return err
	}
	err := c.store.PutAs(ctx, d, io.LimitReader(r, size+1))
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.kept[d]; there || err != nil {
		c.bytes -= size // somebody else kept it meanwhile, or nobody did
	} else {
		c.kept[d] = c.order.PushFront(&keptBlob{digest: d, size: size, noted: time.Now()})
	}
	if fault.Is(err, fault.Unavailable) {
		c.makeRoom(min(c.bytes, 4*size) + c.most - c.bytes) // the disk has less than the bound: the next one finds room
	}
	return err
}

// reserve makes room for a blob, unless it is kept already.
func (c *Cache) reserve(d fleet.Digest, size int64) (there bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, there := c.kept[d]; there {
		c.order.MoveToFront(element)
		return true, nil
	}
	if size > c.most {
		return false, fault.New(fault.Unavailable, "a blob of %d bytes does not fit into the cache of %d", size, c.most)
	}
	c.makeRoom(size)
	c.bytes += size
	return false, nil
}

// makeRoom removes what was used longest ago until size fits. The caller holds the lock.
func (c *Cache) makeRoom(size int64) {
	for c.bytes+size > c.most && c.order.Len() > 0 {
		c.drop(c.order.Back())
	}
}

// drop forgets a blob and removes its file, if it is there. Who has it open reads on.
func (c *Cache) drop(element *list.Element) {
	one := c.order.Remove(element).(*keptBlob) //nolint:forcetypeassert // nothing else is in it
	delete(c.kept, one.digest)
	c.bytes -= one.size
	_, _, _ = c.store.removeOlder(one.digest, time.Now().Add(time.Hour)) // what cannot be removed is found at the next start
}

// Remove forgets a blob.
func (c *Cache) Remove(d fleet.Digest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, there := c.kept[d]; there {
		c.drop(element)
	}
}

// Bytes is how much is kept.
func (c *Cache) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}
