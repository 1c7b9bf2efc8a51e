package sql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/store/lease"
)

// claimTime is how long the connection of a server that was killed may still
// hold its claim: until the database notices.
const claimTime = 5 * time.Second

// claimWatch is how often a server looks whether its claim still holds.
const claimWatch = 5 * time.Second

// Claim makes the caller the only server of these records until Close: the blobs
// and the CA's key that belong to them are in one data directory. Conflict when
// another server has the claim. A SQLite file is claimed when it is opened: whoever held its leases is dead.
func (s *Store) Claim(ctx context.Context) error {
	if !s.dialect.postgres {
		return s.Leases.Free(ctx)
	}
	conn, err := s.claimConn(ctx)
	s.claimed = conn
	if fault.Is(err, fault.Conflict) {
		err = s.taken(ctx)
	}
	return explain(err, "claim the database")
}

// taken says who has the claim, as far as that is known.
func (s *Store) taken(ctx context.Context) error {
	who := ""
	known, _ := s.Leases.Servers(ctx) // without it the refusal says less
	slices.SortFunc(known, func(a, b lease.Server) int { return cmp.Compare(a.Silent, b.Silent) })
	if len(known) > 0 && known[0].Silent < lease.Shared().TTL {
		who = fmt.Sprintf(" (%s at %s)", known[0].ID, known[0].Address)
	}
	return &fault.Error{
		Kind: fault.Conflict, Detail: "another server" + who + " uses this database; stop it, or give this one a database of its own", Hint: OneServer,
	}
}

// OneServer is what a second server on the same records is told.
const OneServer = "one server at a time uses the same records; docs/many-servers.md says what several may share so far"

// claimConn makes the claim with a connection of its own.
func (s *Store) claimConn(ctx context.Context) (*sql.Conn, error) {
	conn, err := s.pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if err := claimOn(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// HoldClaim watches the claim until ctx is done. A claim ends with its connection
// (a restarted database, a cut network); HoldClaim makes it anew, and returns
// Conflict when another server was quicker: the caller must stop. It runs after
// Claim and ends before Close.
func (s *Store) HoldClaim(ctx context.Context) error {
	tick := time.NewTicker(claimWatch)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := s.renewClaim(ctx); fault.Of(err) == fault.Conflict {
				return err
			} else if err != nil && ctx.Err() == nil {
				s.log.ErrorContext(ctx, "the claim on the database is lost, will try to renew it", "err", err)
			}
		}
	}
}

// renewClaim makes the claim anew if its connection is gone or does not answer. When another one gives no answer either, the database is silent:
// then all who wait for it are told so. The claim of a SQLite file is the lock that is held as long as the file is open.
func (s *Store) renewClaim(ctx context.Context) error {
	if !s.dialect.postgres {
		return nil
	}
	if s.claimed != nil {
		asking, cancel := context.WithTimeout(ctx, claimTime)
		defer cancel()
		if _, err := s.claimed.ExecContext(asking, "SELECT 1"); err == nil || ctx.Err() != nil {
			return nil
		}
		_ = s.claimed.Close() // it is broken
		s.claimed = nil
	}
	claiming, cancel := context.WithTimeout(ctx, 2*claimTime)
	defer cancel()
	err := s.Claim(claiming)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		s.wires.cut()
	}
	return err
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
	return fault.New(fault.Conflict, "another server has the claim")
}
