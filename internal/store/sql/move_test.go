package sql

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/store/backup"
	"github.com/tutti-project/tutti/internal/store/move"
)

// Every table that there is, whoever adds one, moves from each engine to each. Then the old records are refused, the new ones are used, and nobody
// holds a lease of theirs.
func TestRecordsMove(t *testing.T) {
	t.Parallel()
	for from, place := range places {
		for to, other := range places {
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				source, target := place(t), other(t)
				fill(t, source)
				want := dumpAll(t, source)
				done, err := runMove(t, source, MoveTarget{target})
				if err != nil {
					t.Fatal(err)
				}
				if done.Step != move.Copy || done.Tables != len(want.tables) || done.Rows < int64(len(want.tables)) {
					t.Errorf("%+v of %d tables", done, len(want.tables))
				}
				got := dumpAll(t, target)
				for _, name := range []string{"servers", "presence", "leases"} { // who used the old ones is gone
					delete(want.rows, name)
					delete(got.rows, name)
				}
				if diff := cmp.Diff(want.rows, got.rows); diff != "" {
					t.Errorf("rows (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(want.sequences, got.sequences); diff != "" {
					t.Errorf("last numbers (-want +got):\n%s", diff)
				}
				leftAlone(t, source, target)
				again, err := runMove(t, source, MoveTarget{target})
				if err != nil || again.Step != move.Done {
					t.Errorf("once more: %+v, %v", again, err)
				}
				s := openTest(t, target)
				if held, err := s.Leases.Leases(t.Context()); err != nil || len(held) == 0 || held[0].Left > 0 {
					t.Errorf("leases: %+v, %v", held, err)
				}
				if servers, err := s.Leases.Servers(t.Context()); err != nil || len(servers) > 0 {
					t.Errorf("servers: %+v, %v", servers, err)
				}
			})
		}
	}
}

// fill makes records with rows in every table.
func fill(t *testing.T, config Config) {
	t.Helper()
	s, err := Open(t.Context(), config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	fillEvery(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func runMove(t *testing.T, from Config, to move.Target) (move.Result, error) {
	t.Helper()
	source, err := OpenMoveSource(t.Context(), from)
	if err != nil {
		return move.Result{}, err
	}
	defer func() {
		if err := source.Close(); err != nil {
			t.Error(err)
		}
	}()
	return move.Run(t.Context(), move.Plan{
		From: source, To: to, ID: "one-of-" + t.Name(), Now: time.Unix(1_800_000_000, 0), Progress: func(string, int64, int64) {},
		Ready: func(context.Context) error { return nil },
	})
}

// leftAlone has nobody use records that moved: no server, no backup, no further move; they can be accepted as they are.
func leftAlone(t *testing.T, source, target Config) {
	t.Helper()
	_, err := Open(t.Context(), source, slog.New(slog.DiscardHandler))
	wantKind(t, err, fault.Conflict)
	if said := fault.Detail(err); !strings.Contains(said, "moved to "+target.Name()+" on 2027-01-15T08:00:00Z") {
		t.Errorf("a server is told %q", said)
	}
	d, err := OpenDump(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	wantKind(t, d.Begin(t.Context()), fault.Conflict)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	third := places["sqlite"](t)
	_, err = runMove(t, source, MoveTarget{third})
	wantKind(t, err, fault.Conflict)
}

// A server that runs is not moved, whatever its engine; nor is one whose schema is older than this program's.
func TestWhatCannotMove(t *testing.T) {
	t.Parallel()
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := place(t)
			s := openTest(t, config)
			if err := s.Claim(t.Context(), Claim{ID: "pup-1/1", Shared: config.URL != ""}); err != nil {
				t.Fatal(err)
			}
			_, err := runMove(t, config, MoveTarget{places["sqlite"](t)})
			wantKind(t, err, fault.Conflict)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			old := place(t)
			l, err := OpenLoader(t.Context(), old, backup.Schema{Number: 53})
			if err != nil {
				t.Fatal(err)
			}
			l.q.close()
			l.over = true // as a program that knew no more left it
			if err := l.run(t.Context(), "COMMIT"); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			_, err = runMove(t, old, MoveTarget{places["sqlite"](t)})
			wantKind(t, err, fault.Conflict)
			if !strings.Contains(fault.Detail(err), "older schema") {
				t.Errorf("%v", err)
			}
		})
	}
}

// wrong is a target in which a value is not what was copied.
type wrong struct{ MoveTarget }

func (w wrong) Loader(ctx context.Context, schema backup.Schema, m move.Mark) (backup.Loader, error) {
	l, err := w.MoveTarget.Loader(ctx, schema, m)
	return wrongLoader{l, w.Config}, err
}

type wrongLoader struct {
	backup.Loader
	config Config
}

func (l wrongLoader) Finish(ctx context.Context, numbers map[string]int64) error {
	if err := l.Loader.Finish(ctx, numbers); err != nil {
		return err
	}
	if err := l.Close(); err != nil {
		return err
	}
	return alone(ctx, l.config, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, "UPDATE users SET name = name || ' ' WHERE name = (SELECT min(name) FROM users)")
		return err
	})
}

