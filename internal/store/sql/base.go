package sql

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// base is what every part of the records stands on: the connections, the one writer and the dialect.
type base struct {
	log      *slog.Logger
	dialect  dialect
	pool     *sql.DB // PostgreSQL; SQLite: readers
	reads    querier // on pool
	write1   *sql.DB // SQLite: the writer's connection
	writer   *writer // SQLite
	file     *sqliteFile
	claimed  *sql.Conn // PostgreSQL: whose session holds the claim
	claim    Claim
	wires    wires // PostgreSQL
	packer   *compressor
	guard    guard
	onChange func() // see OnChange; nil: nobody listens
}

// write runs a in a transaction and returns when it is on disk.
func (s *base) write(ctx context.Context, a act) error {
	if admit := s.guard.admit.Load(); admit != nil {
		if err := (*admit)(); err != nil {
			return err
		}
	}
	err := s.commit(ctx, s.fenced(ctx, a))
	s.guard.note(err)
	return err
}

func (s *base) commit(ctx context.Context, a act) error {
	if s.writer != nil {
		return s.writer.do(ctx, a)
	}
	for range 8 {
		err := s.transact(ctx, a)
		if !lost(err) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return fault.Later(time.Second, "the database is busy with the same rows")
}

func (s *base) transact(ctx context.Context, a act) error {
	tx, err := s.pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := a(ctx, plain{tx}); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

// snapshot runs read on one state of the records.
func (s *base) snapshot(ctx context.Context, read act) error {
	tx, err := s.pool.BeginTx(ctx, s.dialect.snapshot)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // it only read
	return read(ctx, plain{tx})
}

// snapshotOften is snapshot for what every check-in asks: statements stay prepared on
// SQLite, where preparing one costs more than running it. Only fixed texts may be
// asked: they are kept.
func (s *base) snapshotOften(ctx context.Context, read act) error {
	kept, ok := s.reads.(*prepared)
	if !ok {
		return s.snapshot(ctx, read)
	}
	tx, err := s.pool.BeginTx(ctx, s.dialect.snapshot)
	if err != nil {
		return err
	}
	q := &preparedWithin{plain: plain{tx}, tx: tx, kept: kept}
	err = read(ctx, q)
	_ = tx.Rollback() // it only read
	kept.learn(ctx, q.missed)
	return err
}

// again repeats a write that was prepared with rows that changed meanwhile.
func again(ctx context.Context, try func() error) error {
	for range 100 {
		err := try()
		if !errors.Is(err, errStale) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return fault.Later(time.Second, "too many write the same row at once")
}

// now is the time by the clock that all servers share: PostgreSQL's. SQLite has one server, and its clock.
func (s *base) now(ctx context.Context, q querier) (int64, error) {
	if !s.dialect.postgres {
		return micros(time.Now()), nil
	}
	return one[int64](q.row(ctx, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"))
}
