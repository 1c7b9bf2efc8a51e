package blobs3

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/singleflight"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Cache keeps blobs on the local disk. Its blobs have been compared with their digests. Reading what is not there is NotFound;
// what was damaged gives ErrCorrupt once, and is not there from then on.
type Cache interface {
	cas.Filler
	cas.Linker
	Open(ctx context.Context, d fleet.Digest) (cas.Blob, error)
	// Keep keeps a blob of so many bytes: Invalid for other content, Unavailable when there is no room.
	Keep(ctx context.Context, d fleet.Digest, size int64, r io.Reader) error
	Remove(d fleet.Digest)
}

// Parts is what a Store stands on.
type Parts struct {
	Marks cas.Marks
	Cache Cache
	Spool string // a directory for what is on its way to the store; it is there
	Log   *slog.Logger
	Now   bool // a store that cannot be reached now is not opened
}

// Store is blobs in a bucket.
type Store struct {
	bucket     *bucket
	parts      Parts
	fetching   singleflight.Group
	forgetting sync.Mutex

	pairing sync.Mutex
	paired  bool
}

var (
	_ cas.Store   = (*Store)(nil)
	_ cas.Batcher = (*Store)(nil)
	_ cas.Linker  = (*Store)(nil)
	_ cas.Filler  = (*Store)(nil)
)

// Open opens a store. It asks it, but one that cannot be reached now is opened, too: what is cached is served.
func Open(ctx context.Context, c Config, parts Parts) (*Store, error) {
	b, err := openBucket(c)
	if err != nil {
		return nil, err
	}
	s := &Store{bucket: b, parts: parts}
	if err := s.pair(ctx); err != nil {
		if fault.Of(err) != fault.Unavailable || parts.Now {
			return nil, err
		}
		parts.Log.WarnContext(ctx, "the store of content cannot be used now, will retry", "err", err)
	}
	return s, nil
}

// Uncached is a Cache that keeps nothing.
type Uncached struct{}

var _ Cache = Uncached{}

func uncached(d fleet.Digest) error {
	return fault.New(fault.NotFound, "blob %s is not cached", d.Short())
}

// Open implements Cache.
func (Uncached) Open(_ context.Context, d fleet.Digest) (cas.Blob, error) { return nil, uncached(d) }

// Fill implements Cache.
func (Uncached) Fill(_ context.Context, d fleet.Digest, _ []byte) (int64, error) {
	return 0, uncached(d)
}

// Link implements Cache.
func (Uncached) Link(_ context.Context, d fleet.Digest, _ string, _ bool) error { return uncached(d) }

// Keep implements Cache.
func (Uncached) Keep(context.Context, fleet.Digest, int64, io.Reader) error {
	return fault.New(fault.Unavailable, "nothing is cached")
}

// Remove implements Cache.
func (Uncached) Remove(fleet.Digest) {}

// Problem is why the store cannot be reached; nil: it can, as far as is known.
func (s *Store) Problem() error { return s.bucket.outage.problem() }

const (
	nameObject = "tutti-store"
	blobsBelow = "blobs/"
)

func key(d fleet.Digest) string { return blobsBelow + string(d[:2]) + "/" + string(d) }

// digestOf is the digest of an object below blobsBelow; false for what is none.
func digestOf(name string) (fleet.Digest, bool) {
	if len(name) < len(blobsBelow)+3 {
		return "", false
	}
	d, err := fleet.ParseDigest(name[len(blobsBelow)+3:])
	return d, err == nil && key(d) == name
}

// pair makes sure, once, that the marks are of this store.
func (s *Store) pair(ctx context.Context) error {
	s.pairing.Lock()
	defer s.pairing.Unlock()
	if s.paired {
		return nil
	}
	return s.pairNow(ctx)
}

// pairAgain does it however often it was done.
func (s *Store) pairAgain(ctx context.Context) error {
	s.pairing.Lock()
	defer s.pairing.Unlock()
	return s.pairNow(ctx)
}

