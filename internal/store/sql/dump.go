package sql

import (
	"context"
	"database/sql"
	"net/url"
	"os"

	"github.com/tutti-project/tutti/internal/store/backup"
)

// Dump is every row as of one moment, read beside a server that runs: PostgreSQL by a
// transaction that repeats its reads, SQLite by one that keeps its place in the log. It
// implements backup.Records.
type Dump struct {
	dialect dialect
	db      *sql.DB
	tx      *sql.Tx
	q       querier
}

var _ backup.Records = (*Dump)(nil)

// OpenDump opens the records to read only. It migrates nothing: a newer program can back up the
// records of an older server that still runs.
func OpenDump(ctx context.Context, config Config) (*Dump, error) {
	d := &Dump{dialect: sqliteDialect}
	var err error
	if config.URL != "" {
		d.dialect = postgresDialect
		d.db, err = openPostgres(ctx, config.URL, nil)
	} else {
		d.db, err = openBeside(config.Path)
	}
	if err != nil {
		return nil, explain(err, "read the database")
	}
	return d, nil
}

// Begin implements backup.Records.
func (d *Dump) Begin(ctx context.Context) (err error) {
	d.end()
	if d.tx, err = d.db.BeginTx(ctx, d.dialect.snapshot); err != nil {
		return explain(err, "read the database")
	}
	d.q = plain{d.tx}
	return explain(refuseMoved(ctx, d.q, d.dialect), "read the database") // the first read begins the moment
}

func (d *Dump) end() {
	if d.tx != nil {
		_ = d.tx.Rollback() // it only read
	}
}

// Describe implements backup.Records.
func (d *Dump) Describe(ctx context.Context) (schema backup.Schema, list []backup.Table, err error) {
	tables, err := readTables(ctx, d.q, d.dialect)
	if err != nil {
		return schema, nil, explain(err, "read the schema")
	}
	for _, t := range tables {
		list = append(list, t.Table)
	}
	schema.Engine = "sqlite"
	if d.dialect.postgres {
		schema.Engine = "postgres"
	}
	schema.Number, schema.Writer, err = schemaOf(ctx, d.q, names(tables))
	return schema, list, explain(err, "read the schema")
}

// openBeside opens a file that a server may use, to read only.
func openBeside(path string) (*sql.DB, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, unusable(path, err)
	}
	values := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(10000)", "query_only(1)", "cache_size(-4096)"}}
	name := url.URL{Scheme: "file", Path: path, RawQuery: values.Encode()}
	connector, err := newSQLiteConnector(name.String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	return db, nil
}

// Rows implements backup.Records.
func (d *Dump) Rows(ctx context.Context, table backup.Table, each func(row []any) error) error {
	rows, err := d.q.query(ctx, "SELECT "+identifiers(table.Columns)+" FROM "+identifier(table.Name))
	if err != nil {
		return explain(err, "read table %s", table.Name)
	}
	defer rows.Close() //nolint:errcheck // Err says it
	row, to := make([]any, len(table.Columns)), make([]any, len(table.Columns))
	for i := range row {
		to[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return explain(err, "read table %s", table.Name)
		}
		if err := each(row); err != nil {
			return err
		}
	}
	return explain(rows.Err(), "read table %s", table.Name)
}

// Sequences implements backup.Records.
func (d *Dump) Sequences(ctx context.Context) (map[string]int64, error) {
	numbered, err := collect(ctx, d.q, scanPair, d.dialect.described.numbered)
	if err != nil {
		return nil, explain(err, "read the last numbers of tables")
	}
	last := map[string]int64{}
	for _, t := range numbered {
		if last[t[0]], err = one[int64](d.q.row(ctx, d.dialect.described.sequence, t[0], t[1])); err != nil {
			return nil, explain(err, "read the last number of table %s", t[0])
		}
	}
	return last, nil
}

func scanPair(row scanner) (pair [2]string, err error) { return pair, row.Scan(&pair[0], &pair[1]) }

// Close ends the moment. It may be called again.
func (d *Dump) Close() error {
	d.end()
	return d.db.Close()
}
