// Package cas stores content under its digest. It is the port that every blob store implements.
//
// A blob is bytes under their SHA-256. It never changes; it is there whole or
// not at all.
//
// Errors: NotFound for a digest that is not stored; Invalid for content that does not have its announced
// digest; Unavailable for a full or read-only disk; Internal for all other errors, for example content that no
// longer has its digest (ErrCorrupt).
package cas

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// ErrCorrupt is wrapped by the error of a read that found other bytes than the
// digest promises. The blob is set aside: the next Missing names it, and a Put
// of the right content heals it.
var ErrCorrupt = errors.New("stored content does not have its digest")

// Blob is an open blob. Size is in bytes. Read and Seek follow io.ReadSeeker.
// A whole sequential read never passes wrong bytes for right ones: either Open
// has refused them already, or the last Read returns ErrCorrupt instead of
// io.EOF. A Blob belongs to one goroutine; it stays readable when a Sweep
// removes it meanwhile.
type Blob interface {
	io.ReadSeekCloser
	Size() int64
}

// Store keeps blobs. Every method may be called concurrently; the store never
// keeps a slice or reader that it was given.
type Store interface {
	// Put stores what r gives until io.EOF and returns its digest and size in
	// bytes. When it returns without error the blob survives a crash. Storing
	// what is there already is cheap and also renews its age for Sweep.
	Put(ctx context.Context, r io.Reader) (fleet.Digest, int64, error)

	// PutAs is Put for content whose digest is known; Invalid when it differs.
	PutAs(ctx context.Context, want fleet.Digest, r io.Reader) error

	// Open opens a blob; the caller closes it.
	Open(ctx context.Context, d fleet.Digest) (Blob, error)

	// Missing returns those of ds that are not stored, in their order. It renews
	// the age of those that are, so that a Sweep cannot take them from a caller
	// who is about to refer to them.
	Missing(ctx context.Context, ds []fleet.Digest) ([]fleet.Digest, error)

	// Sweep removes blobs that keep refuses and that nobody put or asked for
	// since before. It returns how many it removed and their bytes. Callers
	// collect what is referred to first, and pass a time before they began.
	Sweep(ctx context.Context, keep func(fleet.Digest) bool, before time.Time) (removed int, bytes int64, err error)
}

// Source is content on its way into a store: what it should be, and how to read
// it when its turn comes.
type Source struct {
	Digest fleet.Digest
	Open   func() (io.ReadCloser, error)
}

// Batcher is a Store that takes many blobs for the price of a few: they reach
// the disk together, not one by one.
type Batcher interface {
	// PutAll is PutAs for every source. When it returns without error all of
	// them survive a crash; with an error any of them may be stored or not.
	PutAll(ctx context.Context, sources iter.Seq[Source]) error
}

// PutAll stores many blobs, together where the store can.
func PutAll(ctx context.Context, s Store, sources iter.Seq[Source]) error {
	if batcher, ok := s.(Batcher); ok {
		return batcher.PutAll(ctx, sources)
	}
	for source := range sources {
		if err := putSource(ctx, s, source); err != nil {
			return err
		}
	}
	return nil
}

func putSource(ctx context.Context, s Store, source Source) error {
	r, err := source.Open()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	return s.PutAs(ctx, source.Digest, r)
}

// Linker is a Store whose blobs can also stand as files in a directory without
// being copied. Link makes path (which must not exist) hold the blob's bytes
// with the given executable bit; it may be a hard link, so nobody may write to it.
type Linker interface {
	Link(ctx context.Context, d fleet.Digest, path string, executable bool) error
}

// Filler is a Store that reads small blobs for less than what opening, reading
// and closing them costs.
type Filler interface {
	// Fill reads a whole blob into buf and returns its size in bytes. Of a blob
	// that is larger than buf it returns the size alone: Open that one.
	Fill(ctx context.Context, d fleet.Digest, buf []byte) (size int64, err error)
}

// Fill reads a whole blob into buf, if it fits, as Filler says.
func Fill(ctx context.Context, s Store, d fleet.Digest, buf []byte) (size int64, err error) {
	if filler, ok := s.(Filler); ok {
		return filler.Fill(ctx, d, buf)
	}
	blob, err := s.Open(ctx, d)
	if err != nil {
		return 0, err
	}
	defer func() { _ = blob.Close() }()
	if size = blob.Size(); size > int64(len(buf)) {
		return size, nil
	}
	return size, readWhole(blob, d, buf[:size])
}

// readWhole fills buf with the whole of a blob. The read after the last byte is
// the one that tells whether they were right.
func readWhole(blob Blob, d fleet.Digest, buf []byte) error {
	if _, err := io.ReadFull(blob, buf); err != nil {
		return err
	}
	switch n, err := blob.Read(make([]byte, 1)); {
	case n > 0:
		return fault.Wrap(fault.Internal, ErrCorrupt, "blob %s is longer than it says", d.Short())
	case err != nil && !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// Bytes reads a whole blob of at most limit bytes; Invalid when it is larger.
func Bytes(ctx context.Context, s Store, d fleet.Digest, limit int64) ([]byte, error) {
	blob, err := s.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	defer func() { _ = blob.Close() }()
	if blob.Size() > limit {
		return nil, fault.New(fault.Invalid, "blob %s has %d bytes, its reader allows %d", d.Short(), blob.Size(), limit)
	}
	buf := make([]byte, blob.Size())
	if err := readWhole(blob, d, buf); err != nil {
		return nil, err
	}
	return buf, nil
}
