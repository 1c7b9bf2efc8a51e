package sql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// Config says where the records are.
type Config struct {
	Path       string // SQLite: the file; it is made if need be
	URL        string // PostgreSQL: postgres://...; goes before Path
	CacheBytes int64  // SQLite: memory for pages; 0 means 32 MB
	QueueActs  int    // SQLite: writes that may wait; 0 means 1024
	Version    string // of this program, for those who find the schema newer than theirs
}

// Store keeps all records. See the package comment.
type Store struct {
	log       *slog.Logger
	dialect   dialect
	pool      *sql.DB // PostgreSQL; SQLite: readers
	reads     querier // on pool
	write1    *sql.DB // SQLite: the writer's connection
	writer    *writer // SQLite
	file      *sqliteFile
	claimed   *sql.Conn // PostgreSQL: whose session holds the claim
	packer    *compressor
	groups    groupCache
	paths     pathCache
	factLists listCache
	asking    chan struct{} // a place for each query that runs
	compiling chan struct{} // the same, of compilations
	closing   sync.Once
	guard     guard
	onChange  func() // see OnChange; nil: nobody listens
}

// Open opens the records and brings their schema up to date. The store can be used
// at once; Run looks after it. Close it when nobody uses it any more.
func Open(ctx context.Context, config Config, log *slog.Logger) (*Store, error) {
	packer, err := newCompressor()
	if err != nil {
		return nil, err
	}
	s := &Store{log: log, packer: packer, asking: make(chan struct{}, maxQueries), compiling: make(chan struct{}, maxCompileQueries)}
	if config.URL != "" {
		err = s.openPostgres(ctx, config)
	} else {
		err = s.openSQLite(ctx, config)
	}
	if err != nil {
		return nil, explain(err, "open the database")
	}
	return s, nil
}

func (s *Store) openPostgres(ctx context.Context, config Config) error {
	pool, err := openPostgres(ctx, config.URL)
	if err != nil {
		return err
	}
	if err := s.bringUp(ctx, pool, postgresDialect, config); err != nil {
		_ = pool.Close()
		return err
	}
	s.dialect, s.pool, s.reads = postgresDialect, pool, plain{pool}
	return nil
}

func (s *Store) openSQLite(ctx context.Context, config Config) error {
	file, err := claim(config.Path)
	if err != nil {
		return err
	}
	s.file, s.dialect = file, sqliteDialect
	if err := file.enter(); err != nil {
		file.lock.release()
		return err
	}
	if err := s.openPools(ctx, config); err != nil {
		if s.writer != nil {
			s.writer.close()
		}
		file.giveUp(ctx, s.write1)
		return err
	}
	return nil
}

func (s *Store) openPools(ctx context.Context, config Config) error {
	cache := cmp.Or(config.CacheBytes, 32<<20)
	var err error
	if s.write1, err = s.file.pool(1, cache/2); err != nil {
		return err
	}
	if err := s.bringUp(ctx, s.write1, sqliteDialect, config); err != nil {
		return err
	}
	if err := s.file.begin(ctx, s.write1); err != nil {
		return err
	}
	conn, err := s.write1.Conn(ctx)
	if err != nil {
		return err
	}
	s.writer = newWriter(conn, cmp.Or(config.QueueActs, 1024))
	if s.pool, err = s.file.pool(sqliteReaders, cache/2/sqliteReaders, "query_only(1)"); err != nil {
		return err
	}
	s.reads = &prepared{on: s.pool, statements: map[string]*sql.Stmt{}}
	return nil
}

// Close ends all connections. Writes that come later are Unavailable.
func (s *Store) Close() error {
	var err error
	s.closing.Do(func() {
		if s.writer != nil {
			s.writer.close()
		}
		if p, ok := s.reads.(*prepared); ok {
			p.close()
		}
		if s.claimed != nil {
			err = s.claimed.Close()
		}
		err = errors.Join(err, s.pool.Close())
		if s.write1 != nil {
			err = errors.Join(err, s.file.leave(context.Background(), s.write1, s.write1.Close)) // the last connection moves the WAL into the file
		}
	})
	return err
}

// Run looks after the store until ctx is done: it checks the file once if the last
// server did not close it, and hourly throws away what nothing refers to and looks for
// lost witnesses of fact kinds.
func (s *Store) Run(ctx context.Context) error {
	if s.file != nil && !s.file.clean {
		s.check(ctx)
	}
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := errors.Join(s.tidy(ctx), s.findWitnesses(ctx)); err != nil && ctx.Err() == nil {
				s.log.ErrorContext(ctx, "tidying the database failed, will retry", "err", err)
			}
		}
	}
}

// check reads the whole file once, without holding anybody up.
func (s *Store) check(ctx context.Context) {
	s.log.InfoContext(ctx, "the database was not closed when it was last used, checking it")
	result, err := one[string](s.reads.row(ctx, "PRAGMA quick_check(1)"))
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.log.ErrorContext(ctx, "the database could not be checked", "err", err)
	case result != "ok":
		s.log.ErrorContext(ctx, "the database file is damaged; restore it from a backup", "found", result)
	default:
		s.log.InfoContext(ctx, "the database is whole")
	}
}

// tidy removes parameters that no resource has any more, a few at a time.
func (s *Store) tidy(ctx context.Context) error {
	for {
		var count int64
		err := s.write(ctx, func(ctx context.Context, q querier) (err error) {
			count, err = q.exec(ctx, `DELETE FROM resource_parameters WHERE hash IN (
				SELECT p.hash FROM resource_parameters p
				WHERE NOT EXISTS (SELECT 1 FROM resources r WHERE r.parameters = p.hash) LIMIT 500)`)
			return err
		})
		if err != nil || count < 500 {
			return explain(err, "tidy parameters")
		}
	}
}

// write runs a in a transaction and returns when it is on disk.
func (s *Store) write(ctx context.Context, a act) error {
	if admit := s.guard.admit.Load(); admit != nil {
		if err := (*admit)(); err != nil {
			return err
		}
	}
	err := s.commit(ctx, a)
	s.guard.note(err)
	return err
}

func (s *Store) commit(ctx context.Context, a act) error {
	if s.writer != nil {
		return s.writer.do(ctx, a)
	}
	for range 8 {
		err := s.transact(ctx, a)
		if !lost(err) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return fault.Later(time.Second, "the database is busy with the same rows")
}

func (s *Store) transact(ctx context.Context, a act) error {
	tx, err := s.pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := a(ctx, plain{tx}); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

// snapshot runs read on one state of the records.
func (s *Store) snapshot(ctx context.Context, read act) error {
	tx, err := s.pool.BeginTx(ctx, s.dialect.snapshot)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // it only read
	return read(ctx, plain{tx})
}

// snapshotOften is snapshot for what every check-in asks: statements stay prepared on
// SQLite, where preparing one costs more than running it. Only fixed texts may be
// asked: they are kept.
func (s *Store) snapshotOften(ctx context.Context, read act) error {
	kept, ok := s.reads.(*prepared)
	if !ok {
		return s.snapshot(ctx, read)
	}
	tx, err := s.pool.BeginTx(ctx, s.dialect.snapshot)
	if err != nil {
		return err
	}
	q := &preparedWithin{plain: plain{tx}, tx: tx, kept: kept}
	err = read(ctx, q)
	_ = tx.Rollback() // it only read
	kept.learn(ctx, q.missed)
	return err
}

// again repeats a write that was prepared with rows that changed meanwhile.
func again(ctx context.Context, try func() error) error {
	for range 100 {
		err := try()
		if !errors.Is(err, errStale) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return fault.Later(time.Second, "too many write the same row at once")
}
