package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/store/backup"
	"github.com/tutti-project/tutti/internal/store/durable"
	"github.com/tutti-project/tutti/internal/store/move"
)

// Name is the database in words, without a password.
func (c Config) Name() string {
	if c.URL == "" {
		return "SQLite " + c.Path
	}
	config, err := pgx.ParseConfig(c.URL)
	if err != nil { // which may hold the password
		return "PostgreSQL"
	}
	return fmt.Sprintf("PostgreSQL %s at %s:%d", config.Database, config.Host, config.Port)
}

// readMark is what a database says of a move. One of an older schema says nothing.
func readMark(ctx context.Context, q querier, d dialect) (m move.Mark, err error) {
	there, err := one[bool](q.row(ctx, d.described.has, "moves"))
	if err != nil || !there {
		return m, err
	}
	err = q.row(ctx, "SELECT id, state, other, at FROM moves").Scan(&m.ID, &m.State, &m.Other, at(&m.At))
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return m, err
}

func writeMark(ctx context.Context, q querier, m move.Mark) error {
	_, err := q.exec(ctx, "INSERT INTO moves (id, state, other, at) VALUES ($1, $2, $3, $4)", m.ID, string(m.State), m.Other, micros(m.At))
	return err
}

// refuseMoved is a Conflict for a database whose records do not count.
func refuseMoved(ctx context.Context, q querier, d dialect) error {
	m, err := readMark(ctx, q, d)
	if err != nil {
		return err
	}
	return m.Refuse()
}

// acceptMoved has records count again that moved away. It says whether they had.
func acceptMoved(ctx context.Context, q querier, d dialect) (moved bool, err error) {
	m, err := readMark(ctx, q, d)
	if err != nil || m.State == move.Free {
		return false, err
	}
	if m.State != move.Left {
		return false, m.Refuse()
	}
	_, err = q.exec(ctx, "DELETE FROM moves")
	return true, err
}

// AcceptMoved has records in PostgreSQL count again that moved away, when somebody wants them as they are. It says whether they had moved.
func AcceptMoved(ctx context.Context, config Config) (moved bool, err error) {
	err = alone(ctx, config, func(ctx context.Context, q querier) (err error) {
		moved, err = acceptMoved(ctx, q, postgresDialect)
		return err
	})
	return moved, explain(err, "accept the database")
}

// StandingOf looks at a database before a move. Servers may use it.
func StandingOf(ctx context.Context, config Config) (s move.Standing, err error) {
	s.Name = config.Name()
	if config.URL == "" {
		if size, err := fileSize(config.Path); err != nil || size == 0 {
			log, err2 := fileSize(config.Path + "-wal") // whose rows would come to a new file
			s.Used = log > 0
			return s, errors.Join(err, err2)
		}
	}
	d, err := openMoving(ctx, config)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	err = d.look(ctx, func(q querier) (err error) {
		if s.Mark, err = readMark(ctx, q, d.dialect); err != nil {
			return err
		}
		tables, err := collect(ctx, q, one[string], d.dialect.described.tables)
		for i := 0; i < len(tables) && err == nil && !s.Used; i++ {
			if !filledByMigrations(tables[i]) {
				s.Used, err = one[bool](q.row(ctx, "SELECT EXISTS (SELECT 1 FROM "+identifier(tables[i])+")"))
			}
		}
		return err
	})
	return s, explain(err, "look at %s", s.Name)
}

// fileSize is what a file has; one that is missing has nothing.
func fileSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, unusable(path, err)
	}
	return info.Size(), nil
}

// moving is a database that is read for a move, whatever it says of itself.
type moving struct{ *Dump }

func openMoving(ctx context.Context, config Config) (moving, error) {
	d, err := OpenDump(ctx, config)
	return moving{d}, err
}

// look reads in one transaction.
func (d moving) look(ctx context.Context, read func(q querier) error) error {
	tx, err := d.db.BeginTx(ctx, d.dialect.snapshot)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // it only read
	return read(plain{tx})
}

