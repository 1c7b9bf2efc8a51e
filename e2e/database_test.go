package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// database is a PostgreSQL of its own. It can be killed, stopped in the middle, and, in a place of a network, told another time.
type database struct {
	tb         testing.TB
	dir        string
	through    []string // what becomes it
	url, local string   // for who is at another place, and for who has its socket, whatever is cut
	offset     string   // a file with how far its clock is off
	settings   []string // as -c NAME=VALUE
	cmd        *exec.Cmd
	ended      chan struct{}
}

// newDatabase makes one that has no address besides its socket; run starts it.
func newDatabase(tb testing.TB, settings ...string) *database {
	tb.Helper()
	d := makeDatabase(tb, settings)
	d.init()
	return d
}

// makeDatabase makes its directory, in which there is nothing yet.
func makeDatabase(tb testing.TB, settings []string) *database {
	tb.Helper()
	dir, err := os.MkdirTemp("", "e2e-pg-") //nolint:usetesting // a socket's path has at most 107 bytes
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	d := &database{
		tb: tb, dir: dir, local: "postgres://tutti@/postgres?host=" + dir,
		settings: append([]string{"-c", "shared_buffers=16MB", "-c", "fsync=off", "-c", "listen_addresses="}, settings...),
	}
	if os.Geteuid() == 0 { // PostgreSQL refuses to run as root
		d.through = []string{"setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"}
		d.give(dir)
	}
	return d
}

// give makes a directory one of PostgreSQL's user.
func (d *database) give(dir string) {
	d.tb.Helper()
	as := credential(d.tb, "postgres")
	if err := os.Chown(dir, int(as.Uid), int(as.Gid)); err != nil {
		d.tb.Fatal(err)
	}
}

func (d *database) init() {
	d.tb.Helper()
	initdb := d.command("initdb", "-D", d.data(), "-U", "tutti", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C.UTF-8")
	if out, err := initdb.CombinedOutput(); err != nil {
		d.tb.Fatalf("initdb: %v\n%s", err, out)
	}
}

// command is one of PostgreSQL's programs, as the server's user.
func (d *database) command(program string, args ...string) *exec.Cmd {
	d.tb.Helper()
	words := slices.Concat(d.through, []string{filepath.Join(postgresBin(d.tb), program)}, args)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.SysProcAttr, cmd.Env, cmd.Dir = &syscall.SysProcAttr{Setpgid: true}, cleanEnv(), d.dir
	return cmd
}

// run starts it, until the test ends.
func (d *database) run() {
	d.tb.Helper()
	d.start()
	d.tb.Cleanup(func() {
		d.freeze(false)
		_ = d.cmd.Process.Signal(syscall.SIGQUIT)
		<-d.ended
	})
	d.awaitUp()
}

func startDatabase(t *testing.T, n *network, at string) *database {
	t.Helper()
	d := makeDatabase(t, []string{"-c", "listen_addresses=" + n.places[at].address})
	if err := os.Mkdir(d.data(), 0o700); err != nil {
		t.Fatal(err)
	}
	mountTmpfsAt(t, d.data(), "size=1g")
	d.give(d.data())
	d.init()
	d.url, d.offset = fmt.Sprintf("postgres://tutti@%s/postgres?sslmode=disable", at), filepath.Join(d.dir, "offset")
	writeFile(t, d.offset, "+0")
	allowed, err := os.OpenFile(filepath.Join(d.data(), "pg_hba.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = allowed.WriteString("host all all 10.77.0.0/16 trust\n")
	if err := errors.Join(err, allowed.Close(), os.Chmod(d.offset, 0o644)); err != nil {
		t.Fatal(err)
	}
	library, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil || len(library) == 0 {
		t.Fatal("libfaketime is missing: apt-get install faketime")
	}
	d.through = slices.Concat(n.through(at), d.through, []string{
		"env", "LD_PRELOAD=" + library[0], "FAKETIME_TIMESTAMP_FILE=" + d.offset,
		"FAKETIME_CACHE_DURATION=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_DONT_RESET=1",
	})
	d.run()
	return d
}

func (d *database) data() string { return filepath.Join(d.dir, "data") }

// start starts it, and does not wait until it is there. What was killed may hold its memory for a moment: then it is started again.
func (d *database) start() {
	d.tb.Helper()
	log, err := os.OpenFile(filepath.Join(d.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.tb.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	d.cmd = d.command("postgres", slices.Concat([]string{"-D", d.data(), "-k", d.dir}, d.settings)...)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		d.tb.Fatal(err)
	}
	cmd, ended := d.cmd, make(chan struct{})
	d.ended = ended
	go func() { _ = cmd.Wait(); close(ended) }()
}

// found says whether its log has a text.
func (d *database) found(text string) bool {
	d.tb.Helper()
	log, err := os.ReadFile(filepath.Join(d.dir, "log"))
	if err != nil {
		d.tb.Error(err)
	}
	return strings.Contains(string(log), text)
}

func (d *database) gone() bool {
	select {
	case <-d.ended:
		return true
	default:
		return false
	}
}

// awaitUp waits until it takes connections.
func (d *database) awaitUp() {
	d.tb.Helper()
	eventually(d.tb, patience, "PostgreSQL takes connections", func() bool {
		if d.gone() {
			d.start()
		}
		return exec.Command(filepath.Join(postgresBin(d.tb), "pg_isready"), "-h", d.dir, "-U", "tutti", "-d", "postgres").Run() == nil
	})
}

// kill is kill -9 of the postmaster, and says whether it ran: its other processes end when they notice.
func (d *database) kill() bool {
	ran := !d.gone()
	_ = d.cmd.Process.Kill()
	<-d.ended
	return ran
}

// freeze stops all of its processes in the middle of what they do, or lets them go on, and says whether it ran.
func (d *database) freeze(frozen bool) bool { return !d.gone() && freeze(d.cmd.Process.Pid, frozen) }

// skew sets its clock off, such as by +1h, within a second.
func (d *database) skew(offset string) {
	d.tb.Helper()
	if err := os.WriteFile(d.offset, []byte(offset), 0o600); err != nil { // its mode stays
		d.tb.Fatal(err)
	}
}

// ahead is how far its clock is before ours, to the second.
func (d *database) ahead(t *testing.T) time.Duration {
	t.Helper()
	seconds, err := strconv.ParseInt(d.sql(t, "SELECT floor(extract(epoch FROM clock_timestamp()))::bigint"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Until(time.Unix(seconds, 0)).Round(time.Second)
}

// sql asks it, at its own socket.
func (d *database) sql(t *testing.T, text string) string {
	t.Helper()
	return psql(t, d.local, text)
}

// psql asks a database itself: a line for each row, with tabs between its values.
func psql(t *testing.T, url, text string) string {
	t.Helper()
	r := execute(t, cleanEnv(), time.Minute, filepath.Join(postgresBin(t), "psql"), "-v", "ON_ERROR_STOP=1", "-At", "-F", "\t", "-c", text, url)
	if r.code != 0 {
		t.Fatalf("%s: %s", text, r.text())
	}
	return strings.TrimRight(r.out, "\n")
}

// rows are the rows of an answer.
func (d *database) rows(t *testing.T, text string) (rows [][]string) {
	t.Helper()
	for line := range strings.Lines(d.sql(t, text)) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return rows
}
