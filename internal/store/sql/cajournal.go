package sql

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/pki"
)

// HoldCA implements pki.Store. A SQLite file has one process. In PostgreSQL the holder's transaction has an end of its own when nothing is heard of the
// holder, who does not write in it.
func (s *Authority) HoldCA(ctx context.Context) (release func(), err error) {
	if !s.dialect.postgres {
		select {
		case s.held <- struct{}{}:
			return func() { <-s.held }, nil
		case <-ctx.Done():
			return nil, explain(ctx.Err(), "hold the CA")
		}
	}
	tx, err := s.pool.BeginTx(context.WithoutCancel(ctx), nil) // who asked may go away while the change goes on
	if err != nil {
		return nil, explain(err, "hold the CA")
	}
	q := plain{tx}
	if _, err = q.exec(ctx, "SELECT set_config('lock_timeout', '15s', true), set_config('idle_in_transaction_session_timeout', '10s', true)"); err == nil {
		_, err = q.exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('tutti ca', 2))")
	}
	if err != nil {
		_ = tx.Rollback()
		if waited(err) {
			err = fault.Later(time.Second, "the CA is busy: another server has been changing its records for 15 seconds")
		}
		return nil, explain(err, "hold the CA")
	}
	return func() { _ = tx.Rollback() }, nil // it wrote nothing
}

// linesAtOnce is how many lines of the journal are read at a time: most are one certificate each.
const linesAtOnce = 500

// JournalLines implements pki.Store.
func (s *Authority) JournalLines(ctx context.Context, from int64) ([]pki.JournalLine, error) {
	lines, err := collect(ctx, s.reads, func(row scanner) (l pki.JournalLine, err error) {
		err = row.Scan(&l.Seq, &l.Text)
		return l, err
	}, "SELECT seq, line FROM ca_journal WHERE seq >= $1 ORDER BY seq LIMIT $2", from, linesAtOnce)
	return lines, explain(err, "read the CA's journal")
}

// KeepJournal implements pki.Store.
func (s *Authority) KeepJournal(ctx context.Context, at pki.Anchor, lines []pki.JournalLine) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		have, err := readAnchor(ctx, q, s.dialect.forUpdate)
		if err != nil {
			return err
		}
		if have != at {
			return fault.New(fault.Conflict, "the database stands at change %d of CA %s, not at change %d of CA %s", have.Seq, have.Identity, at.Seq, at.Identity)
		}
		if _, err := q.exec(ctx, "DELETE FROM ca_journal"); err != nil {
			return err
		}
		for _, line := range lines {
			if err := keepLine(ctx, q, line); err != nil {
				return err
			}
		}
		return nil
	})
	return explain(err, "keep the CA's journal")
}

func keepLine(ctx context.Context, q querier, line pki.JournalLine) error {
	_, err := q.exec(ctx, "INSERT INTO ca_journal (seq, line) VALUES ($1, $2)", line.Seq, line.Text)
	return err
}
