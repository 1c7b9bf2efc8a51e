package code

import (
	"container/list"
	"context"
	"crypto/md5"  //nolint:gosec // Puppet's checksum types, chosen by the agent; nothing is trusted because of them
	"crypto/sha1" //nolint:gosec // as above
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fleet"
)

// sha256Type is the checksum that a manifest already holds.
const sha256Type = "sha256"

// checksumTypes are those that Puppet knows, in its order.
var checksumTypes = []string{
	sha256Type, "sha256lite", "md5", "md5lite", "sha1", "sha1lite",
	"sha512", "sha384", "sha224", "mtime", "ctime", "none",
}

// liteBytes is how much of a file the types ending in "lite" look at.
const liteBytes = 512

// KnownChecksum tells whether a checksum type can be asked for.
func KnownChecksum(name string) bool { return slices.Contains(checksumTypes, name) }

func newHash(name string) hash.Hash {
	switch strings.TrimSuffix(name, "lite") {
	case "md5":
		return md5.New() //nolint:gosec // as above
	case "sha1":
		return sha1.New() //nolint:gosec // as above
	case "sha224":
		return sha256.New224()
	case "sha384":
		return sha512.New384()
	case "sha512":
		return sha512.New()
	default:
		return sha256.New()
	}
}

// checksums computes what manifests do not hold and remembers the last ones.
type checksums struct {
	blobs cas.Store

	mu    sync.Mutex
	known map[checksumKey]*list.Element
	order *list.List // of checksumEntry, the last used first
}

type checksumKey struct {
	digest fleet.Digest
	name   string
}

type checksumEntry struct {
	key   checksumKey
	value string
}

// maxChecksums bounds what is remembered: about 16 MB.
const maxChecksums = 65_536

func newChecksums(blobs cas.Store) *checksums {
	return &checksums{blobs: blobs, known: map[checksumKey]*list.Element{}, order: list.New()}
}

// of returns a file's checksum in Puppet's notation. at is the time that mtime
// and ctime tell.
func (c *checksums) of(ctx context.Context, d fleet.Digest, name string, at time.Time) (string, error) {
	switch name {
	case sha256Type:
		return "{sha256}" + string(d), nil
	case "mtime", "ctime":
		return timeChecksum(name, at), nil
	}
	key := checksumKey{d, name}
	if value, ok := c.get(key); ok {
		return value, nil
	}
	sum, err := c.compute(ctx, key)
	if err != nil {
		return "", err
	}
	value := "{" + name + "}" + sum
	c.put(key, value)
	return value, nil
}

// timeChecksum writes a time the way Ruby prints it.
func timeChecksum(name string, at time.Time) string {
	return "{" + name + "}" + at.UTC().Format("2006-01-02 15:04:05 +0000")
}

func (c *checksums) compute(ctx context.Context, key checksumKey) (string, error) {
	blob, err := c.blobs.Open(ctx, key.digest)
	if err != nil {
		return "", err
	}
	defer func() { _ = blob.Close() }()
	var r io.Reader = blob
	if strings.HasSuffix(key.name, "lite") {
		r = io.LimitReader(blob, liteBytes)
	}
	h := newHash(key.name)
	if _, err := io.Copy(h, contextReader{ctx, r}); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// contextReader stops a long read when nobody waits for it any more.
type contextReader struct {
	ctx context.Context //nolint:containedctx // lives for one copy
	r   io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

func (c *checksums) get(key checksumKey) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.known[key]
	if !ok {
		return "", false
	}
	c.order.MoveToFront(element)
	return element.Value.(checksumEntry).value, true
}

func (c *checksums) put(key checksumKey, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.known[key]; ok {
		return
	}
	c.known[key] = c.order.PushFront(checksumEntry{key, value})
	if c.order.Len() > maxChecksums {
		oldest := c.order.Remove(c.order.Back()).(checksumEntry)
		delete(c.known, oldest.key)
	}
}
