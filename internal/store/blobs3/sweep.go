package blobs3

import (
	"context"
	"errors"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

const (
	// leaveWithin is how long a sweep has to remove what it gave up.
	leaveWithin = 2 * time.Minute
	// sweepBlobs is how many objects are removed together.
	sweepBlobs = 250
)

// Sweep implements cas.Store. Unavailable while somebody reads beside.
func (s *Store) Sweep(ctx context.Context, keep func(fleet.Digest) bool, before time.Time) (removed int, size int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	if err := s.pairAgain(ctx); err != nil {
		return 0, 0, err
	}
	marked, err := s.marksTime(ctx, before)
	if err != nil {
		return 0, 0, err
	}
	stored, err := s.storeTime(ctx, before)
	if err != nil {
		return 0, 0, err
	}
	w := sweeping{store: s, before: marked}
	for object, err := range s.bucket.list(ctx, blobsBelow) {
		if err != nil {
			return w.removed, w.bytes, err
		}
		d, is := digestOf(object.name)
		if !is || keep(d) {
			continue // what is not a blob is not ours to remove
		}
		old := object.at.Add(time.Second).Before(stored) // the store's times are cut to a second
		if err := w.consider(ctx, candidate{d, object.size}, old); err != nil {
			return w.removed, w.bytes, err
		}
	}
	return w.removed, w.bytes, errors.Join(w.flush(ctx), ctx.Err())
}

// marksTime is a time of this machine by the clock of the marks. Clocks that differ by less than can be seen are one.
func (s *Store) marksTime(ctx context.Context, at time.Time) (time.Time, error) {
	first := time.Now()
	now, err := s.parts.Marks.Now(ctx)
	if err != nil {
		return time.Time{}, err
	}
	last := time.Now()
	switch {
	case now.Before(first.Truncate(time.Microsecond)): // marks know no more than microseconds
		return at.Add(now.Sub(last)), nil
	case now.After(last):
		return at.Add(now.Sub(last)), nil
	}
	return at, nil
}

// storeTime is the same by the store's clock. Unavailable while somebody reads beside.
func (s *Store) storeTime(ctx context.Context, at time.Time) (time.Time, error) {
	now, err := s.bucket.now(ctx)
	if err != nil {
		return time.Time{}, err
	}
	at = at.Add(time.Until(now))
	for object, err := range s.bucket.list(ctx, readersBelow) {
		if err != nil {
			return time.Time{}, err
		}
		if now.Sub(object.at) < readerLasts {
			return time.Time{}, fault.New(fault.Unavailable, "somebody copies or backs up the store %s: nothing is removed until that has ended", s.bucket.config.Place)
		}
		if err := s.bucket.remove(ctx, object.name); err != nil { // of one that died
			return time.Time{}, err
		}
	}
	return at, nil
}

// sweeping is what a sweep has found.
type sweeping struct {
	store      *Store
	before     time.Time
	old, young []candidate // by the store's clock; young ones go only with an old mark
	removed    int
	bytes      int64
}

type candidate struct {
	digest fleet.Digest
	size   int64
}

func (w *sweeping) consider(ctx context.Context, c candidate, old bool) error {
	if old {
		w.old = append(w.old, c)
	} else {
		w.young = append(w.young, c)
	}
	if len(w.old)+len(w.young) < sweepBlobs {
		return nil
	}
	return w.flush(ctx)
}

func (w *sweeping) flush(ctx context.Context) error {
	err := errors.Join(w.remove(ctx, w.old, true), w.remove(ctx, w.young, false))
	w.old, w.young = w.old[:0], w.young[:0]
	return err
}

// remove gives content up, removes it, and forgets it, in this order. What cannot be removed stays given up for a while.
func (w *sweeping) remove(ctx context.Context, all []candidate, strangers bool) error {
	if len(all) == 0 {
		return nil
	}
	sizes, ds := map[fleet.Digest]int64{}, make([]fleet.Digest, 0, len(all))
	for _, c := range all {
		sizes[c.digest], ds = c.size, append(ds, c.digest)
	}
	until := time.Now().Add(leaveWithin / 4)
	left, err := w.store.parts.Marks.Leave(ctx, ds, w.before, leaveWithin, strangers)
	if err != nil || len(left.Digests) == 0 {
		return err
	}
	names := make([]string, 0, len(left.Digests))
	for _, d := range left.Digests {
		names = append(names, key(d))
		w.store.parts.Cache.Remove(d)
	}
	inTime, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	if err := w.store.bucket.remove(inTime, names...); err != nil {
		return err
	}
	for _, d := range left.Digests {
		w.removed, w.bytes = w.removed+1, w.bytes+sizes[d]
	}
	return w.store.parts.Marks.Gone(ctx, left)
}