// MoveSource is records that move away. No server uses them until Close. It implements move.Source.
type MoveSource struct {
	config Config
	file   *sqliteFile // SQLite
	pool   *sql.DB     // PostgreSQL
	conn   *sql.Conn   // whose session has the claim
}

var _ move.Source = (*MoveSource)(nil)

// OpenMoveSource keeps servers away from records. Conflict while one uses them.
func OpenMoveSource(ctx context.Context, config Config) (*MoveSource, error) {
	s := &MoveSource{config: config}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(explain(err, "hold %s", config.Name()), s.Close())
	}
	return s, nil
}

func (s *MoveSource) open(ctx context.Context) (err error) {
	if s.config.URL != "" {
		s.pool, s.conn, err = claimed(ctx, s.config)
		return err
	}
	if _, err := os.Stat(s.config.Path); err != nil {
		return unusable(s.config.Path, err)
	}
	if s.file, err = claim(s.config.Path); err != nil {
		return err
	}
	number, err := s.file.number()
	if err != nil {
		return unusable(s.config.Path, err)
	}
	return s.file.check(number, readNote(s.file.lock.said))
}

// ErrInUse is why records cannot be held: a server has them.
var ErrInUse = errors.New("a server uses them")

// claimed opens a database for a caller who is the only one to use it.
func claimed(ctx context.Context, config Config) (pool *sql.DB, conn *sql.Conn, err error) {
	if pool, err = openPostgres(ctx, config.URL, nil); err != nil {
		return nil, nil, err
	}
	if conn, err = pool.Conn(ctx); err == nil {
		if err = claimOn(ctx, conn, Claim{}); err == nil {
			return pool, conn, nil
		}
		_ = conn.Close()
	}
	_ = pool.Close()
	if fault.Is(err, fault.Conflict) {
		err = fault.Wrap(fault.Conflict, ErrInUse, "a server uses %s", config.Name())
	}
	return nil, nil, err
}

// Standing implements move.Source. Conflict for a schema that is not this program's: rows are moved as they are.
func (s *MoveSource) Standing(ctx context.Context) (move.Standing, error) {
	standing, err := StandingOf(ctx, s.config)
	if err != nil || standing.State != move.Free {
		return standing, err
	}
	return standing, CheckSchema(ctx, s.config)
}

// CheckSchema is a Conflict for a database whose schema is not this program's.
func CheckSchema(ctx context.Context, config Config) (err error) {
	d, err := openMoving(ctx, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.look(ctx, func(q querier) error {
		_, behind, err := examineWith(ctx, q, d.dialect)
		if err == nil && behind {
			err = fault.New(fault.Conflict,
				"%s has an older schema than this program: start the server with this version once, which brings it up to date, then move it", config.Name())
		}
		return explain(err, "look at %s", config.Name())
	})
}

// Records implements move.Source.
func (s *MoveSource) Records(ctx context.Context) (backup.Records, error) {
	return OpenDump(ctx, s.config)
}

// Sums implements move.Source.
func (s *MoveSource) Sums(ctx context.Context) (move.Sums, error) { return sumsOf(ctx, s.config) }

// Leave implements move.Source.
func (s *MoveSource) Leave(ctx context.Context, m move.Mark) error {
	mark := func(ctx context.Context, q querier) error { return writeMark(ctx, q, m) }
	if s.file == nil {
		return explain(within(ctx, s.conn, mark), "mark %s", s.config.Name())
	}
	file := s.file
	s.file = nil // it gives the lock back
	return explain(file.useOnce(ctx, mark), "mark %s", s.config.Name())
}

// Close lets servers use them again.
func (s *MoveSource) Close() error {
	if s.file != nil {
		s.file.lock.release()
	}
	if s.conn == nil {
		return nil
	}
	return errors.Join(s.conn.Close(), s.pool.Close())
}

// within runs a on a connection, in a transaction.
func within(ctx context.Context, conn *sql.Conn, a act) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := a(ctx, plain{tx}); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

// alone runs a on a database that nobody else uses.
func alone(ctx context.Context, config Config, a act) error {
	if config.URL == "" {
		file, err := claim(config.Path)
		if err != nil {
			return err
		}
		return file.useOnce(ctx, a)
	}
	pool, conn, err := claimed(ctx, config)
	if err != nil {
		return err
	}
	return errors.Join(within(ctx, conn, a), conn.Close(), pool.Close())
}

// useOnce opens the file as a server does, runs a, and gives it back.
func (f *sqliteFile) useOnce(ctx context.Context, a act) error {
	if err := f.enter(); err != nil {
		f.lock.release()
		return err
	}
	db, err := f.pool(1, 8<<20)
	if err != nil {
		f.giveUp(ctx, nil)
		return err
	}
	if err := f.begin(ctx, db); err != nil {
		f.giveUp(ctx, db)
		return err
	}
	err = f.within(ctx, db, a)
	return errors.Join(err, f.leave(ctx, db, db.Close))
}

func (f *sqliteFile) within(ctx context.Context, db *sql.DB, a act) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	return errors.Join(within(ctx, conn, a), conn.Close())
}

