package blobdir

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/durable"
	"github.com/tutti-project/tutti/internal/store/filelock"
)

// Store is blobs in a directory.
type Store struct {
	dir       string
	lock      *os.File
	shards    [256]shard
	verifying singleflight.Group
	commits   committer
	buffers   sync.Pool
	loose     bool // a Cache: what a crash takes is fetched again

	// create makes a file to write to; tests put disks that are full here.
	create func(name string) (*os.File, error)

	admit atomic.Pointer[func() error] // see Guard
}

var (
	_ cas.Store   = (*Store)(nil)
	_ cas.Batcher = (*Store)(nil)
	_ cas.Linker  = (*Store)(nil)
	_ cas.Filler  = (*Store)(nil)
)

// shard is one directory of blobs.
type shard struct {
	// mu is held while a name appears, is renewed or goes away.
	mu sync.Mutex

	knownMu sync.Mutex
	known   map[fleet.Digest]identity // verified in this state
}

// identity is the state of a blob's file that was verified.
type identity struct {
	inode uint64
	size  int64
	mtime int64 // nanoseconds since 1970
}

// maxKnown bounds what a shard remembers; 256 shards take at most about 60 MB.
const maxKnown = 2048

const (
	dirMode  = 0o700
	blobMode = 0o444
)

// Open opens the store in dir and makes it if need be. Conflict when another
// process uses it. The caller closes it.
func Open(dir string) (*Store, error) { return openStore(dir, false) }

func openStore(dir string, loose bool) (*Store, error) {
	s := &Store{dir: filepath.Clean(dir), create: createFile, loose: loose}
	s.commits.store = s
	s.buffers.New = func() any { return new([bufferBytes]byte) }
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, s.diskFault(err)
	}
	if err := s.takeLock(); err != nil {
		return nil, err
	}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, s.lock.Close())
	}
	return s, nil
}

const bufferBytes = 128 << 10

func createFile(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, blobMode)
}

// Guard has admit asked before content is written from now on: what it returns is the error.
func (s *Store) Guard(admit func() error) { s.admit.Store(&admit) }

// Close gives the directory free for another process.
func (s *Store) Close() error { return filelock.Release(s.lock) }

func (s *Store) takeLock() error {
	f, err := os.OpenFile(filepath.Join(s.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return s.diskFault(err)
	}
	if err := filelock.Exclusive(f); err != nil {
		holder := readHolder(f)
		_ = f.Close()
		return fault.Wrap(fault.Conflict, err,
			"the blob store %s is in use by another process%s: stop that one, or use another directory", s.dir, holder)
	}
	s.lock = f
	// Who holds it is a courtesy: a full disk must not keep the store shut.
	if f.Truncate(0) == nil {
		_, _ = fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	return nil
}

func readHolder(f *os.File) string {
	var buf [20]byte
	n, _ := f.ReadAt(buf[:], 0)
	if pid := strings.TrimSpace(string(buf[:n])); pid != "" {
		return " (process " + pid + ")"
	}
	return ""
}

// prepare makes the directories and clears what a killed process left.
func (s *Store) prepare() error {
	if err := os.RemoveAll(s.tmpDir()); err != nil {
		return s.diskFault(err)
	}
	dirs := []string{s.tmpDir(), filepath.Join(s.dir, "corrupt"), filepath.Join(s.dir, "blobs")}
	for i := range s.shards {
		s.shards[i].known = map[fleet.Digest]identity{}
		dirs = append(dirs, s.shardDir(i))
	}
	made := false
	for _, dir := range dirs {
		err := os.Mkdir(dir, dirMode)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return s.diskFault(err)
		}
		made = made || err == nil && dir != s.tmpDir()
	}
	if !made {
		return nil
	}
	for _, dir := range []string{filepath.Join(s.dir, "blobs"), s.dir, filepath.Dir(s.dir)} {
		if err := durable.SyncDir(dir); err != nil {
			return s.diskFault(err)
		}
	}
	return nil
}

func (s *Store) tmpDir() string { return filepath.Join(s.dir, "tmp") }

func (s *Store) shardDir(i int) string {
	return filepath.Join(s.dir, "blobs", hex.EncodeToString([]byte{byte(i)})) //nolint:gosec // i is below 256
}

const blobsBelow = string(filepath.Separator) + "blobs" + string(filepath.Separator)

func (s *Store) path(d fleet.Digest) string {
	return s.dir + blobsBelow + string(d[:2]) + string(filepath.Separator) + string(d)
}

// shardIndex is the number of a checked digest's shard.
func shardIndex(d fleet.Digest) int {
	return hexDigit(d[0])<<4 | hexDigit(d[1])
}

func hexDigit(c byte) int {
	if c >= 'a' {
		return int(c-'a') + 10
	}
	return int(c - '0')
}

func (s *Store) shardOf(d fleet.Digest) *shard { return &s.shards[shardIndex(d)] }

// diskFault says what an operator can do about an error of the file system.
func (s *Store) diskFault(err error) error {
	if _, ours := errors.AsType[*fault.Error](err); ours || err == nil {
		return err
	}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return fault.Wrap(fault.Unavailable, err, "the disk of the blob store %s is full: free space, nothing was stored", s.dir)
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return fault.Wrap(fault.Unavailable, err, "the blob store %s cannot be written to: check its owner and how it is mounted", s.dir)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fault.Wrap(fault.Unavailable, err, "too many files are open")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	default:
		return fmt.Errorf("blob store %s: %w", s.dir, err)
	}
}

