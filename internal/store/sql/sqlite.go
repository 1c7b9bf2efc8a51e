package sql

import (
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"

	"github.com/tutti-project/tutti/internal/fault"
)

var sqliteDialect = dialect{
	goose: goose.DialectSQLite3,
	words: strings.NewReplacer(
		"@id", "INTEGER PRIMARY KEY AUTOINCREMENT", "@int", "INTEGER", "@text", "TEXT",
		"@bytes", "BLOB", "@float", "REAL", "@clustered", "WITHOUT ROWID", "@fact_triggers", sqliteFactTriggers),
	listed:    "(SELECT value FROM json_each(?))",
	fence:     "SELECT token FROM leases WHERE name = $1 AND holder = $2 AND token = $3",
	inserting: sqliteInserting,
	described: described{
		tables: `SELECT name FROM sqlite_schema WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_' AND substr(name, 1, 6) <> 'goose_'
			AND name NOT IN ('moves', 'indexed_paths', 'indexed_facts') ORDER BY rowid`,
		has:      "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = $1)",
		columns:  "SELECT name, type FROM pragma_table_info($1) ORDER BY cid",
		parents:  `SELECT DISTINCT "table" FROM pragma_foreign_key_list($1) ORDER BY 1`,
		added:    "SELECT 'DROP ' || type || ' ' || name, sql FROM sqlite_schema WHERE type IN ('index', 'trigger') AND sql IS NOT NULL ORDER BY rowid",
		numbered: "SELECT name, 'seq' FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%' AND substr(name, 1, 6) <> 'goose_' ORDER BY name",
		sequence: "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = $1 AND $2 <> ''), 0)",
		setAt:    "INSERT INTO sqlite_sequence (name, seq) SELECT $1, CAST($2 AS INTEGER) WHERE $3 <> ''",
		unsetAt:  "DELETE FROM sqlite_sequence WHERE name = $1",
	},
}

// Of the cache, the writer gets a half, the readers share the other.
const (
	sqliteReaders  = 4
	pageBytes      = 8192
	checkpointSize = 32 << 20 / pageBytes // pages of WAL that are moved into the file at once
)

// sqliteFile is a database file and who may use it.
type sqliteFile struct {
	path  string
	lock  *fileLock
	clean bool  // the last server closed it
	use   int64 // the number of this use, see use.go
}

// claim creates the file if need be, with the right mode, and locks it.
func claim(path string) (*sqliteFile, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		lock.release()
		return nil, unusable(path, err)
	}
	_ = file.Close()
	return &sqliteFile{path: path, lock: lock}, nil
}

func unusable(path string, err error) error {
	if cause, ok := errors.AsType[*os.PathError](err); ok {
		return fault.Wrap(fault.Unavailable, err, "the database %s cannot be used: %s; check the directory's owner, mode and mount", path, cause.Err)
	}
	return fault.Wrap(fault.Unavailable, err, "the database %s cannot be used", path)
}

// pool opens the file with at most conns connections and a cache for each.
func (f *sqliteFile) pool(conns int, cacheBytes int64, pragmas ...string) (*sql.DB, error) {
	values := url.Values{"_pragma": append([]string{
		"busy_timeout(10000)", "page_size(" + strconv.Itoa(pageBytes) + ")", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
		fmt.Sprintf("cache_size(-%d)", cacheBytes>>10), "temp_store(MEMORY)",
		fmt.Sprintf("wal_autocheckpoint(%d)", checkpointSize), fmt.Sprintf("journal_size_limit(%d)", 2*checkpointSize*pageBytes),
	}, pragmas...)}
	name := url.URL{Scheme: "file", Path: f.path, RawQuery: values.Encode()}
	connector, err := newSQLiteConnector(name.String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// insertChunks are how many rows one statement inserts, largest first. With more
// the driver takes longer to match the arguments than it saves. Three sizes make three
// texts to keep prepared, and two statements of the twenty facts that change most often.
var insertChunks = [...]int{16, 4, 1}

// sqliteInserting inserts rows in chunks.
func sqliteInserting(into string, cols []column, tail string, rows [][]any, run runStatement) error {
	if len(rows) == 0 {
		return nil
	}
	names := make([]string, len(cols))
	for i, c := range cols {
		names[i] = c.name
	}
	row := "(?" + strings.Repeat(", ?", len(cols)-1) + ")"
	head := "INSERT INTO " + into + " (" + strings.Join(names, ", ") + ") VALUES " + row
	args := make([]any, 0, min(len(rows), insertChunks[0])*len(cols))
	for _, chunk := range insertChunks {
		if len(rows) < chunk {
			continue
		}
		text := head + strings.Repeat(", "+row, chunk-1) + " " + tail
		for ; len(rows) >= chunk; rows = rows[chunk:] {
			if err := run(text, slices.AppendSeq(args[:0], flat(rows[:chunk]))); err != nil {
				return err
			}
		}
	}
	return nil
}

// flat yields the values of rows one after the other.
func flat(rows [][]any) iter.Seq[any] {
	return func(yield func(any) bool) {
		for _, row := range rows {
			for _, v := range row {
				if !yield(v) {
					return
				}
			}
		}
	}
}
