package sql

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Compilation implements compile.Queue.
func (s *Queue) Compilation(ctx context.Context, id int64) (compile.Compilation, error) {
	c, err := scanCompilation(s.reads.row(ctx, "SELECT "+compilationColumns+" FROM compilations WHERE id = $1", id))
	return c, explain(missing(err, "there is no compilation %d", id), "read compilation %d", id)
}

// Record implements compile.Board.
func (s *Queue) Record(ctx context.Context, id int64) (c compile.Compilation, err error) {
	err = s.snapshot(ctx, func(ctx context.Context, q querier) error {
		if c, err = scanCompilation(q.row(ctx, "SELECT "+compilationColumns+" FROM compilations WHERE id = $1", id)); err != nil {
			return missing(err, "there is no compilation %d", id)
		}
		logs, err := one[string](q.row(ctx, "SELECT logs FROM compilations WHERE id = $1", id))
		if err == nil && logs != "" {
			err = json.Unmarshal([]byte(logs), &c.Logs)
		}
		if err != nil {
			return err
		}
		if c.Inputs, err = s.inputs.inputsOf(ctx, q, id); fault.Of(err) == fault.NotFound {
			err = nil
		}
		return err
	})
	return c, explain(err, "read compilation %d", id)
}

// Logs implements compile.Board.
func (s *Queue) Logs(ctx context.Context, ids []int64) (map[int64][]compile.Log, error) {
	logs := map[int64][]compile.Log{}
	named, err := idsNamed(ids)
	if err != nil {
		return nil, explain(err, "read what compilers wrote")
	}
	type row struct {
		id   int64
		logs string
	}
	rows, err := collect(ctx, s.reads, func(r scanner) (got row, err error) { return got, r.Scan(&got.id, &got.logs) },
		"SELECT id, logs FROM compilations WHERE (logs <> '' OR cpu > 0) AND id IN "+s.idList(), named)
	for _, r := range rows {
		var list []compile.Log
		if r.logs == "" {
			logs[r.id] = nil
			continue
		}
		if err := json.Unmarshal([]byte(r.logs), &list); err != nil {
			return nil, explain(err, "read what the compiler wrote for compilation %d", r.id)
		}
		logs[r.id] = list
	}
	return logs, explain(err, "read what compilers wrote")
}

// Counts implements compile.Board.
func (s *Queue) Counts(ctx context.Context) ([]compile.Count, error) {
	counts, err := collect(ctx, s.reads, func(row scanner) (n compile.Count, err error) {
		err = row.Scan(&n.Priority, &n.Environment, &n.Wanted, &n.Running, &n.Resting, at(&n.Oldest))
		return n, err
	}, `SELECT priority, environment, SUM(wanted), SUM(running), SUM(resting), MAX(oldest) FROM (
		SELECT priority, environment, COUNT(*) AS wanted, 0 AS running, 0 AS resting, MIN(wanted_at) AS oldest
			FROM compilations WHERE state = 'wanted' GROUP BY priority, environment
		UNION ALL SELECT priority, environment, 0, SUM(CASE WHEN rests_until = 0 THEN 1 ELSE 0 END), SUM(CASE WHEN rests_until = 0 THEN 0 ELSE 1 END), 0
			FROM compilations WHERE state = 'leased' GROUP BY priority, environment) c
		GROUP BY priority, environment ORDER BY priority, environment`)
	return counts, explain(err, "count compilations")
}

// List implements compile.Board.
func (s *Queue) List(ctx context.Context, f compile.Filter) ([]compile.Compilation, error) {
	where, args := filterText(f)
	ids, err := s.filterIDs(f, &args)
	if err != nil {
		return nil, explain(err, "list compilations")
	}
	args = append(args, max(f.Limit, 1))
	rows, err := collect(ctx, s.reads, scanCompilation, "SELECT "+compilationColumns+" FROM compilations WHERE "+where+ids+
		" ORDER BY id DESC LIMIT "+mark(len(args)), args...)
	return rows, explain(err, "list compilations")
}

