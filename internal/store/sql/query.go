package sql

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/pql"
	"github.com/tutti-project/tutti/internal/store/sql/query"
)

// Queries answers questions in the query language.
type Queries struct {
	*base
	index     *factIndex
	asking    chan struct{} // a place for each query that runs
	compiling chan struct{} // the same, of compilations
}

// queryTime is how long one query may take.
const queryTime = time.Minute

// maxQueries is how many queries run at once: half of SQLite's readers, so that
// slow queries and slow askers never hold up agents.
const maxQueries = sqliteReaders / 2

// maxCompileQueries is how many of those run besides that compilations wait for.
const maxCompileQueries = sqliteReaders / 4

func newQueries(b *base) *Queries {
	index := &factIndex{base: b, clock: time.Now, counted: map[string]int{}}
	return &Queries{base: b, index: index, asking: make(chan struct{}, maxQueries), compiling: make(chan struct{}, maxCompileQueries)}
}

// Ask implements inventory.Asker.
func (s *Queries) Ask(ctx context.Context, question inventory.Question, each func(json.RawMessage) error) error {
	q := question.Query.Query()
	return s.query(ctx, s.places(question), q, func(ctx context.Context, on querier, t *query.Translation) error {
		t.Gone = question.Gone
		if question.Counted != nil {
			total, err := count(ctx, on, t.Again(), q)
			if err != nil {
				return err
			}
			question.Counted(total)
		}
		st := t.Statement(q)
		if t.Failed != nil {
			return t.Failed
		}
		return s.stream(ctx, on, st, t.Args, question.MaxRows, each)
	})
}

// count is how many rows a query has without its limit and offset.
func count(ctx context.Context, on querier, t *query.Translation, q *pql.Query) (int64, error) {
	whole := *q
	whole.Limit, whole.Offset, whole.OrderBy = nil, nil, nil
	text := t.Statement(&whole).Text
	if t.Failed != nil {
		return 0, t.Failed
	}
	return one[int64](on.row(ctx, "SELECT count(*) FROM ("+text+") t", t.Args...))
}

// places are those of which a question takes one while it runs.
func (s *Queries) places(question inventory.Question) chan struct{} {
	if question.Compiling {
		return s.compiling
	}
	return s.asking
}

// asking is what a question does with one state of the store, and with a translation that knows of it.
type asking func(ctx context.Context, on querier, t *query.Translation) error

// query answers a question for q, or for what has its conditions. Facts that are compared often are indexed when the answer is there and the
// question's place is free again.
func (s *Queries) query(ctx context.Context, places chan struct{}, q *pql.Query, act asking) error {
	var indexed []indexedPath
	var compared []string
	err := s.inPlace(ctx, places, func(ctx context.Context, on querier) (err error) {
		t := &query.Translation{Words: s.words()}
		some, err := one[bool](on.row(ctx, "SELECT EXISTS (SELECT 1 FROM nodes WHERE deactivated_at <> 0 OR expired_at <> 0)"))
		if err != nil {
			return err
		}
		t.Active = !some
		if query.ComparesFacts(q) {
			if indexed, err = s.index.indexed(ctx, on); err != nil {
				return err
			}
			t.Indexed = make(map[string]int64, len(indexed))
			for _, p := range indexed {
				t.Indexed[p.path] = p.id
			}
		}
		if query.UsesPaths(q) {
			if t.Paths, err = collect(ctx, on, scanPath, "SELECT id, path FROM fact_paths"); err != nil {
				return err
			}
		}
		err = act(ctx, on, t)
		compared = t.Compared
		return err
	})
	if err == nil {
		s.index.asked(ctx, compared, indexed)
	}
	return err
}

// inPlace reads one state of the store, in one of the places and for a bounded time.
func (s *Queries) inPlace(ctx context.Context, places chan struct{}, read act) error {
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, queryTime)
	defer cancel()
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-ctx.Done():
		return fault.Later(comeBack, "%d other queries are running; try again later", cap(places))
	}
	err := s.snapshot(ctx, read)
	if err != nil && ctx.Err() != nil && outer.Err() == nil {
		return fault.Wrap(fault.Unavailable, err, "the query took longer than %v; narrow it, or ask for fewer rows", queryTime)
	}
	return explain(err, "query")
}

func scanPath(row scanner) (p query.Path, err error) {
	var path string
	err = row.Scan(&p.ID, &path)
	p.Steps = facts.PathSteps(path)
	return p, err
}

// asked marks an error of the asker, which passes as it is.
type asked struct{ error }

func (a asked) Unwrap() error { return a.error }

// stream hands the rows of a statement to each.
func (s *Queries) stream(ctx context.Context, on querier, st query.Statement, args []any, limit int, each func(json.RawMessage) error) error {
	if limit == 0 {
		limit = inventory.DefaultMaxRows
	}
	rows, err := on.query(ctx, st.Text, args...)
	if err != nil {
		return fmt.Errorf("%w in %s", err, st.Text)
	}
	defer rows.Close() //nolint:errcheck // Err says it
	r := query.NewRenderer(s.packer.unpack, st.Outputs)
	for n := 0; rows.Next(); n++ {
		if n == limit {
			return fault.New(fault.Invalid, "the query has more than %d rows; narrow it, or use limit and offset", limit)
		}
		if err := rows.Scan(r.Targets...); err != nil {
			return err
		}
		row, err := r.Row()
		if err != nil {
			return err
		}
		if err := each(row); err != nil {
			return asked{err}
		}
	}
	return rows.Err()
}
