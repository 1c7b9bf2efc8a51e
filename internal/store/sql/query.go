package sql

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/pql"
)

var _ inventory.Asker = (*Store)(nil)

// queryTime is how long one query may take.
const queryTime = time.Minute

// maxQueries is how many queries run at once: half of SQLite's readers, so that
// slow queries and slow askers never hold up agents.
const maxQueries = sqliteReaders / 2

// maxCompileQueries is how many of those run besides that compilations wait for.
const maxCompileQueries = sqliteReaders / 4

// Ask implements inventory.Asker.
func (s *Store) Ask(ctx context.Context, question inventory.Question, each func(json.RawMessage) error) error {
	q := question.Query.Query()
	return s.query(ctx, s.places(question), usesPaths(q), func(ctx context.Context, on querier, t *translation) error {
		t.gone = question.Gone
		if question.Counted != nil {
			total, err := count(ctx, on, t.again(), q)
			if err != nil {
				return err
			}
			question.Counted(total)
		}
		st := t.statement(q)
		if t.failed != nil {
			return t.failed
		}
		return s.stream(ctx, on, st, t.args, question.MaxRows, each)
	})
}

// count is how many rows a query has without its limit and offset.
func count(ctx context.Context, on querier, t *translation, q *pql.Query) (int64, error) {
	whole := *q
	whole.Limit, whole.Offset, whole.OrderBy = nil, nil, nil
	text := t.statement(&whole).text
	if t.failed != nil {
		return 0, t.failed
	}
	return one[int64](on.row(ctx, "SELECT count(*) FROM ("+text+") t", t.args...))
}

// places are those of which a question takes one while it runs.
func (s *Store) places(question inventory.Question) chan struct{} {
	if question.Compiling {
		return s.compiling
	}
	return s.asking
}

// query runs act on one state of the store, for a bounded time.
func (s *Store) query(ctx context.Context, places chan struct{}, paths bool, act func(context.Context, querier, *translation) error) error {
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, queryTime)
	defer cancel()
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-ctx.Done():
		return fault.Later(comeBack, "%d other queries are running; try again later", cap(places))
	}
	err := s.snapshot(ctx, func(ctx context.Context, on querier) error {
		t := &translation{words: queryWords{s.dialect.postgres}}
		some, err := one[bool](on.row(ctx, "SELECT EXISTS (SELECT 1 FROM nodes WHERE deactivated_at <> 0 OR expired_at <> 0)"))
		if err != nil {
			return err
		}
		t.active = !some
		if paths {
			if t.paths, err = collect(ctx, on, scanPath, "SELECT id, path FROM fact_paths"); err != nil {
				return err
			}
		}
		return act(ctx, on, t)
	})
	if err != nil && ctx.Err() != nil && outer.Err() == nil {
		return fault.Wrap(fault.Unavailable, err, "the query took longer than %v; narrow it, or ask for fewer rows", queryTime)
	}
	return explain(err, "query")
}

func scanPath(row scanner) (p factPath, err error) {
	var path string
	err = row.Scan(&p.id, &path)
	p.steps = facts.PathSteps(path)
	return p, err
}

// asked marks an error of the asker, which passes as it is.
type asked struct{ error }

func (a asked) Unwrap() error { return a.error }

// stream hands the rows of a statement to each.
func (s *Store) stream(ctx context.Context, on querier, st statement, args []any, limit int, each func(json.RawMessage) error) error {
	if limit == 0 {
		limit = inventory.DefaultMaxRows
	}
	rows, err := on.query(ctx, st.text, args...)
	if err != nil {
		return fmt.Errorf("%w in %s", err, st.text)
	}
	defer rows.Close() //nolint:errcheck // Err says it
	r := newRenderer(s.packer, st.outputs)
	for n := 0; rows.Next(); n++ {
		if n == limit {
			return fault.New(fault.Invalid, "the query has more than %d rows; narrow it, or use limit and offset", limit)
		}
		if err := rows.Scan(r.targets...); err != nil {
			return err
		}
		row, err := r.row()
		if err != nil {
			return err
		}
		if err := each(row); err != nil {
			return asked{err}
		}
	}
	return rows.Err()
}

// usesPaths says whether a query needs to know every fact path.
func usesPaths(q *pql.Query) bool { return q.Where != nil && exprUsesPaths(q.Where) }

func exprUsesPaths(e pql.Expr) bool {
	field := func(f pql.Field) bool { return hasMatch(f) || f.Name == "depth" }
	switch e := e.(type) {
	case pql.And:
		return slices.ContainsFunc(e.Terms, exprUsesPaths)
	case pql.Or:
		return slices.ContainsFunc(e.Terms, exprUsesPaths)
	case pql.Not:
		return exprUsesPaths(e.Term)
	case pql.Compare:
		return e.Op == "~>" || field(e.Field)
	case pql.Null:
		return field(e.Field)
	case pql.In:
		return e.Query != nil && usesPaths(e.Query) || slices.ContainsFunc(e.Fields, field)
	case pql.Subquery:
		return usesPaths(e.Query)
	}
	return false
}
