package blobdir

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/filelock"
)

// Reader reads blobs beside the process that uses the store. While it is open no Sweep
// removes any; new ones appear. It is used by one goroutine.
type Reader struct {
	store Store // only to name files
	held  *os.File
}

// sweepPoll is how often a reader looks whether a Sweep has ended.
const sweepPoll = 20 * time.Millisecond

// OpenBeside opens the store in dir to read only. It waits for a Sweep to end. The caller
// closes it.
func OpenBeside(ctx context.Context, dir string) (*Reader, error) {
	r := &Reader{store: Store{dir: filepath.Clean(dir)}}
	held, err := os.Open(filepath.Join(dir, "blobs"))
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, err, "the blob store %s cannot be read (%v): is it the data directory of a server?", dir, err)
	}
	tick := time.NewTicker(sweepPoll)
	defer tick.Stop()
	for {
		err := filelock.Shared(held)
		if err == nil {
			r.held = held
			return r, nil
		}
		if !errors.Is(err, filelock.ErrHeld) {
			return nil, errors.Join(r.store.diskFault(err), held.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), held.Close())
		case <-tick.C:
		}
	}
}

// Each calls fn with every blob that is there.
func (r *Reader) Each(ctx context.Context, fn func(d fleet.Digest, size int64) error) error {
	for i := range 256 {
		entries, err := os.ReadDir(r.store.shardDir(i))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return r.store.diskFault(err)
		}
		for _, entry := range entries {
			if err := ctx.Err(); err != nil {
				return err
			}
			d, err := fleet.ParseDigest(entry.Name())
			if err != nil {
				continue // what is not a blob is not ours
			}
			info, err := entry.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue // it was set aside
			}
			if err != nil {
				return r.store.diskFault(err)
			}
			if err := fn(d, info.Size()); err != nil {
				return err
			}
		}
	}
	return nil
}

// Open opens a blob, without looking whether it has its digest; NotFound.
func (r *Reader) Open(d fleet.Digest) (io.ReadCloser, error) {
	f, _, err := r.store.open(d)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Close lets sweeps go on.
func (r *Reader) Close() error { return filelock.Release(r.held) }

// sweeping holds off readers; Unavailable while there is one.
func (s *Store) sweeping() (done func(), err error) {
	held, err := os.Open(filepath.Join(s.dir, "blobs"))
	if err != nil {
		return nil, s.diskFault(err)
	}
	if err := filelock.Exclusive(held); err != nil {
		_ = held.Close()
		if errors.Is(err, filelock.ErrHeld) {
			return nil, fault.New(fault.Unavailable, "a backup reads the blob store %s: nothing is removed until it has ended", s.dir)
		}
		return nil, s.diskFault(err)
	}
	return func() { _ = filelock.Release(held) }, nil
}
