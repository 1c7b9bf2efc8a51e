// Package files gets files from the servers of an agent, and keeps them.
//
// A file is named by the SHA-256 of its content. The cache is a directory:
//
//	<sha256>/<base name>    one content under the names that tasks have for it
//
// The directory's time is when it was last used. A file is hashed before each use, so that
// one that was changed, or half written when the machine went down, is downloaded again. Downloads
// go to a temporary file, are hashed while they come, and appear with their name all at once.
//
// # Servers
//
// They are asked in order, each for the path below its address. When none gave the file, all are
// asked again, after 1, 2, 4 and 8 seconds. Content with another digest is not tried again: that is no accident.
//
// # Bounds
//
// One file has at most MaxBytes, one try takes at most MaxTime. A digest is downloaded once at a time: others
// wait for it. Redirects are not followed: the agent's certificate is for its servers.
//
// # Errors
//
// Those of orders.Cache: Unavailable when no server gave the file or the disk is full, Invalid for
// content that is not what was announced. Their sentences are the original agent's where it has one.
//
// # Concurrency
//
// A Cache may be used concurrently, by one process.
package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Config is where files come from and where they are kept. Zero limits mean the defaults.
type Config struct {
	Dir      string
	Servers  []string     // their addresses, the first one first: https://HOST:PORT
	Client   *http.Client // with the agent's certificate
	MaxBytes int64        // of one file; 1 GB
	MaxTime  time.Duration
	Log      *slog.Logger
}

const (
	// mode is that of files and directories: the original has one for both.
	mode       = 0o750
	tempPrefix = "temp_file_"
)

// Cache is files in a directory.
type Cache struct {
	cfg    Config
	client *http.Client
	pauses []time.Duration // between the rounds over all servers

	mu    sync.Mutex
	locks map[string]*keyed // by digest
}

var _ orders.Cache = (*Cache)(nil)

// keyed is a lock that goes away when nobody wants it.
type keyed struct {
	turn   chan struct{}
	wanted int
}

// New returns a cache in a directory, which is made when it is needed.
func New(cfg Config) *Cache {
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = 1 << 30
	}
	if cfg.MaxTime <= 0 {
		cfg.MaxTime = 30 * time.Minute
	}
	client := *cfg.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	pauses := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}
	return &Cache{cfg: cfg, client: &client, pauses: pauses, locks: map[string]*keyed{}}
}

// File implements orders.Cache.
func (c *Cache) File(ctx context.Context, f pxp.FileSource) (string, error) {
	unlock, err := c.lock(ctx, f.SHA256)
	if err != nil {
		return "", err
	}
	defer unlock()
	dir := filepath.Join(c.cfg.Dir, f.SHA256)
	if err := c.touch(dir); err != nil {
		return "", c.broken(err)
	}
	path := filepath.Join(dir, orders.BaseName(f))
	have, err := Has(path, f.SHA256)
	switch {
	case err != nil:
		return "", c.broken(err)
	case have:
		return path, c.broken(os.Chmod(path, mode))
	default:
		return path, c.download(ctx, content{name: f.Filename, sha256: f.SHA256, uri: f.URI}, path)
	}
}

// touch marks a directory as used now.
func (c *Cache) touch(dir string) error {
	if err := os.MkdirAll(dir, mode); err != nil {
		return err
	}
	now := time.Now()
	return os.Chtimes(dir, now, now)
}

// Has says whether a file is there with the content of a digest.
func Has(path, want string) (bool, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return false, err
	}
	return hex.EncodeToString(sum.Sum(nil)) == want, nil
}

// lock waits for the turn to work with a digest.
func (c *Cache) lock(ctx context.Context, digest string) (unlock func(), err error) {
	c.mu.Lock()
	k := c.locks[digest]
	if k == nil {
		k = &keyed{turn: make(chan struct{}, 1)}
		c.locks[digest] = k
	}
	k.wanted++
	c.mu.Unlock()
	leave := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if k.wanted--; k.wanted == 0 {
			delete(c.locks, digest)
		}
	}
	select {
	case k.turn <- struct{}{}:
		return func() { <-k.turn; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

// Install implements orders.Cache.
func (c *Cache) Install(ctx context.Context, dir string, files map[string]pxp.FileSource) error {
	for name, f := range files {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return fault.New(fault.Invalid, "the file %.200q is not below a module", name)
		}
		path, err := c.File(ctx, f)
		if err != nil {
			return err
		}
		if err := copyFile(path, filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return c.broken(err)
		}
	}
	return nil
}

func copyFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), mode); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// Purge implements orders.Cache.
func (c *Cache) Purge(ctx context.Context, before time.Time) (int, error) {
	entries, err := os.ReadDir(c.cfg.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, c.broken(err)
	}
	gone := 0
	for _, entry := range entries {
		if !isDigest(entry.Name()) {
			continue // not ours
		}
		removed, err := c.purgeOne(ctx, entry.Name(), before)
		if err != nil {
			return gone, err
		}
		if removed {
			gone++
		}
	}
	return gone, nil
}

func (c *Cache) purgeOne(ctx context.Context, digest string, before time.Time) (bool, error) {
	unlock, err := c.lock(ctx, digest)
	if err != nil {
		return false, err
	}
	defer unlock()
	dir := filepath.Join(c.cfg.Dir, digest)
	info, err := os.Stat(dir)
	if err != nil || !info.ModTime().Before(before) {
		return false, nil // not old, or gone by itself
	}
	return true, c.broken(os.RemoveAll(dir))
}

func isDigest(name string) bool {
	raw, err := hex.DecodeString(name)
	return err == nil && len(raw) == sha256.Size
}

// broken says of an error of the disk what it means.
func (c *Cache) broken(err error) error {
	switch {
	case err == nil:
		return nil
	case isFull(err):
		return fault.Wrap(fault.Unavailable, err, "the disk is full: make room for files that are downloaded (%v)", err)
	default:
		return fault.Wrap(fault.Unavailable, err, "a downloaded file cannot be kept: %v", err)
	}
}
