package sql

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"sync"

	"github.com/pressly/goose/v3"
)

// dialect is what differs between the databases.
type dialect struct {
	postgres   bool
	goose      goose.Dialect
	words      *strings.Replacer // of migrations
	forUpdate  string            // locks the rows that a SELECT finds
	skipLocked string            // the same, passing over those that others hold
	fence      string            // finds the lease that has a name, a holder and a token, and keeps others from getting it until the transaction ends
	listed     string            // the rows of a JSON list of texts that stands at ?
	snapshot   *sql.TxOptions    // of a transaction that reads several tables
	described  described         // of the schema
	// inserting runs the statements that insert rows; tail is what stands behind the values.
	inserting func(into string, cols []column, tail string, rows [][]any, run runStatement) error
}

type runStatement func(text string, args []any) error

// insert inserts rows into a table; conflict says what becomes of those that are there.
func (d *dialect) insert(ctx context.Context, q querier, into string, cols []column, conflict string, rows [][]any) error {
	return d.inserting(into, cols, conflict, rows, func(text string, args []any) error {
		_, err := q.exec(ctx, text, args...)
		return err
	})
}

// insertKeyed is insert into a table with ids. It returns the ids of the rows that were written, by a column that tells them apart.
func (d *dialect) insertKeyed(ctx context.Context, q querier, into string, cols []column, conflict, key string, rows [][]any) (map[string]int64, error) {
	ids := make(map[string]int64, len(rows))
	_, err := insertReading(ctx, q, d, into, cols, conflict+" RETURNING "+key+", id", rows, func(row scanner) (id int64, err error) {
		var name string
		err = row.Scan(&name, &id)
		ids[name] = id
		return id, err
	})
	return ids, err
}

// insertReading is insert with a tail that ends in RETURNING: it reads what that returns, in any order.
func insertReading[T any](
	ctx context.Context, q querier, d *dialect, into string, cols []column, tail string, rows [][]any, read func(scanner) (T, error),
) (all []T, err error) {
	err = d.inserting(into, cols, tail, rows, func(text string, args []any) error {
		some, err := collect(ctx, q, read, text, args...)
		all = append(all, some...)
		return err
	})
	return all, err
}

// column is one column of a bulk insert.
type column struct {
	name string
	kind columnKind
}

type columnKind uint8

const (
	ints columnKind = iota
	texts
	blobs
	floats // may be null
)

// querier runs statements, inside or outside a transaction.
type querier interface {
	exec(ctx context.Context, query string, args ...any) (affected int64, err error)
	query(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	row(ctx context.Context, query string, args ...any) scanner
}

type scanner interface {
	Scan(dest ...any) error
}

// plain passes statements on.
type plain struct {
	on interface {
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
		QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	}
}

func (p plain) exec(ctx context.Context, query string, args ...any) (int64, error) {
	return affected(p.on.ExecContext(ctx, query, args...))
}

func (p plain) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return p.on.QueryContext(ctx, query, args...)
}

func (p plain) row(ctx context.Context, query string, args ...any) scanner {
	return p.on.QueryRowContext(ctx, query, args...)
}

func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// prepared keeps each statement prepared. There are as many as this package has
// texts: a few dozen.
type prepared struct {
	on interface {
		PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	}
	mu         sync.Mutex
	statements map[string]*sql.Stmt
}

func (p *prepared) statement(ctx context.Context, query string) (*sql.Stmt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.statements[query]; s != nil {
		return s, nil
	}
	s, err := p.on.PrepareContext(ctx, query) //nolint:sqlclosecheck // kept; close closes it
	if err == nil {
		p.statements[query] = s
	}
	return s, err
}

func (p *prepared) exec(ctx context.Context, query string, args ...any) (int64, error) {
	s, err := p.statement(ctx, query) //nolint:sqlclosecheck // kept; close closes it
	if err != nil {
		return 0, err
	}
	return affected(s.ExecContext(ctx, args...))
}

func (p *prepared) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := p.statement(ctx, query) //nolint:sqlclosecheck // kept; close closes it
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

func (p *prepared) row(ctx context.Context, query string, args ...any) scanner {
	s, err := p.statement(ctx, query) //nolint:sqlclosecheck // kept; close closes it
	if err != nil {
		return failedRow{err}
	}
	return s.QueryRowContext(ctx, args...)
}

// known is the statement, if it is prepared already.
func (p *prepared) known(query string) *sql.Stmt {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.statements[query]
}

// learn prepares statements for the next who asks. One that fails is told to whoever
// runs it.
func (p *prepared) learn(ctx context.Context, queries []string) {
	for _, query := range queries {
		_, _ = p.statement(ctx, query) //nolint:sqlclosecheck // kept; close closes it
	}
}

// preparedWithin runs a transaction's reads with statements that are prepared. It
// prepares none itself: that takes a connection, and those that have one must not
// wait for another.
type preparedWithin struct {
	plain
	tx     *sql.Tx
	kept   *prepared
	missed []string
}

func (p *preparedWithin) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if s := p.kept.known(query); s != nil {
		return p.tx.StmtContext(ctx, s).QueryContext(ctx, args...) //nolint:sqlclosecheck // the transaction closes it
	}
	p.missed = append(p.missed, query)
	return p.plain.query(ctx, query, args...)
}

func (p *preparedWithin) row(ctx context.Context, query string, args ...any) scanner {
	if s := p.kept.known(query); s != nil {
		return p.tx.StmtContext(ctx, s).QueryRowContext(ctx, args...) //nolint:sqlclosecheck // the transaction closes it
	}
	p.missed = append(p.missed, query)
	return p.plain.row(ctx, query, args...)
}

func (p *prepared) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.statements {
		_ = s.Close()
	}
}

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

// collect reads all rows of a query.
func collect[T any](ctx context.Context, q querier, read func(scanner) (T, error), query string, args ...any) ([]T, error) {
	rows, err := q.query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err says it
	var out []T
	for rows.Next() {
		v, err := read(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// one reads a single column.
func one[T any](row scanner) (v T, err error) {
	err = row.Scan(&v)
	return v, err
}

// mark is the n-th placeholder.
func mark(n int) string { return "$" + strconv.Itoa(n) }
