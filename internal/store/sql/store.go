package sql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Config says where the records are.
type Config struct {
	Path       string // SQLite: the file; it is made if need be
	URL        string // PostgreSQL: postgres://...; goes before Path
	CacheBytes int64  // SQLite: memory for pages; 0 means 32 MB
	QueueActs  int    // SQLite: writes that may wait; 0 means 1024
	Version    string // of this program, for those who find the schema newer than theirs
}

// Store is the records, open: each part keeps those of one area, and all stand on the same
// connections. See the package comment.
type Store struct {
	*base

	Access        *Access
	Attendances   *Attendances
	Audit         *Audit
	Authority     *Authority
	Backups       *Backups
	BlobMarks     *BlobMarks
	Calls         *Calls
	Catalogs      *Catalogs
	Catalogue     *Catalogue
	CodeChecks    *CodeChecks
	CodeSources   *CodeSources
	Deliveries    *Deliveries
	Events        *Events
	FactQueue     *FactQueue
	Facts         *Facts
	Groups        *Groups
	Jobs          *Jobs
	Leases        *Leases
	Nodes         *Nodes
	Memos         *Memos
	Policies      *Policies
	Presence      *Presence
	Previews      *Previews
	Queries       *Queries
	Queue         *Queue
	Releases      *Releases
	Reports       *Reports
	Reusables     *Reusables
	SavedQueries  *SavedQueries
	Schedules     *Schedules
	Secrets       *Secrets
	Usage         *Usage
	Verifications *Verifications
	Versions      *Versions
	Wants         *Wants

	closing sync.Once
}

// newStore makes the parts, which are of use when b is open.
func newStore(b *base) *Store {
	inputs := &Reusables{base: b}
	queue := &Queue{base: b, inputs: inputs}
	return &Store{
		base:   b,
		Access: &Access{b}, Attendances: &Attendances{b}, Audit: &Audit{b}, Authority: &Authority{b, make(chan struct{}, 1)}, Backups: &Backups{b},
		BlobMarks: &BlobMarks{b}, Calls: &Calls{b}, Catalogs: &Catalogs{b}, Catalogue: &Catalogue{b}, CodeChecks: &CodeChecks{b}, CodeSources: &CodeSources{b},
		Deliveries: &Deliveries{base: b, inputs: inputs}, Events: &Events{b}, FactQueue: &FactQueue{b}, Facts: &Facts{base: b}, Groups: &Groups{b},
		Jobs: &Jobs{b}, Leases: &Leases{b}, Nodes: &Nodes{b}, Memos: &Memos{b}, Policies: &Policies{b}, Presence: &Presence{b}, Previews: &Previews{b},
		Queries: newQueries(b), Queue: queue,
		Releases: &Releases{b}, Reports: newReports(b), Reusables: inputs, SavedQueries: &SavedQueries{b}, Schedules: &Schedules{b},
		Secrets: &Secrets{b}, Usage: &Usage{b}, Verifications: &Verifications{base: b, inputs: inputs}, Versions: &Versions{b}, Wants: &Wants{base: b, queue: queue},
	}
}

// Open opens the records and brings their schema up to date. The store can be used
// at once; Run and Tidy look after it. Close it when nobody uses it any more.
func Open(ctx context.Context, config Config, log *slog.Logger) (*Store, error) {
	packer, err := newCompressor()
	if err != nil {
		return nil, err
	}
	s := newStore(&base{log: log, packer: packer})
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
	pool, err := openPostgres(ctx, config.URL, &s.wires)
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

// Run checks the file once if the last server did not close it. It returns when ctx is done.
func (s *Store) Run(ctx context.Context) error {
	if s.file != nil && !s.file.clean {
		s.check(ctx)
	}
	<-ctx.Done()
	return nil
}

// Tidy throws away hourly what nothing refers to, and looks for lost witnesses of fact kinds, until ctx is done. One of all servers does
// at a time.
func (s *Store) Tidy(ctx context.Context) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := errors.Join(s.tidy(ctx), s.Facts.findWitnesses(ctx)); err != nil && ctx.Err() == nil {
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
