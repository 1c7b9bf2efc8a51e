package rivals

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/tutti-project/tutti/bench/rivals/measure"
)

const postgresPackage = "postgresql postgresql-contrib"

// Postgres is a private cluster on a loopback port, with PostgreSQL's own
// defaults: every commit reaches the disk.
type Postgres struct {
	proc *process
	port int
	bin  string
}

// StartPostgres makes a cluster in dir, unless one is there already, and starts
// it with settings such as "shared_buffers=1GB". PostgreSQL refuses to run as root, so
// root's harness runs it as the user postgres.
func StartPostgres(ctx context.Context, dir string, settings ...string) (*Postgres, error) {
	bin, err := postgresBin()
	if err != nil {
		return nil, err
	}
	port, err := FreePort(ctx)
	if err != nil {
		return nil, err
	}
	data, asUser, err := postgresDir(dir)
	if err != nil {
		return nil, err
	}
	p := &Postgres{port: port, bin: bin}
	if err := p.initialise(ctx, data, asUser); err != nil {
		return nil, err
	}
	args := []string{"-D", data, "-h", "127.0.0.1", "-p", strconv.Itoa(port), "-k", data}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	p.proc, err = start(ctx, command{
		path: filepath.Join(bin, "postgres"), dir: data, user: asUser, log: filepath.Join(dir, "postgres.log"),
		args: args,
	})
	if err != nil {
		return nil, err
	}
	if err := p.proc.waitFor(ctx, p.ready); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// initialise makes the cluster's files. A cluster that is kept from an earlier
// run is left as it is.
func (p *Postgres) initialise(ctx context.Context, data, asUser string) error {
	if _, err := os.Stat(filepath.Join(data, "PG_VERSION")); err == nil {
		return nil
	}
	initdb := exec.CommandContext(ctx, filepath.Join(p.bin, "initdb"), //nolint:gosec // found by postgresBin
		"-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8")
	if asUser != "" {
		who, err := credential(asUser)
		if err != nil {
			return err
		}
		initdb.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	}
	initdb.Dir = data
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

// URL is the address of a database of the cluster.
func (p *Postgres) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", p.port, database)
}

// postgresBin finds the newest version's programs; Debian keeps them off the PATH.
func postgresBin() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return "", &MissingError{Program: "PostgreSQL", Install: "apt-get install --no-install-recommends " + postgresPackage}
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1]), nil
}

// postgresDir makes the cluster's directory and says as whom to run.
func postgresDir(dir string) (data, asUser string, err error) {
	data = filepath.Join(dir, "postgres")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return "", "", err
	}
	if os.Getuid() != 0 {
		return data, "", nil
	}
	if _, err := user.Lookup("postgres"); err != nil {
		return "", "", fmt.Errorf("run PostgreSQL as root: %w", err)
	}
	who, err := credential("postgres")
	if err != nil {
		return "", "", err
	}
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // the cluster's user must pass through
		return "", "", err
	}
	return data, "postgres", os.Chown(data, int(who.Uid), int(who.Gid))
}

func (p *Postgres) ready(ctx context.Context) bool { return p.sql(ctx, "postgres", "select 1") == nil }

// sql runs one statement as the superuser.
func (p *Postgres) sql(ctx context.Context, database, statement string) error {
	_, err := p.ask(ctx, database, statement)
	return err
}

// ask is sql, and returns what it printed. An error has the words of psql.
func (p *Postgres) ask(ctx context.Context, database, statement string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", //nolint:gosec // statements of this package
		"-h", "127.0.0.1", "-p", strconv.Itoa(p.port), "-U", "postgres", "-d", database, "-c", statement)
	var words bytes.Buffer
	cmd.Stderr = &words
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", statement, err, words.Bytes(), out)
	}
	return strings.TrimSpace(string(out)), nil
}

// MakeDatabase makes a database, unless it is there already.
func (p *Postgres) MakeDatabase(ctx context.Context, name string) error {
	if p.sql(ctx, name, "select 1") == nil {
		return nil
	}
	return p.sql(ctx, "postgres", "create database "+name)
}

// Analyze gives the planner statistics of a database: what was loaded at once is
// planned badly until the server has got round to that by itself.
func (p *Postgres) Analyze(ctx context.Context, database string) error {
	return p.sql(ctx, database, "analyze")
}

// Bytes is what a database takes on the disk.
func (p *Postgres) Bytes(ctx context.Context, database string) (int64, error) {
	size, err := p.ask(ctx, database, "select pg_database_size(current_database())")
	if err != nil {
		return 0, fmt.Errorf("the size of database %s: %w", database, err)
	}
	return strconv.ParseInt(size, 10, 64)
}

// Version is the server package's: its programs lie below /usr/lib/postgresql/15.
func (p *Postgres) Version(ctx context.Context) string {
	return packageVersion(ctx, "postgresql-"+filepath.Base(filepath.Dir(p.bin)))
}

// Usage is the whole cluster's.
func (p *Postgres) Usage() (measure.Usage, error) { return p.proc.usage() }

// Stop ends the cluster: "fast", as pg_ctl calls it.
func (p *Postgres) Stop() error { return p.proc.stop(syscall.SIGINT) }
