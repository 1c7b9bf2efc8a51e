package sql

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/sql/query"
)

// lanesText finds the lanes up to a priority by their first rows: it steps over the
// index from one lane to the next, so that it costs as many steps as there are lanes,
// however many rows they have. (SQLite seeks with a pair of columns only where it is
// compared with constants: the next environment and the next priority are two seeks.)
const lanesText = `WITH RECURSIVE lane (id) AS (
	SELECT id FROM (SELECT id FROM compilations WHERE state = 'wanted' ORDER BY priority, environment, wanted_at, id LIMIT 1) f
	UNION ALL
	SELECT COALESCE(
		(SELECT c.id FROM compilations c WHERE c.state = 'wanted' AND c.priority = p.priority AND c.environment > p.environment
			ORDER BY c.environment, c.wanted_at, c.id LIMIT 1),
		(SELECT c.id FROM compilations c WHERE c.state = 'wanted' AND c.priority > p.priority
			ORDER BY c.priority, c.environment, c.wanted_at, c.id LIMIT 1))
	FROM lane l JOIN compilations p ON p.id = l.id WHERE p.priority <= $1)
	SELECT p.priority, p.environment, p.wanted_at FROM lane l JOIN compilations p ON p.id = l.id WHERE p.priority <= $1`

func scanLane(row scanner) (l compile.Lane, err error) {
	err = row.Scan(&l.Priority, &l.Environment, at(&l.Oldest))
	return l, err
}

// pickText leases the first row of a lane.
const pickText = `UPDATE compilations SET state = 'leased', leased_by = $3, leased_until = $4, attempts = attempts + 1,
	facts_seq = COALESCE((SELECT f.seq FROM nodes n JOIN factsets f ON f.node_id = n.id WHERE n.certname = compilations.certname), facts_seq)
	WHERE id IN (SELECT id FROM picked) RETURNING ` + compilationColumns

// Lease implements compile.Queue.
func (s *Queue) Lease(ctx context.Context, o compile.Offer) (leased []compile.Compilation, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		rows, err := s.lease(ctx, q, o)
		leased = rows
		return err
	})
	return leased, explain(err, "lease compilations")
}

func (s *Queue) lease(ctx context.Context, q querier, o compile.Offer) (leased []compile.Compilation, err error) {
	lanes, turn, err := openLanes(ctx, q, o)
	if err != nil {
		return nil, err
	}
	turns := map[fleet.Environment]int64{}
	for len(leased) < o.Rows {
		i := compile.NextLane(lanes, o)
		if i < 0 {
			break
		}
		env := lanes[i].Environment
		rows, err := collect(ctx, q, scanCompilation, `WITH picked AS MATERIALIZED (SELECT id FROM compilations
			WHERE state = 'wanted' AND priority = $1 AND environment = $2 ORDER BY wanted_at, id LIMIT 1`+s.dialect.skipLocked+`) `+pickText,
			lanes[i].Priority, env, o.Worker, micros(o.Until))
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 { // the lane is empty, or others hold what is left
			lanes = slices.Delete(lanes, i, i+1)
			continue
		}
		turn++
		turns[env] = turn
		compile.TakeTurn(lanes, lanes[i], turn)
		leased = append(leased, rows...)
	}
	return leased, saveTurns(ctx, q, turns)
}

// openLanes reads the lanes that are not paused, and the number of the last turn.
func openLanes(ctx context.Context, q querier, o compile.Offer) (lanes []compile.Lane, last int64, err error) {
	if lanes, err = collect(ctx, q, scanLane, lanesText, o.Worst); err != nil || len(lanes) == 0 {
		return nil, 0, err
	}
	pauses, err := pauses(ctx, q)
	if err != nil {
		return nil, 0, err
	}
	lanes = slices.DeleteFunc(lanes, func(l compile.Lane) bool {
		_, paused := compile.PauseOf(pauses, l.Environment)
		return paused
	})
	running, err := running(ctx, q, o.Worker)
	if err != nil {
		return nil, 0, err
	}
	slow, err := slowdowns(ctx, q)
	if err != nil {
		return nil, 0, err
	}
	turns, err := perEnvironment(ctx, q, "SELECT environment, turn FROM compile_turns")
	if err != nil {
		return nil, 0, err
	}
	for i, l := range lanes {
		kin := running[kind{l.Environment, l.Priority.Apart()}]
		lanes[i].Kin, lanes[i].Here, lanes[i].Turn = kin.all, kin.here, turns[l.Environment]
		lanes[i].Running = kin.all + running[kind{l.Environment, !l.Priority.Apart()}].all
		for _, s := range slow {
			if s.Environment == l.Environment && s.Apart == l.Priority.Apart() {
				lanes[i].Slow = s
			}
		}
	}
	for turn := range maps.Values(turns) {
		last = max(last, turn)
	}
	return lanes, last, nil
}

