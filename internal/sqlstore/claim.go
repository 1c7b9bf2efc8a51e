package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// claimTime is how long the connection of a server that was killed may still
// hold its claim: until the database notices.
const claimTime = 5 * time.Second

// Claim makes the caller the only server of these records until Close: the blobs
// and the CA's key that belong to them are in one data directory. Conflict when
// another server has the claim. A SQLite file is claimed when it is opened.
func (s *Store) Claim(ctx context.Context) error {
	if !s.dialect.postgres {
		return nil
	}
	conn, err := s.pool.Conn(ctx)
	if err != nil {
		return explain(err, "claim the database")
	}
	if err := claimOn(ctx, conn); err != nil {
		return explain(errors.Join(err, conn.Close()), "claim the database")
	}
	s.claimed = conn
	return nil
}

// claimOn takes a lock that the session of conn holds to its end.
func claimOn(ctx context.Context, conn *sql.Conn) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < claimTime; {
		var ours bool
		if err := conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock(hashtextextended('tutti server', 2))").Scan(&ours); err != nil || ours {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fault.New(fault.Conflict, "another server uses this database; stop it, or give this one a database of its own")
}
