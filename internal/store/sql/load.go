package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"os"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/store/backup"
	"github.com/tutti-project/tutti/internal/store/move"
)

// Loader fills a fresh database with rows of any engine, in one transaction. It implements
// backup.Loader.
//
// Indexes are made when the rows are there, which is several times faster. SQLite does without a
// journal: a file that was not finished is thrown away anyway (backup.MarkerFile).
type Loader struct {
	dialect dialect
	config  Config
	db      *sql.DB
	conn    *sql.Conn
	q       *prepared
	file    *sqliteFile // SQLite
	tables  map[string]schemaTable
	added   [][2]string // indexes and triggers: what drops one and what makes it
	over    bool
	mark    *move.Mark // what the database says then; nil: nothing
	anew    bool       // what is there came with a move that did not end
}

var _ backup.Loader = (*Loader)(nil)

// OpenLoader makes the tables as they were at a schema. Conflict for a newer one than this
// program knows, and for a database that has rows already or that a server uses.
func OpenLoader(ctx context.Context, config Config, schema backup.Schema) (*Loader, error) {
	return openLoader(ctx, config, schema, nil)
}

// openLoader is OpenLoader; the database has a mark in the end, and may have what came with an earlier one of the same kind.
func openLoader(ctx context.Context, config Config, schema backup.Schema, mark *move.Mark) (*Loader, error) {
	l := &Loader{config: config, dialect: sqliteDialect, tables: map[string]schemaTable{}, mark: mark}
	if config.URL != "" {
		l.dialect = postgresDialect
	}
	newest, err := newestSchema()
	if err != nil {
		return nil, err
	}
	if schema.Number > newest {
		return nil, fault.New(fault.Conflict, "the backup has schema %d, and this program knows schemas up to %d: restore it with %s",
			schema.Number, newest, versionOf(schema.Writer))
	}
	if err := l.open(ctx, schema.Number); err != nil {
		return nil, explain(errors.Join(err, l.Close()), "make a database") //nolint:contextcheck // ctx may be over, and the database is closed even so
	}
	return l, nil
}

func (l *Loader) open(ctx context.Context, schema int64) (err error) {
	if l.dialect.postgres {
		l.db, err = openPostgres(ctx, l.config.URL, nil)
	} else {
		err = l.openFile()
	}
	if err != nil {
		return err
	}
	if l.conn, err = l.db.Conn(ctx); err != nil {
		return err
	}
	if l.dialect.postgres {
		if err := claimOn(ctx, l.conn, Claim{}); err != nil {
			return err
		}
		if err := l.empty(ctx, schema); err != nil {
			return err
		}
	}
	if err := l.makeTables(ctx, schema); err != nil {
		return err
	}
	l.q = &prepared{on: l.conn, statements: map[string]*sql.Stmt{}}
	return l.begin(ctx)
}

// makeTables migrates up to a schema.
func (l *Loader) makeTables(ctx context.Context, schema int64) (err error) {
	if l.dialect.postgres {
		return migrateTo(ctx, l.db, l.dialect, schema)
	}
	_ = l.conn.Close() // a file has one connection
	if err := migrateTo(ctx, l.db, l.dialect, schema); err != nil {
		return err
	}
	l.conn, err = l.db.Conn(ctx)
	return err
}

// openFile makes a SQLite file.
func (l *Loader) openFile() error {
	if info, err := os.Stat(l.config.Path); err == nil && info.Size() > 0 {
		return fault.New(fault.Conflict, "%s is there already: nothing is overwritten", l.config.Path)
	}
	file, err := claim(l.config.Path)
	if err != nil {
		return err
	}
	l.file = file
	values := url.Values{"_pragma": {
		fmt.Sprintf("page_size(%d)", pageBytes), "journal_mode(OFF)", "synchronous(OFF)",
		"locking_mode(EXCLUSIVE)", "foreign_keys(0)", "cache_size(-65536)", "temp_store(FILE)",
	}}
	name := url.URL{Scheme: "file", Path: file.path, RawQuery: values.Encode()}
	connector, err := newSQLiteConnector(name.String())
	if err != nil {
		return err
	}
	l.db = sql.OpenDB(connector)
	l.db.SetMaxOpenConns(1)
	return nil
}

