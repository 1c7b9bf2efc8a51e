package sql

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/store/backup"
)

// places makes a config of each engine with nothing in it.
var places = map[string]func(t *testing.T) Config{
	"sqlite":   func(t *testing.T) Config { t.Helper(); return Config{Path: sqlitePath(t)} },
	"postgres": func(t *testing.T) Config { t.Helper(); return Config{URL: postgres.database(t)} },
}

// Every table that there is, whoever adds one, goes from each engine to each with all of its rows.
func TestEveryTableIsDumpedAndLoaded(t *testing.T) {
	t.Parallel()
	for from, place := range places {
		for to, other := range places {
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				source, target := place(t), other(t)
				if source.URL != "" {
					source.URL = postgres.migrated(t)
				}
				s := openTest(t, source)
				fillEvery(t, s)
				want := dumpAll(t, source)
				copyOver(t, source, target)
				got := dumpAll(t, target)
				if diff := cmp.Diff(want.rows, got.rows); diff != "" {
					t.Errorf("rows (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(want.sequences, got.sequences); diff != "" {
					t.Errorf("last numbers (-want +got):\n%s", diff)
				}
				loaded := openTest(t, target)
				for _, table := range want.tables {
					if n := len(want.rows[table.Name]); n == 0 {
						t.Errorf("table %s has no row: the test does not see whether it is kept", table.Name)
					}
				}
				if _, err := loaded.Jobs.Unended(t.Context()); err != nil && fault.Of(err) != fault.Internal { // its rows are invented
					t.Error(err)
				}
				if diff := cmp.Diff(indexesOf(t, openTest(t, other(t))), indexesOf(t, loaded)); diff != "" {
					t.Errorf("indexes (-fresh +loaded):\n%s", diff)
				}
			})
		}
	}
}

type dumped struct {
	tables    []backup.Table
	rows      map[string][]string
	sequences map[string]int64
}

