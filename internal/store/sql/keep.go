package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tutti-project/tutti/internal/fault"
)

// copyOf is the name of the copy of a file before its schema changed.
func (f *sqliteFile) copyOf(schema int64) string { return fmt.Sprintf("%s.schema-%d", f.path, schema) }

// keep copies the file, which nobody else uses, with all that is in its log. Older
// copies go when the new one is whole. Unavailable when there is no room for it.
func (f *sqliteFile) keep(ctx context.Context, db *sql.DB, schema int64) error {
	old, err := filepath.Glob(escapeGlob(f.path) + ".schema-*")
	if err != nil {
		return err
	}
	var busy, logged, moved int
	if err := db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &logged, &moved); err != nil {
		return err
	}
	if busy != 0 {
		return fault.New(fault.Unavailable, "somebody reads %s, so no copy can be kept before its schema changes: start again when the backup has ended", f.path)
	}
	name := f.copyOf(schema)
	if err := copyFile(f.path, name+".new"); err != nil {
		_ = os.Remove(name + ".new")
		return fault.Wrap(fault.Unavailable, err, "no copy of %s can be kept before its schema changes (%v): make room for it, and start again", f.path, err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		return unusable(name, err)
	}
	for _, path := range old {
		if path != name {
			_ = os.Remove(path) // the next migration tries again
		}
	}
	return nil
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source) // by the kernel, which shares the blocks where it can
	return errors.Join(err, target.Sync(), target.Close())
}

func escapeGlob(path string) string {
	escaped := make([]rune, 0, len(path))
	for _, r := range path {
		switch r {
		case '*', '?', '[', '\\':
			escaped = append(escaped, '\\')
		}
		escaped = append(escaped, r)
	}
	return string(escaped)
}
