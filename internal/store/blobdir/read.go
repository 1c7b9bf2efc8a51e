package blobdir

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// blob is a verified file. It is an *os.File so that the kernel can send it.
type blob struct {
	*os.File
	size int64
}

func (b *blob) Size() int64 { return b.size }

// Open implements cas.Store. The first Open of a blob reads it whole; what it
// returns can be sent by the kernel, for it is an *os.File by its methods.
func (s *Store) Open(ctx context.Context, d fleet.Digest) (cas.Blob, error) {
	if _, err := fleet.ParseDigest(string(d)); err != nil {
		return nil, err
	}
	for {
		f, info, err := s.open(d)
		if err != nil {
			return nil, err
		}
		right := s.shardOf(d).isKnown(d, identify(info))
		if !right {
			if right, err = s.verify(ctx, d, info); err != nil {
				_ = f.Close()
				return nil, err
			}
		}
		if right {
			return &blob{File: f, size: info.Size()}, nil
		}
		_ = f.Close() // it was replaced meanwhile: look at what is there now
	}
}

func (s *Store) open(d fleet.Digest) (*os.File, fs.FileInfo, error) {
	f, err := os.Open(s.path(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fault.New(fault.NotFound, "blob %s is not stored", d.Short())
	}
	if err != nil {
		return nil, nil, s.diskFault(err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, s.diskFault(errors.Join(err, f.Close()))
	}
	return f, info, nil
}

// verify reads a blob once, however many ask for it meanwhile. It tells whether
// the file that was read is the one that the caller has open.
func (s *Store) verify(ctx context.Context, d fleet.Digest, opened fs.FileInfo) (same bool, err error) {
	result := s.verifying.DoChan(string(d), func() (any, error) {
		// The first caller may leave; the others still want to know.
		return s.verifyNow(context.WithoutCancel(ctx), d)
	})
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case r := <-result:
		if r.Err != nil {
			return false, r.Err
		}
		return os.SameFile(r.Val.(fs.FileInfo), opened), nil
	}
}

func (s *Store) verifyNow(ctx context.Context, d fleet.Digest) (fs.FileInfo, error) {
	f, info, err := s.open(d)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := s.copy(ctx, h, f); err != nil {
		return nil, s.diskFault(err)
	}
	if fleet.Digest(hex.EncodeToString(h.Sum(nil))) != d {
		return nil, s.setAside(d, info)
	}
	s.shardOf(d).know(d, identify(info))
	return info, nil
}

// setAside takes a corrupt blob out of the store, unless it is another file by now. A cache has no use for it.
func (s *Store) setAside(d fleet.Digest, seen fs.FileInfo) error {
	sh := s.shardOf(d)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	corrupt := fault.Wrap(fault.Internal, cas.ErrCorrupt, "blob %s", d)
	info, err := os.Lstat(s.path(d))
	if err != nil || !os.SameFile(info, seen) {
		return corrupt
	}
	if s.loose {
		return errors.Join(corrupt, s.diskFault(os.Remove(s.path(d))))
	}
	if err := os.Rename(s.path(d), filepath.Join(s.dir, "corrupt", string(d))); err != nil {
		return errors.Join(corrupt, s.diskFault(err))
	}
	return corrupt
}

// Link implements cas.Linker: a hard link where file systems and the mode allow
// it, a copy elsewhere.
func (s *Store) Link(ctx context.Context, d fleet.Digest, path string, executable bool) error {
	b, err := s.Open(ctx, d)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	if !executable {
		err := os.Link(s.path(d), path)
		if err == nil || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
			return wrapLink(path, err)
		}
	}
	mode := os.FileMode(blobMode)
	if executable {
		mode = 0o555
	}
	return wrapLink(path, s.copyOut(ctx, b, path, mode))
}

func wrapLink(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("link a blob to %s: %w", path, err)
}

func (s *Store) copyOut(ctx context.Context, r io.Reader, path string, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = s.copy(ctx, f, r)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		_ = os.Remove(path)
	}
	return err
}
