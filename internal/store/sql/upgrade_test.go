package sql

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/store/lease"
)

// What a migration says of itself is true as far as its text tells: one that only expands takes nothing away, changes no row that was there, and older
// programs can still write every table that it touches.
func TestMigrationsAreOfTheKindThatTheySay(t *testing.T) {
	t.Parallel()
	list, err := readMigrations()
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range list {
		if i > 0 && m.Number <= list[i-1].Number {
			t.Errorf("migration %d comes after %d", m.Number, list[i-1].Number)
		}
		if m.Why[len(m.Why)-1] != '.' || m.Name == "" {
			t.Errorf("migration %d: %q, %q", m.Number, m.Name, m.Why)
		}
		for _, d := range []dialect{sqliteDialect, postgresDialect} { // whose words may be whole statements
			for _, wrong := range offends(Migration{Kind: m.Kind, text: d.words.Replace(m.text)}) {
				t.Errorf("migration %d says %s: %s", m.Number, m.Kind, wrong)
			}
		}
	}
	for text, kind := range map[string]Kind{
		"DROP TABLE x": Expand, "ALTER TABLE nodes RENAME COLUMN a TO b": Expand, "UPDATE nodes SET a = 1": Expand, "DELETE FROM nodes": Expand,
		"ALTER TABLE nodes ADD COLUMN a @int NOT NULL": Expand, "CREATE UNIQUE INDEX x ON nodes (a)": Expand, "ALTER TABLE nodes DROP COLUMN a": Migrate,
	} {
		if len(offends(Migration{Kind: kind, text: text})) == 0 {
			t.Errorf("%s is taken for %s", text, kind)
		}
	}
}

var (
	takesAway  = regexp.MustCompile(`(?i)\b(DROP|RENAME|ALTER COLUMN)\b`)
	alters     = regexp.MustCompile(`(?i)^(UPDATE|DELETE)\b`)
	addsColumn = regexp.MustCompile(`(?i)\bADD COLUMN\b`)
	mustBeSet  = regexp.MustCompile(`(?i)\bNOT NULL\b`)
	unique     = regexp.MustCompile(`(?i)^CREATE UNIQUE INDEX \w+ ON (\w+)`)
)

// offends names what in a migration is not of its kind.
func offends(m Migration) (wrong []string) {
	if m.Kind == Contract {
		return nil
	}
	for _, step := range statements(m.text) {
		switch made := unique.FindStringSubmatch(step); {
		case takesAway.MatchString(step):
			wrong = append(wrong, "it takes away: "+step)
		case alters.MatchString(step) && m.Kind == Expand:
			wrong = append(wrong, "it changes rows: "+step)
		case addsColumn.MatchString(step) && mustBeSet.MatchString(step) && !strings.Contains(strings.ToUpper(step), "DEFAULT"):
			wrong = append(wrong, "older programs do not set it: "+step)
		case made != nil && !strings.Contains(m.text, "CREATE TABLE "+made[1]+" "):
			wrong = append(wrong, "older programs may write what it refuses: "+step)
		}
	}
	return wrong
}

// oldRecords makes records as an older program left them.
func oldRecords(t *testing.T, config Config, schema int64) {
	t.Helper()
	if config.URL == "" {
		file, err := claim(config.Path)
		if err != nil {
			t.Fatal(err)
		}
		db, err := file.pool(1, 8<<20)
		if err != nil {
			t.Fatal(err)
		}
		if err := migrateTo(t.Context(), db, sqliteDialect, schema); err != nil {
			t.Fatal(err)
		}
		file.use = 1
		if err := file.leave(t.Context(), db, db.Close); err != nil {
			t.Fatal(err)
		}
		return
	}
	db, err := openPostgres(t.Context(), config.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := migrateTo(t.Context(), db, postgresDialect, schema); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// examined is what would be done to records; nothing is done to them.
func examined(t *testing.T, config Config) Upgrade {
	t.Helper()
	u, err := Examine(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestWhatAnUpgradeWouldDo(t *testing.T) {
	t.Parallel()
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := place(t)
			config.Version = "v1.2.3"
			newest, err := newestSchema()
			if err != nil {
				t.Fatal(err)
			}
			if u := examined(t, config); u.Schema != 0 || u.Newest != newest || u.Contracts() || u.Refusal() != nil {
				t.Errorf("of no records: %+v", u)
			}
			oldRecords(t, config, 51)
			for range 2 {
				if u := examined(t, config); u.Schema != 51 || len(u.Pending) == 0 || u.Pending[0].Number != 53 || u.Pending[0].Name != "base engines" ||
					u.Pending[0].Kind != Expand || u.Contracts() {
					t.Errorf("of records with schema 51: %+v", u)
				}
			}
			s := openTest(t, config)
			if err := s.Leases.EnrolServer(t.Context(), lease.Server{ID: "pup-1/1", Address: "https://pup-1:8140", Version: "v1.2.3"}); err != nil {
				t.Fatal(err)
			}
			u := examined(t, config)
			if u.Schema != newest || u.Writer != "v1.2.3" || len(u.Pending) != 0 {
				t.Errorf("of records that are used: %+v", u)
			}
			const ahead = "INSERT INTO servers (id, address, version, roles, started, seen) SELECT 'ahead', '', '', '', started, seen + 3600000000 FROM servers"
			if _, err := s.exec(t, ahead); err != nil {
				t.Fatal(err) // it is dead, and was seen by a clock that was ahead
			}
			u = examined(t, config)
			if want := (Neighbour{"pup-1/1", "https://pup-1:8140", "v1.2.3", newest}); config.URL != "" && (len(u.Running) != 1 || u.Running[0] != want) {
				t.Errorf("servers that run: %+v, want %+v", u.Running, want)
			}
			if _, err := s.exec(t, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, "+appliedWord(s)+")"); err != nil {
				t.Fatal(err)
			}
			wantKind(t, examined(t, config).Refusal(), fault.Conflict)
		})
	}
}

// exec runs one statement.
func (s *Store) exec(t *testing.T, statement string) (n int64, err error) {
	t.Helper()
	err = s.write(t.Context(), func(ctx context.Context, q querier) error {
		n, err = q.exec(ctx, statement)
		return err
	})
	return n, err
}

// What older servers cannot work with is not done while one of them runs, whatever brings it about; what they can is.
func TestAContractWaitsUntilNobodyRuns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		schema int64
		shared bool
		waits  bool
	}{
		"a contract, one server": {44, false, true}, "a contract, one of several": {44, true, true}, "only expanded": {51, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := Config{URL: postgres.database(t)}
			oldRecords(t, config, c.schema)
			db, err := openPostgres(t.Context(), config.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := claimOn(t.Context(), conn, Claim{ID: "old", Shared: c.shared}); err != nil {
				t.Fatal(err)
			}
			s, err := Open(t.Context(), config, slog.New(slog.DiscardHandler))
			if !c.waits {
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			} else {
				wantKind(t, err, fault.Conflict)
				if !strings.Contains(fault.Detail(err), "stop all servers, then start this one") {
					t.Errorf("it does not say what to do: %v", err)
				}
				if u := examined(t, config); u.Schema != c.schema {
					t.Errorf("the records were changed: %+v", u)
				}
			}
			if err := errors.Join(conn.Close(), db.Close()); err != nil {
				t.Error(err)
			}
			openTest(t, config)
			if u := examined(t, config); len(u.Pending) != 0 {
				t.Errorf("when it was stopped: %+v", u)
			}
		})
	}
}
