package blobs3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Open implements cas.Store. What it returns is a file of the cache; without room there it comes from the store.
func (s *Store) Open(ctx context.Context, d fleet.Digest) (cas.Blob, error) {
	var blob cas.Blob
	err := s.cached(ctx, d, func() (err error) {
		blob, err = s.parts.Cache.Open(ctx, d)
		return err
	})
	if errors.Is(err, errNoRoom) {
		return s.direct(ctx, d)
	}
	return blob, err
}

// Fill implements cas.Filler. Who gives no room asks for the size alone: nothing is fetched for that.
func (s *Store) Fill(ctx context.Context, d fleet.Digest, buf []byte) (size int64, err error) {
	if _, err := fleet.ParseDigest(string(d)); err != nil {
		return 0, err
	}
	if len(buf) == 0 {
		if size, err = s.parts.Cache.Fill(ctx, d, nil); err == nil {
			return size, nil
		}
		size, _, err = s.bucket.stat(ctx, key(d))
		return size, s.unknown(ctx, d, err)
	}
	err = s.cached(ctx, d, func() (err error) {
		size, err = s.parts.Cache.Fill(ctx, d, buf)
		return err
	})
	if !errors.Is(err, errNoRoom) {
		return size, err
	}
	blob, err := s.direct(ctx, d)
	if err != nil {
		return 0, err
	}
	defer func() { _ = blob.Close() }()
	if size = blob.Size(); size > int64(len(buf)) {
		return size, nil
	}
	_, err = io.ReadFull(blob, buf[:size])
	if err == nil {
		_, err = blob.Read(make([]byte, 1)) // tells whether all of it was right
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return size, err
}

// Link implements cas.Linker.
func (s *Store) Link(ctx context.Context, d fleet.Digest, path string, executable bool) error {
	err := s.cached(ctx, d, func() error { return s.parts.Cache.Link(ctx, d, path, executable) })
	if errors.Is(err, errNoRoom) {
		return fault.Wrap(fault.Unavailable, err, "there is no room for blob %s on this server's disk", d.Short())
	}
	return err
}

// errNoRoom is wrapped when the cache has no room for a blob that the store may have.
var errNoRoom = errors.New("no room in the cache")

// cached uses a blob of the cache, which fetches it if need be. It is tried again when the blob goes before it is used.
func (s *Store) cached(ctx context.Context, d fleet.Digest, use func() error) error {
	if _, err := fleet.ParseDigest(string(d)); err != nil {
		return err
	}
	for range attempts {
		err := use()
		switch {
		case errors.Is(err, cas.ErrCorrupt):
			s.parts.Log.WarnContext(ctx, "a cached blob did not have its digest, will be fetched again", "blob", d)
		case !fault.Is(err, fault.NotFound):
			return err
		}
		if err := s.fetch(ctx, d); err != nil {
			return err
		}
	}
	return fault.Wrap(fault.Unavailable, errNoRoom, "blob %s did not stay in the cache", d.Short())
}

// fetch brings a blob into the cache, once for however many ask for it.
func (s *Store) fetch(ctx context.Context, d fleet.Digest) error {
	result := s.fetching.DoChan(string(d), func() (any, error) {
		return nil, s.fetchNow(context.WithoutCancel(ctx), d) // the first caller may leave; the others still want it
	})
	select {
	case <-ctx.Done():
		return ctx.Err()
	case r := <-result:
		return r.Err
	}
}

func (s *Store) fetchNow(ctx context.Context, d fleet.Digest) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body, size, err := s.bucket.get(ctx, key(d), 0)
	if err != nil {
		return s.unknown(ctx, d, err)
	}
	defer func() { _ = body.Close() }()
	inTime, stop := long(ctx, size)
	defer stop()
	defer context.AfterFunc(inTime, cancel)()
	from := &reported{r: body}
	err = s.parts.Cache.Keep(ctx, d, size, from)
	switch {
	case from.err != nil:
		return s.broken(inTime, from.err)
	case fault.Is(err, fault.Invalid):
		return s.corrupt(ctx, d)
	case fault.Is(err, fault.Unavailable):
		s.parts.Log.DebugContext(ctx, "content is not cached", "blob", d, "err", err)
		return fault.Wrap(fault.Unavailable, errors.Join(errNoRoom, err), "%s", fault.Detail(err))
	}
	return err
}

// broken is the error of content that did not come to its end: the store is the reason, whoever noticed it.
func (s *Store) broken(ctx context.Context, err error) error {
	return s.bucket.later(errors.Join(err, ctx.Err()), "the S3 store %s stopped in the middle of a blob", s.bucket.config.Place)
}

// reported remembers the error of a reader.
type reported struct {
	r   io.Reader
	err error
}