// dumpAll reads everything; rows are texts, sorted.
func dumpAll(t *testing.T, config Config) (all dumped) {
	t.Helper()
	d, err := OpenDump(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	if err := d.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, all.tables, err = d.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all.rows = map[string][]string{}
	for _, table := range all.tables {
		err := d.Rows(t.Context(), table, func(row []any) error {
			all.rows[table.Name] = append(all.rows[table.Name], fmt.Sprintf("%T %q", row, row))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(all.rows[table.Name])
	}
	if all.sequences, err = d.Sequences(t.Context()); err != nil {
		t.Fatal(err)
	}
	return all
}

// copyOver dumps one database and loads it into another one.
func copyOver(t *testing.T, from, to Config) {
	t.Helper()
	d, err := OpenDump(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	if err := d.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	schema, tables, err := d.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := OpenLoader(t.Context(), to, schema)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if err := l.Load(t.Context(), table, rowsOf(t.Context(), d, table)); err != nil {
			t.Fatal(err)
		}
	}
	sequences, err := d.Sequences(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Finish(t.Context(), sequences); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func rowsOf(ctx context.Context, d *Dump, table backup.Table) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		if err := d.Rows(ctx, table, func(row []any) error { yield(slices.Clone(row), nil); return nil }); err != nil {
			yield(nil, err)
		}
	}
}

// fillEvery puts two rows into every table: one with values of all kinds that are hard to keep, and one whose columns
// that may be null are.
func fillEvery(t *testing.T, s *Store) {
	t.Helper()
	err := s.write(t.Context(), func(ctx context.Context, q querier) error {
		tables, err := readTables(ctx, q, s.dialect)
		if err != nil {
			return err
		}
		for _, table := range tables {
			for n := range 2 {
				if err := fillRow(ctx, q, table, int64(n+5)); err != nil {
					return fmt.Errorf("table %s: %w", table.Name, err)
				}
			}
		}
		numbered, err := collect(ctx, q, scanPair, s.dialect.described.numbered)
		if err != nil {
			return err
		}
		for i, table := range numbered { // as if later rows were deleted
			if s.dialect.described.unsetAt != "" {
				if _, err := q.exec(ctx, s.dialect.described.unsetAt, table[0]); err != nil {
					return err
				}
			}
			if _, err := q.exec(ctx, s.dialect.described.setAt, table[0], int64(100+i), table[1]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func fillRow(ctx context.Context, q querier, table schemaTable, n int64) error {
	marks, values := make([]string, len(table.kinds)), make([]any, len(table.kinds))
	for i, kind := range table.kinds {
		marks[i] = mark(i + 1)
		switch kind {
		case ints:
			values[i] = n
			if !strings.HasSuffix(table.Columns[i], "id") && table.Columns[i] != "number" && table.Columns[i] != "seq" && table.Columns[i] != "compilation" {
				values[i] = n + 1<<60 // no float has it
			}
		case texts:
			values[i] = fmt.Sprintf("ä\n\"'%d", n)
		case blobs:
			values[i] = []byte{0, 255, byte(n)}
		case floats:
			values[i] = 0.1 + float64(n)
		}
	}
	statement := "INSERT INTO " + identifier(table.Name) + " (" + identifiers(table.Columns) + ") VALUES (" + strings.Join(marks, ", ") + ")"
	if filledByMigrations(table.Name) {
		statement += " ON CONFLICT DO NOTHING"
	}
	_, err := q.exec(ctx, statement, values...)
	return err
}

func indexesOf(t *testing.T, s *Store) []string {
	t.Helper()
	indexes, err := collect(t.Context(), s.reads, scanPair, s.dialect.described.added)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, index := range indexes {
		list = append(list, index[1])
	}
	slices.Sort(list)
	return list
}

// A dump is of one moment, however much is written meanwhile.
func TestADumpIsOfOneMoment(t *testing.T) {
	t.Parallel()
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := place(t)
			s := openTest(t, config)
			d, err := OpenDump(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = d.Close() }()
			count := func() (n int) {
				err := d.Rows(t.Context(), backup.Table{Name: "users", Columns: []string{"name"}}, func([]any) error { n++; return nil })
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			if err := d.Begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			fillEvery(t, s)
			if n := count(); n != 0 {
				t.Errorf("%d rows that were written later", n)
			}
			if err := d.Begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := count(); n != 2 {
				t.Errorf("%d rows after it began anew, want 2", n)
			}
		})
	}
}

func TestALoaderTakesOnlyWhatIsEmptyAndKnown(t *testing.T) {
	t.Parallel()
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newest, err := newestSchema()
			if err != nil {
				t.Fatal(err)
			}
			_, err = OpenLoader(t.Context(), place(t), backup.Schema{Number: newest + 1, Writer: "v9.9.9"})
			wantKind(t, err, fault.Conflict)
			if !strings.Contains(fault.Detail(err), "tutti v9.9.9") {
				t.Errorf("%q does not name the version to use", fault.Detail(err))
			}

			used := place(t)
			s := openTest(t, used)
			fillEvery(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			_, err = OpenLoader(t.Context(), used, backup.Schema{Number: newest})
			wantKind(t, err, fault.Conflict)

			half := place(t) // one that ends before Finish leaves nothing, and the next one may use the place
			for range 2 {
				l, err := OpenLoader(t.Context(), half, backup.Schema{Number: newest})
				if err != nil {
					t.Fatal(err)
				}
				rows := func(yield func([]any, error) bool) { yield([]any{"0", "a", int64(1)}, nil) }
				if err := l.Load(t.Context(), backup.Table{Name: "schema_writers", Columns: []string{"version", "nothing", "at"}}, rows); fault.Of(err) != fault.Invalid {
					t.Errorf("a column that is not there: %v", err)
				}
				if err := l.Load(t.Context(), backup.Table{Name: "nothing"}, rows); fault.Of(err) != fault.Invalid {
					t.Errorf("a table that is not there: %v", err)
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A backup of an older schema becomes one of this program's.
func TestAnOlderSchemaIsLoaded(t *testing.T) {
	t.Parallel()
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := place(t)
			l, err := OpenLoader(t.Context(), config, backup.Schema{Number: 23})
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Finish(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			s := openTest(t, config)
			if diff := cmp.Diff(indexesOf(t, openTest(t, place(t))), indexesOf(t, s)); diff != "" {
				t.Errorf("indexes (-fresh +loaded):\n%s", diff)
			}
			if copies, _ := filepath.Glob(config.Path + ".schema-*"); config.Path != "" && len(copies) > 0 {
				t.Errorf("a restore keeps copies: %v", copies)
			}
		})
	}
}