// empty refuses a database in which somebody has written. The empty tables of a restore that
// did not end are no obstacle, also when not all were made; nor is what came with the same move before.
func (l *Loader) empty(ctx context.Context, schema int64) error {
	q := plain{l.conn}
	tables, err := collect(ctx, q, one[string], l.dialect.described.tables)
	if err != nil || len(tables) == 0 {
		return err
	}
	number, _, err := schemaOf(ctx, q, tables)
	if err != nil {
		return err
	}
	if number > schema {
		return fault.New(fault.Conflict, "the database is not empty (it has schema %d): nothing is overwritten; make a new one with createdb", number)
	}
	if l.mark != nil {
		before, err := readMark(ctx, q, l.dialect)
		if err != nil || before.State == move.Arriving && before.Other == l.mark.Other {
			l.anew = true
			return err
		}
	}
	for _, name := range tables {
		if filledByMigrations(name) {
			continue
		}
		if there, err := one[bool](q.row(ctx, "SELECT EXISTS (SELECT 1 FROM "+identifier(name)+")")); err != nil || there {
			full := fault.New(fault.Conflict, "the database is not empty (table %s has rows): nothing is overwritten; make a new one with createdb", name)
			return errors.Join(err, full)
		}
	}
	return nil
}

// filledByMigrations says whether a table has rows in a fresh database.
func filledByMigrations(table string) bool {
	return slices.Contains([]string{"act_end", "counters", "event_numbers", "presence_numbers", "schema_writers"}, table)
}

// begin begins the transaction, with empty tables and without their indexes and triggers.
func (l *Loader) begin(ctx context.Context) error {
	tables, err := readTables(ctx, l.q, l.dialect)
	if err != nil {
		return err
	}
	l.added, err = collect(ctx, l.q, scanPair, l.dialect.described.added)
	if err != nil {
		return err
	}
	if err := l.run(ctx, "BEGIN"); err != nil {
		return err
	}
	if l.anew { // millions of rows
		if err := l.run(ctx, "TRUNCATE "+identifiers(append(names(tables), "moves"))); err != nil {
			return err
		}
	}
	for _, t := range slices.Backward(tables) {
		l.tables[t.Name] = t
		if err := l.run(ctx, "DELETE FROM "+identifier(t.Name)); err != nil {
			return err
		}
	}
	for _, added := range l.added {
		if err := l.run(ctx, added[0]); err != nil {
			return err
		}
	}
	return nil
}

func (l *Loader) run(ctx context.Context, statement string) error {
	_, err := l.conn.ExecContext(ctx, statement)
	return err
}

// Load implements backup.Loader.
func (l *Loader) Load(ctx context.Context, table backup.Table, rows iter.Seq2[[]any, error]) error {
	t, ok := l.tables[table.Name]
	if !ok {
		return fault.New(fault.Invalid, "the backup has a table %.60q, which its schema does not have", table.Name)
	}
	kinds := make([]columnKind, len(table.Columns))
	for i, name := range table.Columns {
		at := slices.Index(t.Columns, name)
		if at < 0 {
			return fault.New(fault.Invalid, "the backup has a column %.60q in table %s, which its schema does not have", name, t.Name)
		}
		kinds[i] = t.kinds[at]
	}
	next, stop := iter.Pull2(rows)
	defer stop()
	row := func() ([]any, error) {
		row, err, more := next()
		if err != nil || !more {
			return nil, err
		}
		for i, value := range row {
			if row[i], err = fit(value, kinds[i]); err != nil {
				return nil, fmt.Errorf("column %s: %w", table.Columns[i], err)
			}
		}
		return row, nil
	}
	if l.dialect.postgres {
		return explain(l.copyIn(ctx, table, row), "fill table %s", table.Name)
	}
	return explain(l.insert(ctx, table, row), "fill table %s", table.Name)
}

// fit makes a value one of a column's kind: SQLite keeps whatever it is given.
func fit(value any, kind columnKind) (any, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil //nolint:nilnil // NULL
	case int64:
		if kind == ints {
			return v, nil
		}
		if kind == floats {
			return float64(v), nil
		}
	case float64:
		if kind == floats {
			return v, nil
		}
	case string:
		if kind == texts {
			return v, nil
		}
		if kind == blobs {
			return []byte(v), nil
		}
	case []byte:
		if kind == blobs {
			return v, nil
		}
		if kind == texts {
			return string(v), nil
		}
	}
	return nil, fmt.Errorf("it holds a %T, which does not fit", value)
}