// filterText is f's condition, apart from its list of IDs. It has few forms, as each
// stays prepared.
func filterText(f compile.Filter) (where string, args []any) {
	where = "1 = 1"
	add := func(is bool, text string, arg any) {
		if is {
			args = append(args, arg)
			where += " AND " + text + mark(len(args))
		}
	}
	add(f.Node != "", "certname = ", f.Node)
	add(f.Environment != "", "environment = ", f.Environment)
	add(f.Before != 0, "id < ", f.Before)
	if f.State != "" && slices.Contains([]compile.State{compile.Wanted, compile.Leased, compile.Done, compile.Failed}, f.State) {
		where += " AND state = '" + string(f.State) + "'" // a literal: the indexes are for single states
	}
	if f.Runs {
		where += " AND state = 'leased' AND rests_until = 0"
	}
	if f.Rests {
		where += " AND state = 'leased' AND rests_until <> 0"
	}
	return where, args
}

func (s *Queue) filterIDs(f compile.Filter, args *[]any) (string, error) {
	if f.IDs == nil {
		return "", nil
	}
	list, err := json.Marshal(f.IDs)
	*args = append(*args, string(list))
	return " AND id IN (SELECT CAST(value AS BIGINT) FROM " + s.words().Elements(mark(len(*args))) + " l)", err
}

// Troubles implements compile.Board.
func (s *Queue) Troubles(ctx context.Context, most int) ([]compile.Trouble, error) {
	troubles, err := collect(ctx, s.reads, func(row scanner) (n compile.Trouble, err error) {
		err = row.Scan(&n.Text, &n.Rows, at(&n.Next))
		return n, err
	}, `SELECT trouble, COUNT(*), MIN(rests_until) FROM (
		SELECT trouble, 0 AS rests_until FROM compilations WHERE state = 'wanted' AND trouble <> ''
		UNION ALL SELECT trouble, rests_until FROM compilations WHERE state = 'leased' AND rests_until <> 0 AND trouble <> '') c
		GROUP BY trouble ORDER BY 2 DESC, 1 LIMIT $1`, most)
	return troubles, explain(err, "count the troubles of compilations")
}

// Ended implements compile.Board.
func (s *Queue) Ended(ctx context.Context, since time.Time) ([]compile.Ended, error) {
	ended, err := collect(ctx, s.reads, func(row scanner) (e compile.Ended, err error) {
		err = row.Scan(&e.Environment, &e.Compiled, &e.Reused, &e.Failed)
		return e, err
	}, `SELECT environment, SUM(CASE WHEN state = 'done' AND wall > 0 THEN 1 ELSE 0 END), SUM(CASE WHEN state = 'done' AND wall = 0 THEN 1 ELSE 0 END),
		SUM(CASE WHEN state = 'failed' THEN 1 ELSE 0 END)
		FROM compilations WHERE state IN ('done', 'failed') AND finished_at >= $1 GROUP BY environment ORDER BY environment`, micros(since))
	return ended, explain(err, "count finished compilations")
}

// Distinct implements compile.History.
func (s *Queue) Distinct(ctx context.Context, env fleet.Environment, n int) ([]compile.Compilation, error) {
	newest, err := collect(ctx, s.reads, scanCompilation,
		"SELECT "+compilationColumns+` FROM compilations c WHERE state = 'done' AND environment = $1 AND reach_digest = ''
		AND NOT EXISTS (SELECT 1 FROM compilations o WHERE o.certname = c.certname AND o.environment = c.environment AND o.state = 'done' AND o.reach_digest = ''
		AND (o.finished_at, o.id) > (c.finished_at, c.id)) ORDER BY finished_at DESC, id DESC`, env)
	if err != nil {
		return nil, explain(err, "list compilations of %s", env)
	}
	seen := map[fleet.Digest]bool{}
	distinct := slices.DeleteFunc(newest, func(c compile.Compilation) bool {
		known := seen[c.Catalog]
		seen[c.Catalog] = true
		return known
	})
	return distinct[:min(max(n, 0), len(distinct))], nil
}

// LastFailure implements compile.History.
func (s *Queue) LastFailure(ctx context.Context, node fleet.Certname, env fleet.Environment, version fleet.Digest) (compile.Compilation, error) {
	c, err := scanCompilation(s.reads.row(ctx, "SELECT "+compilationColumns+` FROM compilations
		WHERE certname = $1 AND environment = $2 AND version = $3 AND state = 'failed' AND order_digest <> '' AND reach_digest = '' ORDER BY id DESC LIMIT 1`, node,
		env, version))
	return c, explain(missing(err, "no compilation of %s failed", node), "read the last failure of %s", node)
}
