package sql

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
)

// used makes a database of which something is in the log, and copies it with and without that.
func used(t *testing.T) (path, alone, whole string) {
	t.Helper()
	dir := t.TempDir()
	path, alone, whole = filepath.Join(dir, "tutti.db"), filepath.Join(dir, "alone.db"), filepath.Join(dir, "whole.db")
	s := openTest(t, Config{Path: path})
	fillEvery(t, s)
	for _, to := range []string{alone, whole} {
		if err := copyFile(path, to); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyFile(path+"-wal", whole+"-wal"); err != nil {
		t.Fatal(err)
	}
	return path, alone, whole
}

func refused(t *testing.T, path, word string) {
	t.Helper()
	for range 2 { // it is refused until somebody does something
		_, err := Open(t.Context(), Config{Path: path}, slog.New(slog.DiscardHandler))
		wantKind(t, err, fault.Conflict)
		if !strings.Contains(fault.Detail(err), word) || !strings.Contains(fault.Detail(err), "tutti backup restore") {
			t.Errorf("%q does not say what happened and what to do", fault.Detail(err))
		}
	}
}

func reopened(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{Path: path}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return s
}

// cp tutti.db, while a server uses it, lacks what is in its log.
func TestACopyWithoutItsLogIsNoticed(t *testing.T) {
	t.Parallel()
	_, alone, whole := used(t)
	refused(t, alone, "without its log")
	if s := reopened(t, whole); !s.file.clean {
		t.Error("a copy without a lock beside it is checked as if its server had died")
	}
	if err := Accept(t.Context(), alone); err != nil {
		t.Fatal(err)
	}
	reopened(t, alone)
}

// An older copy in the place of the file is noticed, too, also one that was closed.
func TestAnExchangedFileIsNoticed(t *testing.T) {
	t.Parallel()
	path := sqlitePath(t)
	reopened(t, path)
	old := path + ".old"
	if err := copyFile(path, old); err != nil {
		t.Fatal(err)
	}
	reopened(t, path)
	reopened(t, path)
	if err := os.Rename(old, path); err != nil {
		t.Fatal(err)
	}
	refused(t, path, "not the file that was used here last")
	if err := Accept(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	reopened(t, path)
}

// A damaged file is not accepted.
func TestADamagedFileIsNotAccepted(t *testing.T) {
	t.Parallel()
	_, alone, _ := used(t)
	file, err := os.OpenFile(alone, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt(make([]byte, 4*pageBytes), 8*pageBytes); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	wantKind(t, Accept(t.Context(), alone), fault.Internal)
}

// What a person does who has to close a file while a backup reads it: its log stays, and the next
// server starts.
func TestAReaderKeepsTheLog(t *testing.T) {
	t.Parallel()
	path := sqlitePath(t)
	s := openTest(t, Config{Path: path})
	d, err := OpenDump(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	fillEvery(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), Config{Path: path}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	reopened(t, path)
}

// A program of today refuses what one of tomorrow made, and says which that was; the file is as it
// was afterwards.
func TestANewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := place(t)
			config.Version = "v1.2.3"
			s := openTest(t, config)
			_ = s.write(t.Context(), func(ctx context.Context, q querier) error {
				if _, err := q.exec(ctx, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, "+appliedWord(s)+")"); err != nil {
					t.Error(err)
				}
				_, err := q.exec(ctx, "INSERT INTO schema_writers (schema, version, at) VALUES (9999, 'v9.9.9', 1)")
				return err
			})
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				_, err := Open(t.Context(), config, slog.New(slog.DiscardHandler))
				wantKind(t, err, fault.Conflict)
				if !strings.Contains(fault.Detail(err), "use tutti v9.9.9 or newer") {
					t.Errorf("%q does not say which version to use", fault.Detail(err))
				}
			}
		})
	}
}

func appliedWord(s *Store) string {
	if s.dialect.postgres {
		return "true"
	}
	return "1"
}

// Before a migration the file is copied, with what a server that died left in its log; one copy
// is kept.
func TestACopyIsKeptBeforeAMigration(t *testing.T) {
	t.Parallel()
	path := sqlitePath(t)
	file, err := claim(path)
	if err != nil {
		t.Fatal(err)
	}
	db, err := file.pool(1, 8<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := migrateTo(t.Context(), db, sqliteDialect, 24); err != nil {
		t.Fatal(err)
	}
	file.use = 1
	if err := file.leave(t.Context(), db, db.Close); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".schema-7", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	reopened(t, path)
	copies, err := filepath.Glob(path + ".schema-*")
	if err != nil || len(copies) != 1 || copies[0] != path+".schema-24" {
		t.Fatalf("copies %v, %v", copies, err)
	}
	if err := os.Rename(copies[0], path); err != nil {
		t.Fatal(err)
	}
	refused(t, path, "not the file that was used here last")
	if err := Accept(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	d, err := OpenDump(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	if err := d.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if schema, _, err := d.Describe(t.Context()); err != nil || schema.Number != 24 {
		t.Errorf("the copy has schema %+v, %v", schema, err)
	}
}

// A file whose server was killed is used without a word, also when a program that is too old was tried first.
func TestAKilledServersFileIsUsed(t *testing.T) {
	t.Parallel()
	path, _, whole := used(t)
	if err := copyFile(path+".lock", whole+".lock"); err != nil {
		t.Fatal(err)
	}
	file, err := claim(whole)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.enter(); err != nil {
		t.Fatal(err)
	}
	db, err := file.pool(1, 8<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.PingContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	file.giveUp(t.Context(), db)
	if s := reopened(t, whole); s.file.clean {
		t.Error("a file whose server was killed counts as closed")
	}
	if s := reopened(t, whole); !s.file.clean {
		t.Error("a file that was closed counts as left open")
	}
}
