package blobs3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// keptBytes is the largest content that waits in memory for its digest; larger content waits in a file.
const keptBytes = 1 << 20

// Put implements cas.Store.
func (s *Store) Put(ctx context.Context, r io.Reader) (fleet.Digest, int64, error) {
	return s.put(ctx, r, "")
}

// PutAs implements cas.Store.
func (s *Store) PutAs(ctx context.Context, want fleet.Digest, r io.Reader) error {
	if _, err := fleet.ParseDigest(string(want)); err != nil {
		return err
	}
	_, _, err := s.put(ctx, r, want)
	return err
}

func (s *Store) put(ctx context.Context, r io.Reader, want fleet.Digest) (fleet.Digest, int64, error) {
	p, err := s.receive(ctx, r, want)
	if err != nil {
		return "", 0, err
	}
	defer p.close()
	return p.digest, p.size, s.send(ctx, []*pending{p})
}

// pending is content on its way to the store.
type pending struct {
	digest fleet.Digest
	size   int64
	memory []byte
	file   *os.File // nil: it is in memory
}

func (p *pending) open() io.ReadSeeker {
	if p.file == nil {
		return bytes.NewReader(p.memory)
	}
	return io.NewSectionReader(p.file, 0, p.size)
}

func (p *pending) close() {
	if p.file != nil {
		_ = p.file.Close() // it has no name any more
	}
}

// receive reads content and checks its digest.
func (s *Store) receive(ctx context.Context, r io.Reader, want fleet.Digest) (p *pending, err error) {
	h, p := sha256.New(), &pending{}
	r = io.TeeReader(attentive{ctx, r}, h)
	var head bytes.Buffer
	p.size, err = io.Copy(&head, io.LimitReader(r, keptBytes+1))
	if err != nil {
		return nil, err
	}
	if p.memory = head.Bytes(); p.size > keptBytes {
		if err := s.spool(p, r); err != nil {
			p.close()
			return nil, err
		}
	}
	p.digest = fleet.Digest(hex.EncodeToString(h.Sum(nil)))
	if want != "" && want != p.digest {
		p.close()
		return nil, fault.New(fault.Invalid, "the content has the digest %s, it was announced as %s", p.digest, want)
	}
	return p, nil
}

// spool writes what memory has, and the rest, to a file without a name.
func (s *Store) spool(p *pending, rest io.Reader) (err error) {
	if p.file, err = os.CreateTemp(s.parts.Spool, "put-"); err != nil {
		return s.diskFault(err)
	}
	if err := os.Remove(p.file.Name()); err != nil {
		return s.diskFault(err)
	}
	if _, err := p.file.Write(p.memory); err != nil {
		return s.diskFault(err)
	}
	n, err := io.Copy(p.file, rest)
	p.size, p.memory = p.size+n, nil
	return s.diskFault(err)
}

func (s *Store) diskFault(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.Wrap(fault.Unavailable, err, "the disk of %s is full, where content waits for the S3 store: free space, nothing was stored", s.parts.Spool)
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return fault.Wrap(fault.Unavailable, err, "%s cannot be written to, where content waits for the S3 store: check its owner and how it is mounted",
			s.parts.Spool)
	}
	return err
}

// attentive stops reading when its context is over.
type attentive struct {
	ctx context.Context //nolint:containedctx // it is the reader's, for one copy
	r   io.Reader
}

func (a attentive) Read(p []byte) (int, error) {
	if err := a.ctx.Err(); err != nil {
		return 0, err
	}
	return a.r.Read(p)
}

// attempts is how often content is put that is removed while it is put.
const attempts = 3

// send puts what the store does not have, at most cas.MaxMarks, and returns when it has all of it.
func (s *Store) send(ctx context.Context, all []*pending) error {
	left := map[fleet.Digest]*pending{}
	for _, p := range all {
		left[p.digest] = p
	}
	for range attempts {
		absent, err := s.announce(ctx, slices.Collect(maps.Keys(left)))
		if err != nil || len(absent) == 0 {
			return err
		}
		uploads, uploading := errgroup.WithContext(ctx)
		uploads.SetLimit(parallelPuts)
		arrived := make([]cas.Arrival, 0, len(absent))
		for _, d := range absent {
			p := left[d]
			arrived = append(arrived, cas.Arrival{Digest: d, Bytes: p.size})
			uploads.Go(func() error { return s.bucket.put(uploading, key(d), string(d), p.size, p.open()) })
		}
		if err := uploads.Wait(); err != nil {
			return err
		}
		lost, err := s.parts.Marks.Arrive(ctx, arrived)
		if err != nil {
			return err
		}
		s.keep(ctx, arrived, left)
		if len(lost) == 0 {
			return nil
		}
		again := map[fleet.Digest]*pending{}
		for _, d := range lost {
			again[d] = left[d]
		}
		left = again
	}
	return fault.Later(again, "content was removed from the S3 store while it was put there: try again, and give garbage_grace more time")
}

// parallelPuts is how many blobs one batch sends at the same time.
const parallelPuts = 8

// keep has the cache keep what was put: it is wanted next. Without room it is not.
func (s *Store) keep(ctx context.Context, arrived []cas.Arrival, of map[fleet.Digest]*pending) {
	for _, a := range arrived {
		if err := s.parts.Cache.Keep(ctx, a.Digest, a.Bytes, of[a.Digest].open()); err != nil {
			s.parts.Log.DebugContext(ctx, "content is not cached", "blob", a.Digest, "err", err)
		}
	}
}

// The bounds of what PutAll holds before it sends it.
const (
	batchBlobs = 256
	batchBytes = 64 << 20
)

// PutAll implements cas.Batcher. Each source is read when it comes: what it reads from may be a stream that goes on with the next.
func (s *Store) PutAll(ctx context.Context, sources iter.Seq[cas.Source]) error {
	var batch []*pending
	var size int64
	done := func() {
		for _, p := range batch {
			p.close()
		}
		batch, size = nil, 0
	}
	defer func() { done() }()
	for source := range sources {
		if _, err := fleet.ParseDigest(string(source.Digest)); err != nil {
			return err
		}
		p, err := s.receiveSource(ctx, source)
		if err != nil {
			return err
		}
		if batch, size = append(batch, p), size+p.size; len(batch) >= batchBlobs || size >= batchBytes {
			if err := s.send(ctx, batch); err != nil {
				return err
			}
			done()
		}
	}
	return s.send(ctx, batch)
}

func (s *Store) receiveSource(ctx context.Context, source cas.Source) (*pending, error) {
	r, err := source.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	return s.receive(ctx, r, source.Digest)
}
