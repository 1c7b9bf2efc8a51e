package sql

import (
	"context"
	"slices"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Slowdowns implements compile.Turns.
func (s *Queue) Slowdowns(ctx context.Context) ([]compile.Slowdown, error) {
	list, err := slowdowns(ctx, s.reads)
	list = slices.DeleteFunc(list, func(s compile.Slowdown) bool { return !s.Slowed() })
	return list, explain(err, "list what is slowed")
}

const slowdownColumns = "environment, apart, version, timeouts, since, rests_until"

func scanSlowdown(row scanner) (s compile.Slowdown, err error) {
	err = row.Scan(&s.Environment, &s.Apart, &s.Version, &s.Timeouts, at(&s.Since), at(&s.RestsUntil))
	return s, err
}

func slowdowns(ctx context.Context, q querier) ([]compile.Slowdown, error) {
	return collect(ctx, q, scanSlowdown, "SELECT "+slowdownColumns+" FROM compile_slowdowns ORDER BY environment, apart")
}

// slowDown has a compilation that finished count.
func (s *Queue) slowDown(ctx context.Context, q querier, c compile.Compilation) error {
	late := c.Err != nil && c.Err.Cause == compile.CauseTimeout
	if late && s.dialect.postgres { // two that end at once both count
		if _, err := q.exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 1))", string(c.Environment)); err != nil {
			return err
		}
	}
	found, err := collect(ctx, q, scanSlowdown, "SELECT "+slowdownColumns+" FROM compile_slowdowns WHERE environment = $1 AND apart = $2",
		c.Environment, bit(c.Priority.Apart()))
	if err != nil || len(found) == 0 && !late {
		return err
	}
	var before compile.Slowdown
	if len(found) > 0 {
		before = found[0]
	}
	after := before.After(c)
	switch {
	case after == before:
		return nil
	case after.Timeouts == 0:
		_, err = q.exec(ctx, "DELETE FROM compile_slowdowns WHERE environment = $1 AND apart = $2", c.Environment, bit(c.Priority.Apart()))
	default:
		_, err = q.exec(ctx, "INSERT INTO compile_slowdowns ("+slowdownColumns+`) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (environment, apart) DO UPDATE SET version = excluded.version, timeouts = excluded.timeouts, since = excluded.since,
			rests_until = excluded.rests_until`,
			after.Environment, bit(after.Apart), after.Version, after.Timeouts, micros(after.Since), micros(after.RestsUntil))
	}
	return err
}

// endSlowdown ends what other code than version has caused; see compile.Slowdown.EndedBy.
func endSlowdown(ctx context.Context, q querier, env fleet.Environment, version fleet.Digest, apart bool) error {
	_, err := q.exec(ctx, "DELETE FROM compile_slowdowns WHERE environment = $1 AND apart = $2 AND version <> $3", env, bit(apart), version)
	return err
}