// kind is an environment's catalogs, or its previews and checks.
type kind struct {
	environment fleet.Environment
	apart       bool
}

// leases counts rows that run.
type leases struct{ all, here int }

// running counts what runs, by kind, and what of it worker has.
func running(ctx context.Context, q querier, worker string) (map[kind]leases, error) {
	found := map[kind]leases{}
	_, err := collect(ctx, q, func(row scanner) (k kind, err error) {
		var n leases
		err = row.Scan(&k.environment, &k.apart, &n.all, &n.here)
		found[k] = n
		return k, err
	}, `SELECT environment, CASE WHEN priority >= $1 THEN 1 ELSE 0 END AS apart, COUNT(*), SUM(CASE WHEN leased_by = $2 THEN 1 ELSE 0 END)
		FROM compilations WHERE state = 'leased' AND rests_until = 0 GROUP BY environment, apart`, compile.Previewing, worker)
	return found, err
}

func perEnvironment(ctx context.Context, q querier, text string) (map[fleet.Environment]int64, error) {
	numbers := map[fleet.Environment]int64{}
	_, err := collect(ctx, q, func(row scanner) (env fleet.Environment, err error) {
		var n int64
		err = row.Scan(&env, &n)
		numbers[env] = n
		return env, err
	}, text)
	return numbers, err
}

// saveTurns notes whose turn it was: in one order, so that two who lease cannot wait
// for each other.
func saveTurns(ctx context.Context, q querier, turns map[fleet.Environment]int64) error {
	for _, env := range slices.Sorted(maps.Keys(turns)) {
		_, err := q.exec(ctx, `INSERT INTO compile_turns (environment, turn) VALUES ($1, $2)
			ON CONFLICT (environment) DO UPDATE SET turn = excluded.turn`, env, turns[env])
		if err != nil {
			return err
		}
	}
	return nil
}

// Lanes implements compile.Turns.
func (s *Queue) Lanes(ctx context.Context, o compile.Offer) (lanes []compile.Lane, err error) {
	err = s.snapshot(ctx, func(ctx context.Context, q querier) error {
		lanes, _, err = openLanes(ctx, q, o)
		return err
	})
	return lanes, explain(err, "see whose turn it is")
}

// Depth implements compile.Queue.
func (s *Queue) Depth(ctx context.Context, now time.Time) (wanted, leased int, oldest time.Duration, err error) {
	err = s.snapshot(ctx, func(ctx context.Context, q querier) error {
		err := q.row(ctx, `SELECT (SELECT COUNT(*) FROM compilations WHERE state = 'wanted'),
			(SELECT COUNT(*) FROM compilations WHERE state = 'leased')`).Scan(&wanted, &leased)
		if err != nil {
			return err
		}
		lanes, err := collect(ctx, q, scanLane, lanesText, compile.Background)
		for _, l := range lanes {
			oldest = max(oldest, now.Sub(l.Oldest))
		}
		return err
	})
	return wanted, leased, oldest, explain(err, "count compilations")
}

// Pause implements compile.Pauses.
func (s *Queue) Pause(ctx context.Context, p compile.Pause) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `INSERT INTO compile_pauses (environment, paused_by, reason, paused_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (environment) DO UPDATE SET paused_by = excluded.paused_by, reason = excluded.reason, paused_at = excluded.paused_at`,
			p.Environment, p.By, query.Clean(p.Reason), micros(p.At))
		return err
	})
	return explain(err, "pause compiling")
}

// Resume implements compile.Pauses.
func (s *Queue) Resume(ctx context.Context, env fleet.Environment) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		count, err := q.exec(ctx, "DELETE FROM compile_pauses WHERE environment = $1", env)
		if err == nil && count == 0 {
			return compile.NotPaused(env)
		}
		return err
	})
	return explain(err, "resume compiling")
}

// Pauses implements compile.Pauses.
func (s *Queue) Pauses(ctx context.Context) ([]compile.Pause, error) {
	found, err := pauses(ctx, s.reads)
	return found, explain(err, "read what is paused")
}

func pauses(ctx context.Context, q querier) ([]compile.Pause, error) {
	return collect(ctx, q, func(row scanner) (p compile.Pause, err error) {
		err = row.Scan(&p.Environment, &p.By, &p.Reason, at(&p.At))
		return p, err
	}, "SELECT environment, paused_by, reason, paused_at FROM compile_pauses ORDER BY environment")
}