// MoveTarget is where records move to. It implements move.Target.
type MoveTarget struct{ Config Config }

var _ move.Target = MoveTarget{}

// Standing implements move.Target.
func (t MoveTarget) Standing(ctx context.Context) (move.Standing, error) {
	return StandingOf(ctx, t.Config)
}

// Loader implements move.Target. A file has its name only when it is whole.
func (t MoveTarget) Loader(ctx context.Context, schema backup.Schema, m move.Mark) (backup.Loader, error) {
	if t.Config.URL != "" {
		return openLoader(ctx, t.Config, schema, &m)
	}
	standing, err := t.Standing(ctx)
	if err != nil {
		return nil, err
	}
	if standing.Used && (standing.State != move.Arriving || standing.Other != m.Other) {
		return nil, fault.New(fault.Conflict, "%s is there already: nothing is overwritten", t.Config.Path)
	}
	half := t.Config
	half.Path += ".moving"
	for _, old := range []string{half.Path, half.Path + ".lock", t.Config.Path, t.Config.Path + "-wal", t.Config.Path + "-shm"} {
		if err := os.Remove(old); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, unusable(old, err)
		}
	}
	loader, err := openLoader(ctx, half, schema, &m)
	return &movedFile{loader, t.Config.Path, half.Path}, err
}

// movedFile is a Loader whose file gets its name when it has finished.
type movedFile struct {
	*Loader
	path, half string
}

// Finish implements backup.Loader.
func (f *movedFile) Finish(ctx context.Context, numbers map[string]int64) error {
	if err := errors.Join(f.Loader.Finish(ctx, numbers), f.Close()); err != nil { //nolint:contextcheck // ctx may be over, and the database is closed even so
		return err
	}
	return explain(f.place(), "finish the database")
}

// place gives the file its name, on the disk, and the lock beside it the number of its use.
func (f *movedFile) place() error {
	whole := &sqliteFile{path: f.half}
	number, err := whole.number()
	if err != nil {
		return unusable(f.half, err)
	}
	lock, err := lockFile(f.path + ".lock")
	if err != nil {
		return err
	}
	defer lock.release()
	if err := errors.Join(syncFile(f.half), lock.write(note{word: isEnded, number: number}.String())); err != nil {
		return unusable(f.half, err)
	}
	if err := os.Rename(f.half, f.path); err != nil {
		return unusable(f.path, err)
	}
	_ = os.Remove(f.half + ".lock")
	return durable.SyncDir(filepath.Dir(f.path))
}

func syncFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// Sums implements move.Target.
func (t MoveTarget) Sums(ctx context.Context) (move.Sums, error) { return sumsOf(ctx, t.Config) }

// Arrive implements move.Target. Whoever used the records before is gone: servers, their leases and who was connected to them.
func (t MoveTarget) Arrive(ctx context.Context, _ move.Mark) error {
	err := alone(ctx, t.Config, func(ctx context.Context, q querier) error {
		if err := free(ctx, q); err != nil {
			return err
		}
		_, err := q.exec(ctx, "DELETE FROM moves")
		return err
	})
	return explain(err, "let servers use %s", t.Config.Name())
}