func (s *Store) pairNow(ctx context.Context) error {
	name, err := s.name(ctx)
	if err != nil {
		return err
	}
	known, err := s.parts.Marks.Paired(ctx)
	if err != nil {
		return err
	}
	if known != name {
		if err := s.adopt(ctx, name); err != nil {
			return err
		}
	}
	s.paired = true
	return nil
}

// name reads the store's name, or gives it one.
func (s *Store) name(ctx context.Context) (string, error) {
	text, err := s.bucket.read(ctx, nameObject, 100)
	if fault.Is(err, fault.NotFound) {
		return uuid.NewString(), nil
	}
	return string(text), err
}

// Rename gives the store another name: what records know of it counts no more, and servers look what it has when they start, and
// before they remove anything.
func (s *Store) Rename(ctx context.Context) error {
	name := uuid.NewString()
	return s.bucket.put(ctx, nameObject, "", int64(len(name)), strings.NewReader(name))
}

// adopt marks what is in the bucket. The store has its name, and the records have it, only when that is done.
func (s *Store) adopt(ctx context.Context, name string) error {
	if err := s.parts.Marks.Unpair(ctx); err != nil {
		return err
	}
	found, count := make([]cas.Arrival, 0, cas.MaxMarks), 0
	for object, err := range s.bucket.list(ctx, blobsBelow) {
		if err != nil {
			return err
		}
		d, is := digestOf(object.name)
		if !is {
			continue
		}
		if found, count = append(found, cas.Arrival{Digest: d, Bytes: object.size}), count+1; len(found) == cap(found) {
			if err := s.parts.Marks.Adopt(ctx, found); err != nil {
				return err
			}
			found = found[:0]
		}
	}
	if err := s.parts.Marks.Adopt(ctx, found); err != nil {
		return err
	}
	if err := s.bucket.put(ctx, nameObject, "", int64(len(name)), strings.NewReader(name)); err != nil {
		return err
	}
	if err := s.parts.Marks.Pair(ctx, name); err != nil {
		return err
	}
	s.parts.Log.InfoContext(ctx, "the records know this store of content now", "store", s.bucket.config.Place, "blobs", count)
	return nil
}

// Missing implements cas.Store.
func (s *Store) Missing(ctx context.Context, ds []fleet.Digest) ([]fleet.Digest, error) {
	for _, d := range ds {
		if _, err := fleet.ParseDigest(string(d)); err != nil {
			return nil, err
		}
	}
	if err := s.pair(ctx); err != nil {
		return nil, err
	}
	var missing []fleet.Digest
	for chunk := range slices.Chunk(ds, cas.MaxMarks) {
		marks, err := s.parts.Marks.Renew(ctx, chunk, false)
		if err != nil {
			return nil, err
		}
		for i, mark := range marks {
			if mark != cas.Stored {
				missing = append(missing, chunk[i])
			}
		}
	}
	return missing, nil
}

// leavePoll is how often is asked whether content that is being removed is gone.
const leavePoll = 20 * time.Millisecond

// announce says which of ds, at most cas.MaxMarks, must be put. It waits until those that are being removed are gone.
func (s *Store) announce(ctx context.Context, ds []fleet.Digest) ([]fleet.Digest, error) {
	if err := s.pair(ctx); err != nil {
		return nil, err
	}
	tick := time.NewTicker(leavePoll)
	defer tick.Stop()
	var absent []fleet.Digest
	for len(ds) > 0 {
		marks, err := s.parts.Marks.Renew(ctx, ds, true)
		if err != nil {
			return nil, err
		}
		var leaving []fleet.Digest
		for i, mark := range marks {
			switch mark {
			case cas.Absent:
				absent = append(absent, ds[i])
			case cas.Leaving:
				leaving = append(leaving, ds[i])
			case cas.Stored:
			}
		}
		if ds = leaving; len(ds) == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
	return absent, nil
}
