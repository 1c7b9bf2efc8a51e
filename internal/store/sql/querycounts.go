package sql

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/store/sql/query"
)

// AskEvents implements inventory.Asker.
func (s *Queries) AskEvents(ctx context.Context, q inventory.EventQuestion, each func(json.RawMessage) error) error {
	return s.query(ctx, s.asking, q.Events.Query(), func(ctx context.Context, on querier, first *query.Translation) error {
		for _, by := range q.SummarizeBy {
			t := first.Again()
			t.Gone = q.Gone
			text, err := t.Sums(q, by)
			if err != nil || t.Failed != nil {
				return cmpErr(err, t.Failed)
			}
			if err := s.sums(ctx, on, by, q.Aggregate, text, t.Args, each); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Queries) sums(ctx context.Context, on querier, by string, aggregate bool, text string, args []any, each func(json.RawMessage) error) error {
	rows, err := on.query(ctx, text, args...)
	if err != nil {
		return fmt.Errorf("%w in %s", err, text)
	}
	defer rows.Close() //nolint:errcheck // Err says it
	for rows.Next() {
		var title, kind *string
		var n [5]int64
		if err := rows.Scan(&title, &kind, &n[0], &n[1], &n[2], &n[3], &n[4]); err != nil {
			return err
		}
		row, err := sumRow(by, aggregate, title, kind, n)
		if err != nil {
			return err
		}
		if err := each(row); err != nil {
			return asked{err}
		}
	}
	return rows.Err()
}

func sumRow(by string, aggregate bool, title, kind *string, n [5]int64) (json.RawMessage, error) {
	row := map[string]any{"failures": n[0], "successes": n[1], "noops": n[2], "skips": n[3]}
	if aggregate {
		row["summarize_by"], row["total"] = by, n[4]
		return json.Marshal(row)
	}
	subject := map[string]any{"title": title}
	if kind != nil {
		subject["type"] = kind
	}
	row["subject_type"], row["subject"] = by, subject
	return json.Marshal(row)
}
