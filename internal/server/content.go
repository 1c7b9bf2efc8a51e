package server

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/server/datadir"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/store/backup"
	"github.com/tutti-project/tutti/internal/store/blobdir"
	"github.com/tutti-project/tutti/internal/store/blobs3"
)

// blobsDir is the directory of blobs in a data directory, cacheDir that of those whose store is elsewhere.
const (
	blobsDir = "blobs"
	cacheDir = "blobcache"
)

// content is where a server keeps blobs.
type content interface {
	cas.Store
	cas.Linker
	Guard(admit func() error)
	Close() error
}

// openContent opens the store of content that the settings name.
func openContent(ctx context.Context, c settings.Config, data *datadir.Dir, marks cas.Marks, log *slog.Logger) (content, error) {
	if !c.BlobsElsewhere() {
		return blobdir.Open(data.Join(blobsDir))
	}
	cache, err := blobdir.OpenCache(data.Join(cacheDir), c.BlobsCacheBytes)
	if err != nil {
		return nil, err
	}
	store, err := blobs3.Open(ctx, c.S3(c.Blobs), blobs3.Parts{Marks: marks, Cache: cache, Spool: cache.Spool(), Log: log})
	if err != nil {
		return nil, errors.Join(err, cache.Close())
	}
	return &cachedContent{store, cache}, nil
}

// cachedContent is a store elsewhere with its cache. Only the cache needs room on the disk.
type cachedContent struct {
	*blobs3.Store
	cache *blobdir.Cache
}

func (c *cachedContent) Guard(admit func() error) { c.cache.Guard(admit) }

func (c *cachedContent) Close() error { return c.cache.Close() }

// status is what /status says of it. A store that does not answer is no reason to send nodes elsewhere: all servers have the same
// one, and each serves what it has cached.
func (c *cachedContent) status(bool) map[string]any {
	said := map[string]any{"store": "s3", "cache_bytes": c.cache.Bytes(), "answers": true}
	if c.Problem() != nil {
		said["answers"] = false
	}
	return said
}

// contentStatus is what /status says of a store of content.
func contentStatus(c content) func(bool) map[string]any {
	if cached, ok := c.(*cachedContent); ok {
		return cached.status
	}
	return func(bool) map[string]any { return map[string]any{"store": "directory"} }
}

// contentBeside reads a server's content beside it.
func contentBeside(ctx context.Context, c settings.Config, place, data string) (backup.Blobs, error) {
	if place == settings.BlobsInDirectory || place == "" {
		return blobdir.OpenBeside(ctx, filepath.Join(data, blobsDir))
	}
	return blobs3.OpenBeside(ctx, c.S3(place))
}

// filled is a store of content that somebody has to himself to fill it.
type filled interface {
	cas.Store
	// settle makes what was put known to servers that use the store, and closes it.
	settle(ctx context.Context) error
}

type filledDirectory struct{ *blobdir.Store }

func (f filledDirectory) settle(context.Context) error { return f.Close() }

type filledBucket struct{ *blobs3.Store }

func (f filledBucket) settle(ctx context.Context) error { return f.Rename(ctx) }

// fillContent opens a store of content to fill it. What waits for an S3 store lies in spool.
func fillContent(ctx context.Context, c settings.Config, place, data, spool string, log *slog.Logger) (filled, error) {
	if place == settings.BlobsInDirectory || place == "" {
		store, err := blobdir.Open(filepath.Join(data, blobsDir))
		return filledDirectory{store}, err
	}
	store, err := blobs3.Open(ctx, c.S3(place), blobs3.Parts{Marks: cas.NewMarks(), Cache: blobs3.Uncached{}, Spool: spool, Log: log, Now: true})
	return filledBucket{store}, err
}

// place is a store of content, with the settings by which it is reached.
type place struct {
	settings.Config
	where string // the directory of the data directory, or in S3
}

// CopyContent copies all content from one store to another: each is the directory of the data directory, or a place in S3. Servers
// may use the first one meanwhile. What is there is not copied again.
func CopyContent(ctx context.Context, c settings.Config, from, to, spool string, log *slog.Logger, progress Progress) (copied cas.Copied, err error) {
	if from == to {
		return copied, fault.New(fault.Invalid, "%s is both where content comes from and where it goes: name two stores", from)
	}
	for _, place := range []string{from, to} {
		if place != settings.BlobsInDirectory {
			if err := c.S3(place).Check(); err != nil {
				return copied, fault.Wrap(fault.Invalid, err, "%s, nor is it the word directory", fault.Detail(err))
			}
		}
	}
	data, err := filepath.Abs(c.Data)
	if err != nil {
		return copied, err
	}
	return copyContent(ctx, place{c, from}, place{c, to}, data, spool, log, progress)
}

func copyContent(ctx context.Context, from, to place, data, spool string, log *slog.Logger, progress Progress) (copied cas.Copied, err error) {
	source, err := contentBeside(ctx, from.Config, from.where, data)
	if err != nil {
		return copied, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := fillContent(ctx, to.Config, to.where, data, spool, log)
	if err != nil {
		return copied, err
	}
	copied, err = cas.Copy(ctx, source, target, func(done int64) { progress("blobs", done, 0) })
	return copied, errors.Join(err, target.settle(context.WithoutCancel(ctx)))
}
