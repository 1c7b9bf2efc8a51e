// Package cas is content by digest: the port that every blob store implements.
//
// A blob is bytes under their SHA-256. It never changes; it is there whole or
// not at all.
//
// Errors: NotFound for a digest that is not stored; Invalid for content that
// does not have the digest it was announced with; Unavailable for a full or
// read-only disk; Internal for the rest, among it content that no longer has
// its digest (ErrCorrupt).
package cas

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// ErrCorrupt is wrapped by the error of a read that found other bytes than the
// digest promises. The blob is set aside: the next Missing names it, and a Put
// of the right content heals it.
var ErrCorrupt = errors.New("stored content does not have its digest")

// Blob is an open blob. Size is in bytes. Read and Seek follow io.ReadSeeker;
// a whole sequential read is verified and its last Read returns ErrCorrupt
// instead of io.EOF when the bytes are not what they should be.
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

// Linker is a Store whose blobs can also stand as files in a directory without
// being copied. Link makes path (which must not exist) hold the blob's bytes
// with the given executable bit; it may be a hard link, so nobody may write to it.
type Linker interface {
	Link(ctx context.Context, d fleet.Digest, path string, executable bool) error
}

// Bytes reads a whole blob of at most limit bytes.
func Bytes(ctx context.Context, s Store, d fleet.Digest, limit int64) ([]byte, error) {
	blob, err := s.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	defer func() { _ = blob.Close() }()
	if blob.Size() > limit {
		return nil, errors.New("blob " + string(d) + " is larger than its reader allows")
	}
	buf := make([]byte, 0, blob.Size()+1)
	for {
		n, err := blob.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
	}
}
