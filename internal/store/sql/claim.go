package sql

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
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

// Claim says who wants the records.
type Claim struct {
	ID     string // the server's name among those that use the same records
	Shared bool   // others may use them, too, if they say so as well
}

// Claim makes the caller the only server of these records until Close, or one of several: those that share them, each under a name of its own.
// The files that belong to the records of one server alone are in its data directory. Conflict when another server has a claim that does not go with this
// one, and when the records are too new for this program by now, or moved away. A SQLite file is claimed when it is opened: whoever held its leases is dead.
func (s *Store) Claim(ctx context.Context, c Claim) error {
	if !s.dialect.postgres {
		return s.Leases.Free(ctx)
	}
	return s.claimIf(ctx, c, func(q querier) error { // until now somebody else may have changed them
		_, _, err := examine(ctx, q, s.dialect)
		return err
	})
}

// claimIf makes a claim unless fit refuses the records. It looks at them when nobody else can change what it looks at.
func (s *Store) claimIf(ctx context.Context, c Claim, fit func(q querier) error) error {
	conn, err := s.claimConn(ctx, c)
	s.claimed, s.claim = conn, c
	if err == nil {
		if err = fit(plain{conn}); err != nil {
			s.claimed = nil
			letGo(ctx, conn)
		}
		return explain(err, "claim the database")
	}
	switch {
	case errors.Is(err, errSameName):
		err = fault.New(fault.Conflict,
			"another server that runs is called %s, too: its data directory was copied; remove the files server-id, ca/server.pem and ca/server-made.txt "+
				"from the copy, and start that again: it makes a name and a certificate of its own", c.ID)
	case fault.Is(err, fault.Conflict):
		err = s.taken(ctx, c)
	}
	return explain(err, "claim the database")
}

var errSameName = errors.New("another server has this name")

// taken says who has the claim, as far as that is known.
func (s *Store) taken(ctx context.Context, c Claim) error {
	who := ""
	known, _ := s.Leases.Servers(ctx) // without it the refusal says less
	slices.SortFunc(known, func(a, b lease.Server) int { return cmp.Compare(a.Silent, b.Silent) })
	if len(known) > 0 && known[0].There() {
		who = fmt.Sprintf(" (%s at %s)", known[0].ID, known[0].Address)
	}
	detail := "another server" + who + " uses this database; stop it, or give this one a database of its own"
	if c.Shared {
		detail = "another server" + who +
			" uses this database, and is not one of several: it has not the setting cluster; stop it, set it there, too, and start it again"
	}
	return &fault.Error{Kind: fault.Conflict, Detail: detail, Hint: OneServer}
}

// OneServer is what a second server on the same records is told.
const OneServer = "several servers share records in PostgreSQL and content in S3 when each has `cluster: true`; docs/many-servers.md says how"

// claimConn makes the claim with a connection of its own.
func (s *Store) claimConn(ctx context.Context, c Claim) (*sql.Conn, error) {
	conn, err := s.pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if err := claimOn(ctx, conn, c); err != nil {
		letGo(ctx, conn) // it may have had one of two
		return nil, err
	}
	return conn, nil
}

// letGo gives back a connection and the locks that its session holds. A session that does not answer ends, and its locks with it: the pool must not keep them.
func letGo(ctx context.Context, conn *sql.Conn) {
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTime)
	defer cancel()
	if _, err := conn.ExecContext(ending, "SELECT pg_advisory_unlock_all()"); err != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	_ = conn.Close()
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
	// Servers of the version before go on beside one that has expanded the records. They do not when these moved while the claim was lost.
	err := s.claimIf(claiming, s.claim, func(q querier) error { return refuseMoved(claiming, q, s.dialect) })
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		s.wires.cut()
	}
	return err
}

// recordsLock is the advisory lock on the records.
const recordsLock = "hashtextextended('tutti server', 2)"

// claimOn takes locks that the session of conn holds to its end: one on the records, which several may share, and one on the server's name.
func claimOn(ctx context.Context, conn *sql.Conn, c Claim) error {
	records := "SELECT pg_try_advisory_lock(" + recordsLock + ")"
	if c.Shared {
		records = "SELECT pg_try_advisory_lock_shared(" + recordsLock + ")"
	}
	ours, err := lockSoon(ctx, conn, records)
	if err == nil && !ours {
		err = fault.New(fault.Conflict, "another server has the claim")
	}
	if err != nil || !c.Shared {
		return err
	}
	ours, err = lockSoon(ctx, conn, "SELECT pg_try_advisory_lock(hashtextextended('tutti server ' || $1, 2))", c.ID)
	if err == nil && !ours {
		err = fault.Wrap(fault.Conflict, errSameName, "another server has the claim")
	}
	return err
}

// lockSoon tries to get a lock for as long as a server that was killed may still have it.
func lockSoon(ctx context.Context, conn *sql.Conn, try string, args ...any) (ours bool, err error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < claimTime; {
		if err := conn.QueryRowContext(ctx, try, args...).Scan(&ours); err != nil || ours {
			return ours, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return false, nil
}
