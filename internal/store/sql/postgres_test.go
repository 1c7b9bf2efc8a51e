package sql

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/store/lease"
)

// cluster is a private PostgreSQL in a temporary directory, reachable from this machine
// only. Every test gets a database of its own.
type cluster struct {
	dir   string
	port  string
	admin *sql.DB
	count atomic.Int64
	model sync.Once
	fail  error
}

var postgres cluster

func TestMain(m *testing.M) {
	if dir := os.Getenv("SQLSTORE_CHILD"); dir != "" {
		childMain(dir)
		return
	}
	postgres.fail = postgres.start()
	code := m.Run()
	postgres.stop()
	os.Exit(code)
}

const postgresBin = "/usr/lib/postgresql/15/bin"

func (c *cluster) start() error {
	if _, err := os.Stat(postgresBin + "/initdb"); err != nil {
		return fmt.Errorf("PostgreSQL 15 is missing, install it with: apt-get install postgresql (%w)", err)
	}
	dir, err := os.MkdirTemp(memory(), "sqlstore")
	if err != nil {
		return err
	}
	c.dir = dir
	attr, err := c.owner()
	if err != nil {
		return err
	}
	data := filepath.Join(dir, "data")
	if err := c.run(attr, "initdb", "-D", data, "-U", "tutti", "-A", "trust", "--no-sync", "-E", "UTF8"); err != nil {
		return err
	}
	if c.port, err = freePort(); err != nil {
		return err
	}
	options := "-c listen_addresses=127.0.0.1 -c port=" + c.port + " -c unix_socket_directories=" + dir +
		" -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=400 -c shared_buffers=64MB"
	if err := c.run(attr, "pg_ctl", "-D", data, "-w", "-l", filepath.Join(dir, "log"), "-o", options, "start"); err != nil {
		return err
	}
	c.admin, err = sql.Open("pgx", c.url("postgres"))
	return err
}

// memory is a directory that no disk is behind, if there is one: a database is made of hundreds of files, and each test has one.
func memory() string {
	const shared = "/dev/shm"
	if info, err := os.Stat(shared); err != nil || !info.IsDir() {
		return ""
	}
	return shared
}

// owner gives the directory to somebody who is not root: initdb refuses root.
func (c *cluster) owner() (*syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("the user postgres is missing, install it with: apt-get install postgresql (%w)", err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	attr := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return attr, os.Chown(c.dir, uid, gid)
}

func (c *cluster) run(attr *syscall.SysProcAttr, name string, args ...string) error {
	cmd := exec.Command(filepath.Join(postgresBin, name), args...)
	var out bytes.Buffer
	log, err := os.Create(filepath.Join(os.TempDir(), filepath.Base(c.dir)+"."+name+".log"))
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(log.Name()) }()
	cmd.Dir, cmd.SysProcAttr, cmd.Stdout, cmd.Stderr = c.dir, attr, log, log // the server inherits it: no pipe to wait for
	err = cmd.Run()
	_, _ = log.Seek(0, 0)
	_, _ = out.ReadFrom(log)
	_ = log.Close()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out.String())
	}
	return nil
}

func (c *cluster) url(database string) string {
	return "postgres:///" + database + "?user=tutti&port=" + c.port + "&host=" + c.dir
}

// freePort is one that nobody listens on.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

func (c *cluster) stop() {
	if c.admin != nil {
		_ = c.admin.Close()
	}
	if c.dir == "" {
		return
	}
	attr, err := c.owner()
	if err == nil {
		_ = c.run(attr, "pg_ctl", "-D", filepath.Join(c.dir, "data"), "-m", "immediate", "-w", "stop")
	}
	_ = os.RemoveAll(c.dir)
}

// database makes an empty database.
func (c *cluster) database(tb testing.TB) string {
	tb.Helper()
	return c.create(tb, "t"+strconv.FormatInt(c.count.Add(1), 10), "template1")
}

// migrated makes a database that has the schema already: a copy of a model is made
// faster than it is migrated.
func (c *cluster) migrated(tb testing.TB) string {
	tb.Helper()
	c.model.Do(func() {
		s, err := Open(tb.Context(), Config{URL: c.create(tb, "model", "template1")}, slog.New(slog.DiscardHandler))
		if err != nil {
			tb.Fatal(err)
		}
		if err := s.Close(); err != nil {
			tb.Fatal(err)
		}
	})
	return c.create(tb, "t"+strconv.FormatInt(c.count.Add(1), 10), "model")
}

