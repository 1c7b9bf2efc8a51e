package sql

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// guard refuses writes and remembers how they went.
type guard struct {
	admit   atomic.Pointer[func() error]
	trouble atomic.Pointer[trouble]
}

// trouble is why the last write failed.
type trouble struct {
	at     time.Time
	detail string
}

// Guard has admit asked before each write from now on: what it returns is the write's error.
func (s *Store) Guard(admit func() error) { s.guard.admit.Store(&admit) }

// Trouble says since when writes fail because of the disk or the database, and why. The zero time: they do not.
func (s *Store) Trouble() (since time.Time, detail string) {
	if t := s.guard.trouble.Load(); t != nil {
		return t.at, t.detail
	}
	return time.Time{}, ""
}

// TryWrite writes what is there already, to see whether that can be done.
func (s *Store) TryWrite(ctx context.Context) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, "UPDATE counters SET value = value")
		return err
	})
	return explain(err, "try a write")
}

// Reach asks the database whether it is there.
func (s *Store) Reach(ctx context.Context) error {
	_, err := one[int64](s.reads.row(ctx, "SELECT 1"))
	return explain(err, "ask the database")
}

// note remembers how a write went. What its caller got wrong says nothing about the disk.
func (g *guard) note(err error) {
	if err == nil {
		if g.trouble.Load() != nil {
			g.trouble.Store(nil)
		}
		return
	}
	known := sqliteFault(err)
	if known == nil {
		known = postgresFault(err)
	}
	if f, ok := errors.AsType[*fault.Error](known); ok && f.Kind == fault.Unavailable && f.RetryAfter == comeBack && !busy(err) {
		g.trouble.CompareAndSwap(nil, &trouble{at: time.Now(), detail: f.Detail})
	}
}