// identify tells which state of a file info describes.
func identify(info fs.FileInfo) identity {
	return identity{inode: inode(info), size: info.Size(), mtime: info.ModTime().UnixNano()}
}

func (sh *shard) isKnown(d fleet.Digest, id identity) bool {
	sh.knownMu.Lock()
	defer sh.knownMu.Unlock()
	known, ok := sh.known[d]
	return ok && known == id
}

func (sh *shard) know(d fleet.Digest, id identity) {
	sh.knownMu.Lock()
	defer sh.knownMu.Unlock()
	if len(sh.known) >= maxKnown {
		for any := range sh.known { // whichever comes first: it is only read once more
			delete(sh.known, any)
			break
		}
	}
	sh.known[d] = id
}

func (sh *shard) forget(d fleet.Digest) {
	sh.knownMu.Lock()
	defer sh.knownMu.Unlock()
	delete(sh.known, d)
}

// renew makes a stored blob young; false when it is not stored. The caller
// holds the shard's lock.
func (s *Store) renew(d fleet.Digest) (bool, error) {
	name := s.path(d)
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, s.diskFault(err)
	}
	return true, s.setAge(d, name, info)
}

// setAge sets a blob's modification time to now. What was verified stays so.
func (s *Store) setAge(d fleet.Digest, name string, info fs.FileInfo) error {
	sh := s.shardOf(d)
	id := identify(info)
	known := sh.isKnown(d, id)
	now := time.Now()
	if err := os.Chtimes(name, time.Time{}, now); err != nil {
		return s.diskFault(err)
	}
	if known {
		id.mtime = now.UnixNano()
		sh.know(d, id)
	}
	return nil
}

// Missing implements cas.Store.
func (s *Store) Missing(ctx context.Context, ds []fleet.Digest) ([]fleet.Digest, error) {
	var missing []fleet.Digest
	for _, d := range ds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if _, err := fleet.ParseDigest(string(d)); err != nil {
			return nil, err
		}
		there, err := s.touch(d)
		if err != nil {
			return nil, err
		}
		if !there {
			missing = append(missing, d)
		}
	}
	return missing, nil
}

func (s *Store) touch(d fleet.Digest) (bool, error) {
	sh := s.shardOf(d)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return s.renew(d)
}

// Sweep implements cas.Store. keep is called without any lock of a blob held. Unavailable
// while a Reader is open.
func (s *Store) Sweep(ctx context.Context, keep func(fleet.Digest) bool, before time.Time) (removed int, size int64, err error) {
	done, err := s.sweeping()
	if err != nil {
		return 0, 0, err
	}
	defer done()
	for i := range s.shards {
		entries, err := os.ReadDir(s.shardDir(i))
		if err != nil {
			return removed, size, s.diskFault(err)
		}
		for _, entry := range entries {
			if err := ctx.Err(); err != nil {
				return removed, size, err
			}
			d, err := fleet.ParseDigest(entry.Name())
			if err != nil || keep(d) {
				continue // what is not a blob is not ours to remove
			}
			n, gone, err := s.removeOlder(d, before)
			if err != nil {
				return removed, size, err
			}
			if gone {
				removed, size = removed+1, size+n
			}
		}
	}
	return removed, size, ctx.Err()
}

func (s *Store) removeOlder(d fleet.Digest, before time.Time) (size int64, removed bool, err error) {
	sh := s.shardOf(d)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	name := s.path(d)
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.ModTime().Before(before) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, s.diskFault(err)
	}
	if err := os.Remove(name); err != nil {
		return 0, false, s.diskFault(err)
	}
	sh.forget(d)
	return info.Size(), true, nil
}