func (c *cluster) create(tb testing.TB, name, template string) string {
	tb.Helper()
	if c.fail != nil {
		tb.Fatal(c.fail)
	}
	if _, err := c.admin.ExecContext(tb.Context(), "CREATE DATABASE "+name+" TEMPLATE "+template+" STRATEGY file_copy"); err != nil {
		tb.Fatal(err)
	}
	return c.url(name)
}

// engines opens a store of each kind; tests run on both.
var engines = map[string]func(tb testing.TB) *Store{
	"sqlite": func(tb testing.TB) *Store {
		tb.Helper()
		return openTest(tb, Config{Path: filepath.Join(tb.TempDir(), "tutti.db")})
	},
	"postgres": func(tb testing.TB) *Store {
		tb.Helper()
		return openTest(tb, Config{URL: postgres.migrated(tb)})
	},
}

func openTest(tb testing.TB, config Config) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), config, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
			tb.Error(err)
		}
	})
	return s
}

// The blobs and the CA of a server are not in its database: a second one would
// sign and clean up with others.
func TestADatabaseHasOneServer(t *testing.T) {
	t.Parallel()
	url := postgres.migrated(t)
	first, second := openTest(t, Config{URL: url}), openTest(t, Config{URL: url})
	if err := first.Claim(t.Context(), Claim{}); err != nil {
		t.Fatal(err)
	}
	if err := first.Leases.EnrolServer(t.Context(), lease.Server{ID: "first/1", Address: "https://first:8140"}); err != nil {
		t.Fatal(err)
	}
	err := second.Claim(t.Context(), Claim{})
	wantKind(t, err, fault.Conflict)
	if !strings.Contains(fault.Detail(err), "another server (first/1 at https://first:8140) uses this database") {
		t.Errorf("it does not say who: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := second.Claim(t.Context(), Claim{}); err != nil {
		t.Errorf("after the first has ended: %v", err)
	}
}

// Servers that say so share a database, each under its own name; one that does not say so is alone, and they let it not in.
func TestServersShareADatabaseThatSaySo(t *testing.T) {
	t.Parallel()
	url := postgres.migrated(t)
	stores := map[string]*Store{}
	for _, name := range []string{"a", "b", "a's copy", "alone"} {
		stores[name] = openTest(t, Config{URL: url})
	}
	for _, name := range []string{"a", "b"} {
		check(t, stores[name].Claim(t.Context(), Claim{ID: name, Shared: true}))
	}
	for name, said := range map[string]string{
		"a's copy": "its data directory was copied; remove the files server-id, ca/server.pem and ca/server-made.txt", "alone": "another server uses this database",
	} {
		claim := Claim{ID: "a", Shared: name != "alone"}
		err := stores[name].Claim(t.Context(), claim)
		wantKind(t, err, fault.Conflict)
		if !strings.Contains(fault.Detail(err), said) {
			t.Errorf("%s is told: %v", name, err)
		}
	}
	cut(t, stores["a"])
	check(t, stores["a"].renewClaim(t.Context()))
	wantKind(t, stores["alone"].Claim(t.Context(), Claim{ID: "alone"}), fault.Conflict)
	check(t, stores["a"].Close())
	check(t, stores["a's copy"].Claim(t.Context(), Claim{ID: "a", Shared: true})) // it has started again
	check(t, stores["b"].Close())
	check(t, stores["a's copy"].Close())
	check(t, stores["alone"].Claim(t.Context(), Claim{ID: "alone"}))
	late := openTest(t, Config{URL: url})
	err := late.Claim(t.Context(), Claim{ID: "b", Shared: true})
	wantKind(t, err, fault.Conflict)
	if !strings.Contains(fault.Detail(err), "has not the setting cluster") {
		t.Errorf("one of several is told: %v", err)
	}
}

// PostgreSQL itself looks after a client that a network forgot: its session, and the claim with it, ends within a minute.
func TestASessionEndsWithItsClient(t *testing.T) {
	t.Parallel()
	db, err := openPostgres(t.Context(), "postgres://tutti@127.0.0.1:"+postgres.port+"/postgres", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var idle, interval, count int
	if err := db.QueryRowContext(t.Context(), `SELECT current_setting('tcp_keepalives_idle')::int, current_setting('tcp_keepalives_interval')::int,
		current_setting('tcp_keepalives_count')::int`).Scan(&idle, &interval, &count); err != nil { // as the socket has them
		t.Fatal(err)
	}
	if idle+interval*count > 60 {
		t.Errorf("asked after %d s, %d times every %d s", idle, count, interval)
	}
}

// A claim ends with its connection: who notices first has it.
func TestAClaimIsHeld(t *testing.T) {
	t.Parallel()
	url := postgres.migrated(t)
	first, second := openTest(t, Config{URL: url}), openTest(t, Config{URL: url})
	if err := first.Claim(t.Context(), Claim{}); err != nil {
		t.Fatal(err)
	}
	cut(t, first)
	if err := first.renewClaim(t.Context()); err != nil {
		t.Errorf("after the connection was cut: %v", err)
	}
	wantKind(t, second.Claim(t.Context(), Claim{}), fault.Conflict)

	cut(t, first)
	if err := second.Claim(t.Context(), Claim{}); err != nil {
		t.Fatal(err)
	}
	wantKind(t, first.renewClaim(t.Context()), fault.Conflict)
}

// Between the moment when a server opens the records and its claim, or while its claim is lost, somebody else may have them alone: then it must not go on
// with what they were. A server that runs goes on when they were only expanded.
func TestAClaimIsOfTheRecordsAsTheyAre(t *testing.T) {
	t.Parallel()
	claim := Claim{ID: "b", Shared: true}
	for name, c := range map[string]struct {
		change   string
		runs     bool // whether it had a claim before
		goesOn   bool
		mustTell string
	}{
		"moved, a start":     {change: "INSERT INTO moves (id, state, other, at) VALUES ('m', 'left', 'elsewhere', 1)", mustTell: "moved to elsewhere"},
		"moved, a server":    {change: "INSERT INTO moves (id, state, other, at) VALUES ('m', 'left', 'elsewhere', 1)", runs: true, mustTell: "moved to elsewhere"},
		"changed, a start":   {change: "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)", mustTell: "has schema 9999"},
		"expanded, a server": {change: "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)", runs: true, goesOn: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := Config{URL: postgres.migrated(t)}
			s := openTest(t, config)
			again := func() error { return s.Claim(t.Context(), claim) }
			if c.runs {
				check(t, again())
				cut(t, s)
				again = func() error { return s.renewClaim(t.Context()) }
			}
			check(t, alone(t.Context(), config, func(ctx context.Context, q querier) error {
				_, err := q.exec(ctx, c.change)
				return err
			}))
			err := again()
			if c.goesOn {
				check(t, err)
				return
			}
			wantKind(t, err, fault.Conflict)
			if said := fault.Detail(err); !strings.Contains(said, c.mustTell) {
				t.Errorf("it is told: %s", said)
			}
			check(t, alone(t.Context(), config, func(context.Context, querier) error { return nil })) // it holds nothing
		})
	}
}

// cut ends the session that holds the store's claim, as a restart of the database does.
func cut(t *testing.T, s *Store) {
	t.Helper()
	var session int
	if err := s.claimed.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&session); err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.admin.ExecContext(t.Context(), "SELECT pg_terminate_backend($1, 5000)", session); err != nil {
		t.Fatal(err)
	}
}

// onBoth runs a test on both databases.
func onBoth(t *testing.T, test func(t *testing.T, open func(tb testing.TB) *Store)) {
	t.Helper()
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open)
		})
	}
}

// An int where the column has int64 was stored as 0 without a word.
func TestAValueOfAnotherKindIsNoZero(t *testing.T) {
	t.Parallel()
	ran := func(string, []any) error { t.Error("the statement was run"); return nil }
	err := postgresInserting("events", []column{{"line", ints}}, "", [][]any{{int64(1)}, {2}}, ran)
	if err == nil || !strings.Contains(err.Error(), "column line of events: a value is of the type int, not int64") {
		t.Errorf("got %v", err)
	}
}
