// Package castest holds what every cas.Store is held to, and a store in memory
// that passes it.
//
// The fake is for tests of packages that need blobs: it keeps everything in a
// map, may be used concurrently, and its only errors are those of the port.
package castest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Store is a cas.Store and cas.Linker in memory.
type Store struct {
	mu    sync.Mutex
	blobs map[fleet.Digest]entry
}

type entry struct {
	content []byte
	renewed time.Time
}

var (
	_ cas.Store  = (*Store)(nil)
	_ cas.Linker = (*Store)(nil)
)

// New returns an empty store.
func New() *Store { return &Store{blobs: map[fleet.Digest]entry{}} }

// Put implements cas.Store.
func (s *Store) Put(ctx context.Context, r io.Reader) (fleet.Digest, int64, error) {
	content, err := readAll(ctx, r)
	if err != nil {
		return "", 0, err
	}
	d := fleet.DigestOf(content)
	s.keep(d, content)
	return d, int64(len(content)), nil
}

// PutAs implements cas.Store.
func (s *Store) PutAs(ctx context.Context, want fleet.Digest, r io.Reader) error {
	content, err := readAll(ctx, r)
	if err != nil {
		return err
	}
	if got := fleet.DigestOf(content); got != want {
		return fault.New(fault.Invalid, "the content has the digest %s, it was announced as %s", got, want)
	}
	s.keep(want, content)
	return nil
}

func (s *Store) keep(d fleet.Digest, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blobs[d] = entry{content: content, renewed: time.Now()}
}

// readAll reads like a store on a disk does: it looks at the context now and then.
func readAll(ctx context.Context, r io.Reader) ([]byte, error) {
	var all bytes.Buffer
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if _, err := io.CopyN(&all, r, 64<<10); errors.Is(err, io.EOF) {
			return all.Bytes(), nil
		} else if err != nil {
			return nil, err
		}
	}
}

// Open implements cas.Store.
func (s *Store) Open(_ context.Context, d fleet.Digest) (cas.Blob, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.blobs[d]
	if !ok {
		return nil, fault.New(fault.NotFound, "blob %s is not stored", d.Short())
	}
	return blob{bytes.NewReader(e.content)}, nil
}

type blob struct{ *bytes.Reader }

func (blob) Close() error { return nil }

// Missing implements cas.Store.
func (s *Store) Missing(_ context.Context, ds []fleet.Digest) ([]fleet.Digest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var missing []fleet.Digest
	for _, d := range ds {
		e, ok := s.blobs[d]
		if !ok {
			missing = append(missing, d)
			continue
		}
		e.renewed = time.Now()
		s.blobs[d] = e
	}
	return missing, nil
}

// Sweep implements cas.Store.
func (s *Store) Sweep(ctx context.Context, keep func(fleet.Digest) bool, before time.Time) (int, int64, error) {
	var removed int
	var size int64
	for _, d := range s.digests() {
		if err := ctx.Err(); err != nil {
			return removed, size, err
		}
		if keep(d) {
			continue
		}
		if n, ok := s.removeOlder(d, before); ok {
			removed, size = removed+1, size+n
		}
	}
	return removed, size, nil
}

func (s *Store) digests() []fleet.Digest {
	s.mu.Lock()
	defer s.mu.Unlock()
	ds := make([]fleet.Digest, 0, len(s.blobs))
	for d := range s.blobs {
		ds = append(ds, d)
	}
	return ds
}

func (s *Store) removeOlder(d fleet.Digest, before time.Time) (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.blobs[d]
	if !ok || !e.renewed.Before(before) {
		return 0, false
	}
	delete(s.blobs, d)
	return int64(len(e.content)), true
}

// Link implements cas.Linker.
func (s *Store) Link(_ context.Context, d fleet.Digest, path string, executable bool) error {
	s.mu.Lock()
	e, ok := s.blobs[d]
	s.mu.Unlock()
	if !ok {
		return fault.New(fault.NotFound, "blob %s is not stored", d.Short())
	}
	mode := os.FileMode(0o444)
	if executable {
		mode = 0o555
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if _, err := f.Write(e.content); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