func (r *reported) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// corrupt is the error of a blob whose object is another content. It is not stored any more; a Put heals it.
func (s *Store) corrupt(ctx context.Context, d fleet.Digest) error {
	err := s.forget(ctx, d, func(context.Context) bool { return true })
	return errors.Join(fault.Wrap(fault.Internal, cas.ErrCorrupt, "blob %s", d), err)
}

// unknown is the error of a blob that the store does not have. If its mark says otherwise, it is forgotten.
func (s *Store) unknown(ctx context.Context, d fleet.Digest, err error) error {
	if !fault.Is(err, fault.NotFound) {
		return err
	}
	if s.forgetting.TryLock() { // one at a time: who asks for what never was costs no more
		defer s.forgetting.Unlock()
		err := s.forget(ctx, d, func(ctx context.Context) bool {
			_, _, err := s.bucket.stat(ctx, key(d)) // somebody may have put it meanwhile
			return fault.Is(err, fault.NotFound)
		})
		if err != nil {
			s.parts.Log.WarnContext(ctx, "it is not known whether content is marked as stored that is not", "blob", d, "err", err)
		}
	}
	return fault.Wrap(fault.NotFound, err, "blob %s is not stored", d.Short())
}

// forget removes a mark, if it is wrong, and nobody renews it while that is looked at.
func (s *Store) forget(ctx context.Context, d fleet.Digest, wrong func(context.Context) bool) error {
	ctx, cancel := s.bucket.short(context.WithoutCancel(ctx))
	defer cancel()
	now, err := s.parts.Marks.Now(ctx)
	if err != nil || !wrong(ctx) {
		return err
	}
	left, err := s.parts.Marks.Leave(ctx, []fleet.Digest{d}, now, 0, false)
	if err != nil || len(left.Digests) == 0 {
		return err
	}
	return s.parts.Marks.Gone(ctx, left)
}

// direct opens a blob past the cache.
func (s *Store) direct(ctx context.Context, d fleet.Digest) (cas.Blob, error) {
	body, size, err := s.bucket.get(ctx, key(d), 0)
	if err != nil {
		return nil, s.unknown(ctx, d, err)
	}
	if size > memoryBytes {
		return &streamed{store: s, ctx: ctx, digest: d, size: size, body: body, hash: sha256.New()}, nil
	}
	defer func() { _ = body.Close() }()
	content, err := io.ReadAll(io.LimitReader(body, size+1))
	if err != nil {
		return nil, s.broken(ctx, err)
	}
	if fleet.DigestOf(content) != d {
		return nil, s.corrupt(ctx, d)
	}
	return inMemory{bytes.NewReader(content)}, nil
}

// memoryBytes is the largest blob that is held in memory when the cache has no room for it.
const memoryBytes = 8 << 20

type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

// streamed is a blob as the store sends it. It is compared with its digest when it is read from its beginning to its end.
type streamed struct {
	store  *Store
	ctx    context.Context //nolint:containedctx // of the request that it is opened for, as port and io.Reader want it
	digest fleet.Digest
	size   int64
	at     int64
	body   io.ReadCloser // from at on; nil: not open
	hash   hash.Hash     // of all before at; nil: not all of that was read
}

func (b *streamed) Size() int64 { return b.size }

func (b *streamed) Read(p []byte) (int, error) {
	if b.at >= b.size {
		return 0, b.end()
	}
	if b.body == nil {
		body, _, err := b.store.bucket.get(b.ctx, key(b.digest), b.at)
		if err != nil {
			return 0, err
		}
		b.body = body
	}
	n, err := b.body.Read(p[:min(int64(len(p)), b.size-b.at)])
	b.at += int64(n)
	if b.hash != nil {
		b.hash.Write(p[:n])
	}
	switch {
	case n > 0:
		return n, nil
	case errors.Is(err, io.EOF):
		return 0, io.ErrUnexpectedEOF
	case err != nil:
		return 0, b.store.broken(b.ctx, err)
	}
	return 0, nil
}

// end tells whether all that was read was right.
func (b *streamed) end() error {
	if b.hash != nil && hex.EncodeToString(b.hash.Sum(nil)) != string(b.digest) {
		return b.store.corrupt(b.ctx, b.digest)
	}
	return io.EOF
}

func (b *streamed) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += b.at
	case io.SeekEnd:
		offset += b.size
	}
	if offset < 0 {
		return 0, fault.New(fault.Invalid, "a place before the begin of blob %s", b.digest.Short())
	}
	if offset == b.at {
		return b.at, nil
	}
	if b.body != nil {
		_ = b.body.Close()
	}
	b.body, b.hash, b.at = nil, nil, offset
	if offset == 0 {
		b.hash = sha256.New()
	}
	return offset, nil
}

func (b *streamed) Close() error {
	if b.body == nil {
		return nil
	}
	return b.body.Close()
}
