package move

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/internal/store/backup"
)

// Source is the records that move.
type Source interface {
	Standing(ctx context.Context) (Standing, error)
	// Records reads them as they are. The caller closes them.
	Records(ctx context.Context) (backup.Records, error)
	// Sums adds up what is there, by reading it anew.
	Sums(ctx context.Context) (Sums, error)
	// Leave marks them: no server uses them from now on.
	Leave(ctx context.Context, m Mark) error
}

// Target is where they go.
type Target interface {
	Standing(ctx context.Context) (Standing, error)
	// Loader makes empty tables; rows of a move that did not end are thrown away. When it has finished, the mark is there
	// together with the rows.
	Loader(ctx context.Context, schema backup.Schema, m Mark) (backup.Loader, error)
	// Sums adds up what is there, by reading it anew.
	Sums(ctx context.Context) (Sums, error)
	// Arrive takes the mark away: servers may use the records from now on. It may be called again.
	Arrive(ctx context.Context, m Mark) error
}

// Plan is a move.
type Plan struct {
	From Source
	To   Target
	ID   string // a new one
	Now  time.Time
	// Ready returns when what else must have moved is there; the source is marked after that.
	Ready func(ctx context.Context) error
	// Progress is told how far it is.
	Progress func(what string, done, total int64)
}

// Result is what a move did.
type Result struct {
	Step   Step
	Tables int
	Rows   int64
}

// Run does what is left to do of a move.
func Run(ctx context.Context, p Plan) (r Result, err error) {
	from, err := p.From.Standing(ctx)
	if err != nil {
		return r, err
	}
	to, err := p.To.Standing(ctx)
	if err != nil {
		return r, err
	}
	if r.Step, err = Next(from, to); err != nil {
		return r, err
	}
	switch r.Step {
	case Done:
		return r, nil
	case Confirm:
		if err := p.Ready(ctx); err != nil {
			return r, err
		}
		return r, p.To.Arrive(ctx, to.Mark)
	case Copy:
	}
	arriving := Mark{ID: p.ID, State: Arriving, Other: from.Name, At: p.Now}
	if r.Tables, r.Rows, err = p.copied(ctx, arriving); err != nil {
		return r, err
	}
	if err := p.Ready(ctx); err != nil {
		return r, err
	}
	if err := p.From.Leave(ctx, Mark{ID: p.ID, State: Left, Other: to.Name, At: p.Now}); err != nil {
		return r, err
	}
	return r, p.To.Arrive(ctx, arriving)
}

// copied copies everything, while what is there is added up; then what has come is added up, too, and compared.
func (p Plan) copied(ctx context.Context, m Mark) (tables int, rows int64, err error) {
	var had Sums
	both, copying := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		had, err = p.From.Sums(copying)
		return err
	})
	both.Go(func() (err error) {
		tables, err = p.copy(copying, m)
		return err
	})
	if err := both.Wait(); err != nil {
		return 0, 0, err
	}
	p.Progress("tables checked", 0, int64(tables))
	has, err := p.To.Sums(ctx)
	if err != nil {
		return 0, 0, err
	}
	return tables, has.Rows(), Compare(had, has)
}

// copy writes the rows of all tables, and the mark, into the target.
func (p Plan) copy(ctx context.Context, m Mark) (n int, err error) {
	records, err := p.From.Records(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	if err := records.Begin(ctx); err != nil {
		return 0, err
	}
	schema, tables, err := records.Describe(ctx)
	if err != nil {
		return 0, err
	}
	loader, err := p.To.Loader(ctx, schema, m)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, loader.Close()) }()
	for i, table := range tables {
		p.Progress("tables copied", int64(i), int64(len(tables)))
		if err := loader.Load(ctx, table, rowsOf(ctx, records, table)); err != nil {
			return 0, fmt.Errorf("table %s: %w", table.Name, err)
		}
	}
	numbers, err := records.Sequences(ctx)
	if err != nil {
		return 0, err
	}
	p.Progress("tables copied, their indexes are made", int64(len(tables)), int64(len(tables)))
	return len(tables), loader.Finish(ctx, numbers)
}

// errEnough ends the reading of a table.
var errEnough = errors.New("enough rows")

func rowsOf(ctx context.Context, from backup.Records, table backup.Table) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		err := from.Rows(ctx, table, func(row []any) error {
			if !yield(slices.Clone(row), nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, err)
		}
	}
}
