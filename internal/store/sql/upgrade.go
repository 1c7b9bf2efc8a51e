package sql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/store/lease"
)

// Upgrade is what a start of this program would do to the records.
type Upgrade struct {
	Schema  int64  // that they have; 0: there are none yet
	Writer  string // the version of the program that first had it; empty: not known
	Newest  int64  // that this program has
	Pending []Migration
	Running []Neighbour
}

// Neighbour is a server that uses the records now.
type Neighbour struct {
	ID      string
	Address string
	Version string
	Schema  int64 // that its program has; 0: it does not say
}

// Refusal is what a start of this program ends with when the records are newer than it.
func (u Upgrade) Refusal() error {
	if u.Schema <= u.Newest {
		return nil
	}
	return tooNew(u.Schema, u.Newest, u.Writer)
}

// Contracts tells whether servers that run have to be stopped before.
func (u Upgrade) Contracts() bool { return u.Schema > 0 && contracts(u.Pending) }

// InTheWay is what a start of this program ends with while those who run could not work with what it changes. Nil: they can, or nobody runs.
func (u Upgrade) InTheWay() error {
	if !u.Contracts() || len(u.Running) == 0 {
		return nil
	}
	return inTheWay(u.Running)
}

func inTheWay(running []Neighbour) error {
	return &fault.Error{
		Kind: fault.Conflict,
		Detail: "this version changes the records in a way that servers of the version before cannot work with, and " +
			cmp.Or(Names(running), "another server") + " uses them; stop all servers, then start this one",
		Hint: "`tutti server --check-upgrade` shows what would be changed; docs/upgrade.md",
	}
}

func contracts(pending []Migration) bool {
	return slices.ContainsFunc(pending, func(m Migration) bool { return m.Kind == Contract })
}

// Examine looks at the records, also beside servers that use them. It changes nothing.
func Examine(ctx context.Context, config Config) (Upgrade, error) {
	list, err := readMigrations()
	if err != nil {
		return Upgrade{}, err
	}
	if config.URL == "" {
		if _, err := os.Stat(config.Path); errors.Is(err, fs.ErrNotExist) {
			return upgradeFrom(0, list), nil
		}
	}
	d, err := OpenDump(ctx, config)
	if err != nil {
		return Upgrade{}, err
	}
	defer d.Close() //nolint:errcheck // it only reads
	q := plain{d.db}
	tables, err := collect(ctx, q, one[string], d.dialect.described.tables)
	if err != nil || len(tables) == 0 {
		return upgradeFrom(0, list), explain(err, "read the schema")
	}
	number, writer, err := schemaOf(ctx, q, tables)
	if err != nil {
		return Upgrade{}, explain(err, "read the schema")
	}
	u := upgradeFrom(number, list)
	u.Writer = writer
	u.Running, err = neighbours(ctx, &base{dialect: d.dialect}, q, tables)
	return u, explain(err, "list servers")
}

func upgradeFrom(schema int64, list []Migration) Upgrade {
	return Upgrade{Schema: schema, Newest: list[len(list)-1].Number, Pending: following(schema, list)}
}

// neighbours are the servers that were seen within the time of a lease. Records of any age are asked.
func neighbours(ctx context.Context, b *base, q querier, tables []string) ([]Neighbour, error) {
	if !b.dialect.postgres || !slices.Contains(tables, "servers") { // a file has one server, which says so by its lock
		return nil, nil
	}
	now, err := b.now(ctx, q)
	if err != nil {
		return nil, err
	}
	has, err := collect(ctx, q, func(row scanner) (name string, err error) {
		var kind string
		return name, row.Scan(&name, &kind)
	}, b.dialect.described.columns, "servers")
	if err != nil {
		return nil, err
	}
	schema := "0"
	if slices.Contains(has, "schema") {
		schema = "schema"
	}
	var running []Neighbour
	_, err = collect(ctx, q, func(row scanner) (s lease.Server, err error) {
		var n Neighbour
		err = row.Scan(&n.ID, &n.Address, &n.Version, &n.Schema, at(&s.Seen))
		s.Silent = lease.Silence(s.Seen, time.UnixMicro(now))
		if s.There() {
			running = append(running, n)
		}
		return s, err
	}, "SELECT id, address, version, "+schema+", seen FROM servers ORDER BY id")
	return running, err
}

// alone keeps all servers from the records until the connection is closed: before a contract nobody may use them. Conflict when somebody does.
func (s *Store) alone(ctx context.Context, db *sql.DB, d dialect) (*sql.Conn, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	ours, err := lockSoon(ctx, conn, "SELECT pg_try_advisory_lock("+recordsLock+")")
	if err == nil && ours {
		return conn, nil
	}
	if err == nil {
		err = stopThem(ctx, db, d)
	}
	letGo(ctx, conn)
	return nil, err
}

// stopThem refuses to change records under those who use them.
func stopThem(ctx context.Context, db *sql.DB, d dialect) error {
	q := plain{db}
	var running []Neighbour
	if tables, err := collect(ctx, q, one[string], d.described.tables); err == nil {
		running, _ = neighbours(ctx, &base{dialect: d}, q, tables) // without them the refusal says less
	}
	return inTheWay(running)
}

// Names lists servers with their versions.
func Names(all []Neighbour) string {
	texts := make([]string, len(all))
	for i, n := range all {
		texts[i] = n.ID + " (tutti " + cmp.Or(n.Version, "of an unknown version") + ")"
	}
	return strings.Join(texts, ", ")
}