// copyIn streams rows into PostgreSQL.
func (l *Loader) copyIn(ctx context.Context, table backup.Table, next func() ([]any, error)) error {
	return l.conn.Raw(func(driver any) error {
		conn, ok := driver.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("the connection is a %T", driver)
		}
		_, err := conn.Conn().CopyFrom(ctx, pgx.Identifier{table.Name}, table.Columns, pgx.CopyFromFunc(next))
		return err
	})
}

// insert inserts rows into SQLite.
func (l *Loader) insert(ctx context.Context, table backup.Table, next func() ([]any, error)) error {
	columns := make([]column, len(table.Columns))
	for i, name := range table.Columns {
		columns[i].name = identifier(name)
	}
	batch := make([][]any, 0, 256)
	for {
		row, err := next()
		if err != nil {
			return err
		}
		if row != nil {
			batch = append(batch, row)
		}
		if row == nil || len(batch) == cap(batch) {
			if err := sqliteDialect.insert(ctx, l.q, identifier(table.Name), columns, "", batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
		if row == nil {
			return nil
		}
	}
}

// Finish implements backup.Loader: the schema is this program's then.
func (l *Loader) Finish(ctx context.Context, sequences map[string]int64) error {
	return explain(l.finish(ctx, sequences), "finish the database")
}

func (l *Loader) finish(ctx context.Context, sequences map[string]int64) error {
	if err := l.setSequences(ctx, sequences); err != nil {
		return err
	}
	for _, added := range l.added {
		if err := l.run(ctx, added[1]); err != nil {
			return fmt.Errorf("%.60s: %w", added[1], err)
		}
	}
	if !l.dialect.postgres {
		if err := l.checkReferences(ctx); err != nil {
			return err
		}
	}
	if l.mark != nil {
		if err := writeMark(ctx, l.q, *l.mark); err != nil {
			return err
		}
	}
	if err := l.run(ctx, "COMMIT"); err != nil {
		return err
	}
	l.q.close()
	if l.dialect.postgres {
		if err := l.run(ctx, "ANALYZE"); err != nil { // without it the first queries are planned blindly
			return err
		}
	} else if err := l.conn.Close(); err != nil { // the migrations need it
		return err
	}
	if err := migrate(ctx, l.db, l.dialect); err != nil {
		return err
	}
	l.over = true
	return sign(ctx, l.db, l.config.Version)
}

func (l *Loader) setSequences(ctx context.Context, sequences map[string]int64) error {
	numbered, err := collect(ctx, l.q, scanPair, l.dialect.described.numbered)
	if err != nil {
		return err
	}
	for _, t := range numbered {
		last := sequences[t[0]]
		if last <= 0 {
			continue
		}
		if l.dialect.described.unsetAt != "" {
			if _, err := l.q.exec(ctx, l.dialect.described.unsetAt, t[0]); err != nil {
				return err
			}
		}
		if _, err := l.q.exec(ctx, l.dialect.described.setAt, t[0], last, t[1]); err != nil {
			return fmt.Errorf("the last number of table %s: %w", t[0], err)
		}
	}
	return nil
}

// checkReferences finds rows that refer to nothing: SQLite does not look while they are loaded.
func (l *Loader) checkReferences(ctx context.Context) error {
	broken, err := collect(ctx, plain{l.conn}, one[string], `SELECT "table" FROM pragma_foreign_key_check LIMIT 1`)
	if err == nil && len(broken) > 0 {
		err = fault.New(fault.Invalid, "a row of table %s refers to one that the backup does not have", broken[0])
	}
	return err
}

// Close implements backup.Loader. What was not finished is rolled back or, on SQLite, removed.
func (l *Loader) Close() error {
	if l.db == nil {
		if l.file != nil {
			l.file.lock.release()
		}
		return nil
	}
	db := l.db
	l.db = nil
	if !l.over && l.conn != nil {
		_, _ = l.conn.ExecContext(context.Background(), "ROLLBACK") // its context may be over
	}
	if l.conn != nil {
		_ = l.conn.Close()
	}
	if l.file == nil {
		return db.Close()
	}
	file := l.file
	l.file = nil
	if l.over {
		file.use = 1
		return file.leave(context.Background(), db, db.Close)
	}
	defer file.lock.release()
	return errors.Join(db.Close(), os.Remove(file.path))
}
