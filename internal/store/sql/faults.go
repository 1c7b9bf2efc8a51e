package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/tutti-project/tutti/internal/fault"
)

// comeBack is when to try again what a full disk or a lost database refused.
const comeBack = 30 * time.Second

// errStale says that what an act was prepared with is no longer stored: read
// again and repeat.
var errStale = errors.New("the row changed meanwhile")

// explain gives err its kind and says what was being done.
func explain(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	what := fmt.Sprintf(format, args...)
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return fmt.Errorf("%s: %w", what, err)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fault.Wrap(fault.Unavailable, err, "it took too long to %s", what)
	}
	known := sqliteFault(err)
	if known == nil {
		known = postgresFault(err)
	}
	if known == nil {
		known = err
	}
	return fmt.Errorf("%s: %w", what, known)
}

// sqliteFault gives an error of SQLite its kind; nil if it is none of the known.
func sqliteFault(err error) error {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return nil
	}
	later := func(detail string) error {
		return &fault.Error{Kind: fault.Unavailable, Detail: detail, RetryAfter: comeBack, Err: err}
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return later("the disk that holds the database is full; nothing was stored")
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return later("the database is read-only; check the owner, mode and mount of its directory")
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN:
		return later("the disk that holds the database does not read or write")
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT:
		return later("the database is busy")
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fault.Wrap(fault.Internal, err, "the database file is damaged; restore it from a backup, or look at it with PRAGMA integrity_check")
	case sqlite3.SQLITE_TOOBIG:
		return fault.Wrap(fault.Invalid, err, "it is too large for the database")
	case sqlite3.SQLITE_CONSTRAINT:
		return fault.Wrap(fault.Conflict, err, "it exists already")
	default:
		return nil
	}
}

// busy tells errors that say nothing of the disk: somebody else is writing.
func busy(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return false
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT:
		return true
	}
	return false
}

// missing turns "no rows" into NotFound.
func missing(err error, format string, args ...any) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fault.New(fault.NotFound, format, args...)
	}
	return err
}