// What did not come as it was ends a move, and the server goes on with what it had. The next try throws it away.
func TestAValueThatDidNotComeIsFound(t *testing.T) {
	t.Parallel()
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, target := places["sqlite"](t), place(t)
			fill(t, source)
			_, err := runMove(t, source, wrong{MoveTarget{target}})
			wantKind(t, err, fault.Conflict)
			if !strings.Contains(fault.Detail(err), "a row of table users has other values") {
				t.Errorf("%v", err)
			}
			_, err = Open(t.Context(), target, slog.New(slog.DiscardHandler))
			wantKind(t, err, fault.Conflict) // it did not arrive
			s, err := Open(t.Context(), source, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if done, err := runMove(t, source, MoveTarget{target}); err != nil || done.Step != move.Copy {
				t.Errorf("once more: %+v, %v", done, err)
			}
			openTest(t, target)
			if left, _ := os.Stat(target.Path + ".moving"); target.URL == "" && left != nil {
				t.Errorf("%s is left", left.Name())
			}
		})
	}
}

// Each value of each table counts in the sum, on both engines: one that is another one, or nothing, makes another sum.
func TestSumsSeeEveryValue(t *testing.T) {
	t.Parallel()
	others := map[columnKind]string{ints: "7777", texts: "'another'", blobs: "x'aa'", floats: "0.25"}
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := place(t)
			s := openTest(t, config)
			fillEvery(t, s)
			seen := 0
			err := s.write(t.Context(), func(ctx context.Context, q querier) error {
				tables, err := readTables(ctx, q, s.dialect)
				if err != nil {
					return err
				}
				for _, table := range tables {
					before, err := sumOf(ctx, q, table)
					if err != nil {
						return err
					}
					for i, column := range table.Columns {
						value := others[table.kinds[i]]
						if s.dialect.postgres && table.kinds[i] == blobs {
							value = `'\xaa'::bytea`
						}
						changed, err := changes(ctx, q, fmt.Sprintf("UPDATE %s SET %s = %s", identifier(table.Name), identifier(column), value), table)
						if err != nil {
							continue // a key that others refer to, or that must differ
						}
						if seen++; changed == before {
							t.Errorf("table %s: %s does not count", table.Name, column)
						}
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if seen < 100 {
				t.Errorf("only %d columns were looked at", seen)
			}
		})
	}
}

// changes is the sum of a table after a statement, which is undone.
func changes(ctx context.Context, q querier, statement string, table schemaTable) (sum move.Sum, err error) {
	if _, err := q.exec(ctx, "SAVEPOINT before"); err != nil {
		return sum, err
	}
	if _, err = q.exec(ctx, statement); err == nil {
		sum, err = sumOf(ctx, q, table)
	}
	for _, undo := range []string{"ROLLBACK TO SAVEPOINT before", "RELEASE SAVEPOINT before"} {
		if _, err := q.exec(ctx, undo); err != nil {
			return sum, err
		}
	}
	return sum, err
}

// Nothing, no bytes, and a text of the same bytes are three things.
func TestSumsTellNothingFromNoBytes(t *testing.T) {
	t.Parallel()
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openTest(t, place(t))
			sums := map[move.Sum]string{}
			err := s.write(t.Context(), func(ctx context.Context, q querier) error {
				kind := map[bool]string{true: "BYTEA", false: "BLOB"}[s.dialect.postgres]
				if _, err := q.exec(ctx, "CREATE TABLE tried (b "+kind+", t TEXT)"); err != nil {
					return err
				}
				table := schemaTable{Table: backup.Table{Name: "tried", Columns: []string{"b", "t"}}, kinds: []columnKind{blobs, texts}}
				for what, values := range map[string][2]any{
					"nothing": {nil, ""}, "no bytes": {[]byte{}, ""}, "bytes": {[]byte("a"), ""}, "no text": {[]byte{}, nil}, "a text": {[]byte{}, "a"},
				} {
					if _, err := q.exec(ctx, "DELETE FROM tried"); err != nil {
						return err
					}
					if _, err := q.exec(ctx, "INSERT INTO tried (b, t) VALUES ($1, $2)", values[0], values[1]); err != nil {
						return err
					}
					sum, err := sumOf(ctx, q, table)
					if err != nil {
						return err
					}
					if sums[sum] != "" {
						t.Errorf("%s has the sum of %s", what, sums[sum])
					}
					sums[sum] = what
				}
				_, err := q.exec(ctx, "DROP TABLE tried")
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Records that moved can be used again as they are, when somebody says so.
func TestRecordsThatMovedAreAccepted(t *testing.T) {
	t.Parallel()
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := place(t)
			fill(t, source)
			if _, err := runMove(t, source, MoveTarget{places["sqlite"](t)}); err != nil {
				t.Fatal(err)
			}
			if source.URL == "" {
				if err := Accept(t.Context(), source.Path); err != nil {
					t.Fatal(err)
				}
			} else {
				for _, want := range []bool{true, false} {
					if moved, err := AcceptMoved(t.Context(), source); err != nil || moved != want {
						t.Errorf("%t, %v, want %t", moved, err, want)
					}
				}
			}
			openTest(t, source)
		})
	}
}
