package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fault/checkup"
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
func openContent(ctx context.Context, c Config, data *dataDir, marks cas.Marks, log *slog.Logger) (content, error) {
	if !c.blobsElsewhere() {
		return blobdir.Open(data.join(blobsDir))
	}
	cache, err := blobdir.OpenCache(data.join(cacheDir), c.BlobsCacheBytes)
	if err != nil {
		return nil, err
	}
	store, err := blobs3.Open(ctx, c.s3(c.Blobs), blobs3.Parts{Marks: marks, Cache: cache, Spool: cache.Spool(), Log: log})
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

// blobsElsewhere says whether content is not in the data directory.
func (c Config) blobsElsewhere() bool { return c.Blobs != "" && c.Blobs != blobsInDirectory }

// blobsInDirectory is the word for content in the data directory.
const blobsInDirectory = "directory"

// s3 is the S3 store of a place, with these settings.
func (c Config) s3(place string) blobs3.Config {
	return blobs3.Config{
		Place: place, Endpoint: c.BlobsEndpoint, Region: c.BlobsRegion, PathStyle: c.BlobsPathStyle, CAFile: c.BlobsCA,
		CredentialsFile: c.BlobsCredentials, Timeout: c.BlobsTimeout,
	}
}

func (c Config) checkBlobs() error {
	for key, path := range map[string]string{"blobs_ca": c.BlobsCA, "blobs_credentials": c.BlobsCredentials} {
		if path != "" && !strings.HasPrefix(path, "/") {
			return bad(key, "%q is not the absolute path of a file", path)
		}
	}
	if !c.blobsElsewhere() {
		return nil
	}
	if err := c.s3(c.Blobs).Check(); err != nil {
		return bad("blobs", "%s", fault.Detail(err))
	}
	return nil
}

// contentCheck looks whether an S3 store can be used.
func contentCheck(ctx context.Context, c Config) []checkup.Finding {
	const check = "content"
	if !c.blobsElsewhere() {
		return nil
	}
	const mend = "see docs/many-servers.md; a server that starts without its store serves what it has cached"
	behind, err := blobs3.Probe(ctx, c.s3(c.Blobs))
	switch {
	case err != nil:
		return []checkup.Finding{checkup.Failed(check, err, mend)}
	case behind.Abs() > mostBehind:
		return []checkup.Finding{{
			Check: check, State: checkup.Warning, Found: fmt.Sprintf("the clock of %s and this machine's differ by %s", c.Blobs, behind.Abs()),
			Mend: "set both right: stores refuse requests from other times",
		}}
	case !c.s3(c.Blobs).Encrypted():
		return []checkup.Finding{{
			Check: check, State: checkup.Warning, Found: fmt.Sprintf("%s can be written and read, but nothing encrypts content on its way", c.Blobs),
			Mend: "blobs_endpoint: https://..., and blobs_ca for a certificate of your own",
		}}
	}
	return []checkup.Finding{checkup.Goodf(check, "%s can be written and read", c.Blobs)}
}

// mostBehind is by how much clocks may differ.
const mostBehind = time.Minute

// contentBeside reads a server's content beside it.
func contentBeside(ctx context.Context, c Config, place, data string) (backup.Blobs, error) {
	if place == blobsInDirectory || place == "" {
		return blobdir.OpenBeside(ctx, filepath.Join(data, blobsDir))
	}
	return blobs3.OpenBeside(ctx, c.s3(place))
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
func fillContent(ctx context.Context, c Config, place, data, spool string, log *slog.Logger) (filled, error) {
	if place == blobsInDirectory || place == "" {
		store, err := blobdir.Open(filepath.Join(data, blobsDir))
		return filledDirectory{store}, err
	}
	store, err := blobs3.Open(ctx, c.s3(place), blobs3.Parts{Marks: cas.NewMarks(), Cache: blobs3.Uncached{}, Spool: spool, Log: log, Now: true})
	return filledBucket{store}, err
}

// CopyContent copies all content from one store to another: each is the directory of the data directory, or a place in S3. Servers
// may use the first one meanwhile. What is there is not copied again.
func CopyContent(ctx context.Context, c Config, from, to, spool string, log *slog.Logger, progress Progress) (copied cas.Copied, err error) {
	if from == to {
		return copied, fault.New(fault.Invalid, "%s is both where content comes from and where it goes: name two stores", from)
	}
	for _, place := range []string{from, to} {
		if place != blobsInDirectory {
			if err := c.s3(place).Check(); err != nil {
				return copied, fault.Wrap(fault.Invalid, err, "%s, nor is it the word directory", fault.Detail(err))
			}
		}
	}
	data, err := filepath.Abs(c.Data)
	if err != nil {
		return copied, err
	}
	source, err := contentBeside(ctx, c, from, data)
	if err != nil {
		return copied, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := fillContent(ctx, c, to, data, spool, log)
	if err != nil {
		return copied, err
	}
	copied, err = cas.Copy(ctx, source, target, func(done int64) { progress("blobs", done, 0) })
	return copied, errors.Join(err, target.settle(context.WithoutCancel(ctx)))
}
