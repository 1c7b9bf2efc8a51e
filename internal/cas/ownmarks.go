package cas

import (
	"context"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// OwnMarks are Marks in the memory of one process, for somebody who has a store to himself: who copies content, or
// restores it.
type OwnMarks struct {
	mu    sync.Mutex
	store string
	marks map[fleet.Digest]ownMark
}

type ownMark struct {
	stored           bool
	renewed, leaving time.Time // leaving zero: it stays
}

var _ Marks = (*OwnMarks)(nil)

// NewMarks are marks of no store.
func NewMarks() *OwnMarks { return &OwnMarks{marks: map[fleet.Digest]ownMark{}} }

// Paired implements Marks.
func (o *OwnMarks) Paired(context.Context) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.store, nil
}

// Unpair implements Marks.
func (o *OwnMarks) Unpair(context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.store = ""
	for d, m := range o.marks {
		if !m.leaving.After(time.Now()) {
			delete(o.marks, d)
		}
	}
	return nil
}

// Adopt implements Marks.
func (o *OwnMarks) Adopt(_ context.Context, found []Arrival) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range found {
		if _, there := o.marks[a.Digest]; !there {
			o.marks[a.Digest] = ownMark{stored: true, renewed: time.Now()}
		}
	}
	return nil
}

// Pair implements Marks.
func (o *OwnMarks) Pair(_ context.Context, store string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.store = store
	return nil
}

// Renew implements Marks.
func (o *OwnMarks) Renew(_ context.Context, ds []fleet.Digest, announce bool) ([]Mark, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now, marks := time.Now(), make([]Mark, len(ds))
	for i, d := range ds {
		m, there := o.marks[d]
		switch {
		case m.leaving.After(now):
			marks[i] = Leaving
			continue
		case !there && !announce:
			continue
		}
		if m.stored = m.stored && m.leaving.IsZero(); m.stored {
			marks[i] = Stored
		}
		o.marks[d] = ownMark{stored: m.stored, renewed: now}
	}
	return marks, nil
}

// Arrive implements Marks.
func (o *OwnMarks) Arrive(_ context.Context, arrived []Arrival) (lost []fleet.Digest, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range arrived {
		if m, there := o.marks[a.Digest]; !there || !m.leaving.IsZero() {
			lost = append(lost, a.Digest)
			continue
		}
		o.marks[a.Digest] = ownMark{stored: true, renewed: time.Now()}
	}
	return lost, nil
}

// Leave implements Marks.
func (o *OwnMarks) Leave(_ context.Context, ds []fleet.Digest, before time.Time, within time.Duration, strangers bool) (left Departure, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.store == "" {
		return left, fault.New(fault.Conflict, "it is being looked what is in the store of content: nothing is removed until that has ended")
	}
	now := time.Now()
	left.Until = now.Add(within)
	for _, d := range ds {
		m, there := o.marks[d]
		if !there && !strangers || there && (!m.renewed.Before(before) || m.leaving.After(now)) {
			continue
		}
		m.leaving = left.Until
		o.marks[d] = m
		left.Digests = append(left.Digests, d)
	}
	return left, nil
}

// Gone implements Marks.
func (o *OwnMarks) Gone(_ context.Context, left Departure) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, d := range left.Digests {
		if o.store != "" && o.marks[d].leaving.Equal(left.Until) {
			delete(o.marks, d)
		}
	}
	return nil
}

// Now implements Marks.
func (o *OwnMarks) Now(context.Context) (time.Time, error) { return time.Now(), nil }
