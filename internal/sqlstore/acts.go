package sqlstore

import (
	"context"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/rbac"
)

const actColumns = "happened_at, actor_kind, actor, token, operation, object, remote, request_id, outcome, detail"

func scanAct(row scanner) (e rbac.Entry, err error) {
	err = row.Scan(&e.ID, at(&e.At), &e.ActorKind, &e.Actor, &e.Token, &e.Operation, &e.Object, &e.Remote, &e.RequestID, &e.Outcome, &e.Detail)
	return e, err
}

// RecordAct implements rbac.AuditStore.
func (s *Store) RecordAct(ctx context.Context, e rbac.Entry) (id int64, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		n, err := one[int64](q.row(ctx, "INSERT INTO acts ("+actColumns+") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING id",
			micros(e.At), e.ActorKind, e.Actor, e.Token, e.Operation, e.Object, e.Remote, e.RequestID, e.Outcome, e.Detail))
		id = n
		return err
	})
	return id, explain(err, "record %s", e.Operation)
}

// FinishAct implements rbac.AuditStore.
func (s *Store) FinishAct(ctx context.Context, id int64, outcome rbac.Outcome, detail string) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		n, err := q.exec(ctx, "UPDATE acts SET outcome = $2, detail = $3 WHERE id = $1", id, outcome, detail)
		if err == nil && n == 0 {
			return fault.New(fault.NotFound, "there is no entry %d in the audit log", id)
		}
		return err
	})
	return explain(err, "record the outcome of entry %d", id)
}

// Acts implements rbac.AuditStore. The statement has only the conditions that are
// asked for, so that it can use its indexes; there are few forms of it.
func (s *Store) Acts(ctx context.Context, f rbac.EntryFilter) ([]rbac.Entry, error) {
	var where []string
	var args []any
	add := func(condition string, value any) {
		args = append(args, value)
		where = append(where, strings.ReplaceAll(condition, "?", mark(len(args))))
	}
	if f.Before > 0 {
		add("id < ?", f.Before)
	}
	if f.Actor != "" {
		add("actor = ?", f.Actor)
	}
	if prefix, open := strings.CutSuffix(f.Operation, "*"); open {
		add("substr(operation, 1, length(?)) = ?", prefix)
	} else if f.Operation != "" {
		add("operation = ?", f.Operation)
	}
	if !f.Since.IsZero() {
		add("happened_at >= ?", micros(f.Since))
	}
	if !f.Until.IsZero() {
		add("happened_at < ?", micros(f.Until))
	}
	if f.Failing {
		add("outcome <> ?", rbac.Done)
		add("outcome <> ?", rbac.Started)
	}
	if f.Outcome != "" {
		add("outcome = ?", f.Outcome)
	}
	text := "SELECT id, " + actColumns + " FROM acts"
	if len(where) > 0 {
		text += " WHERE " + strings.Join(where, " AND ")
	}
	args = append(args, f.Limit)
	entries, err := collect(ctx, s.reads, scanAct, text+" ORDER BY id DESC LIMIT "+mark(len(args)), args...)
	return entries, explain(err, "list the audit log")
}

// PruneActs implements rbac.AuditStore, some at a time.
func (s *Store) PruneActs(ctx context.Context, before time.Time) (int, error) {
	for total := 0; ; {
		var count int
		err := s.write(ctx, func(ctx context.Context, q querier) error {
			n, err := q.exec(ctx, "DELETE FROM acts WHERE id IN (SELECT id FROM acts WHERE happened_at < $1 ORDER BY happened_at LIMIT $2)", micros(before), pruneBatch)
			count = int(n)
			return err
		})
		total += count
		if err != nil || count < pruneBatch {
			return total, explain(err, "prune the audit log")
		}
	}
}
