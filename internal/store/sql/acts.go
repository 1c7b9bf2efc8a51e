package sql

import (
	"context"
	"strings"

	"github.com/tutti-project/tutti/internal/rbac"
)

const actColumns = "happened_at, actor_kind, actor, token, operation, object, remote, request_id, outcome, detail, mark"

func scanAct(row scanner) (e rbac.Entry, err error) {
	err = row.Scan(&e.ID, at(&e.At), &e.ActorKind, &e.Actor, &e.Token, &e.Operation, &e.Object, &e.Remote, &e.RequestID, &e.Outcome, &e.Detail, &e.Mark)
	return e, err
}

// Acts implements rbac.AuditStore. The statement has only the conditions that are
// asked for, so that it can use its indexes; there are few forms of it.
func (s *Audit) Acts(ctx context.Context, f rbac.EntryFilter) ([]rbac.Entry, error) {
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
