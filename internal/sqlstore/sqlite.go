package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver

	"github.com/tutti-project/tutti/internal/fault"
)

var sqliteDialect = dialect{
	goose: goose.DialectSQLite3,
	words: strings.NewReplacer(
		"@id", "INTEGER PRIMARY KEY AUTOINCREMENT", "@int", "INTEGER", "@text", "TEXT",
		"@bytes", "BLOB", "@float", "REAL", "@clustered", "WITHOUT ROWID"),
	insert: sqliteInsert,
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
	clean bool // the last server closed it
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
		lock.release(lock.clean)
		return nil, unusable(path, err)
	}
	_ = file.Close()
	return &sqliteFile{path: path, lock: lock, clean: lock.clean}, nil
}

func unusable(path string, err error) error {
	var cause *os.PathError
	if errors.As(err, &cause) {
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
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

func sqliteInsert(ctx context.Context, q querier, into string, cols []column, conflict string, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	names, marks := make([]string, len(cols)), make([]string, len(cols))
	for i, c := range cols {
		names[i], marks[i] = c.name, "$"+strconv.Itoa(i+1)
	}
	text := "INSERT INTO " + into + " (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(marks, ", ") + ") " + conflict
	for _, row := range rows {
		if _, err := q.exec(ctx, text, row...); err != nil {
			return err
		}
	}
	return nil
}
