package sql

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/sql/query"
)

// Queue is the compilations: wanted, leased and ended.
type Queue struct {
	*base
	inputs *Reusables
}

const compilationColumns = `id, certname, environment, version, facts_seq, transaction_uuid, trusted, priority, state, wanted_at,
	leased_by, leased_until, attempts, finished_at, catalog, uuid, error, wall, cpu, peak_bytes, checks, staged,
	trouble, rests_until, order_digest, reach`

func scanCompilation(row scanner) (c compile.Compilation, err error) {
	var trusted, failure string
	err = row.Scan(&c.ID, &c.Node, &c.Environment, &c.Version, &c.FactsSeq, &c.Transaction, &trusted, &c.Priority, &c.State, at(&c.WantedAt),
		&c.LeasedBy, at(&c.LeasedUntil), &c.Attempts, at(&c.FinishedAt), &c.Catalog, &c.UUID, &failure, &c.Cost.Wall, &c.Cost.CPU,
		&c.Cost.PeakBytes, &c.Checks, &c.Staged, &c.Trouble, at(&c.RestsUntil), &c.Order, &c.Reach)
	if err != nil {
		return c, err
	}
	if trusted != "" {
		c.Trusted = json.RawMessage(trusted)
	}
	if failure != "" {
		c.Err = new(compile.Error)
		err = json.Unmarshal([]byte(failure), c.Err)
	}
	return c, err
}

// lockKey lets one process at a time make wanted rows of a key. SQLite has one
// writer anyway.
func (s *Queue) lockKey(ctx context.Context, q querier, node fleet.Certname, env fleet.Environment, version fleet.Digest) error {
	if !s.dialect.postgres {
		return nil
	}
	_, err := q.exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", string(node)+" "+string(env)+" "+string(version))
	return err
}

// Want implements compile.Queue.
func (s *Queue) Want(ctx context.Context, w compile.Want) (c compile.Compilation, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		got, err := s.want(ctx, q, w)
		c = got
		return err
	})
	return c, explain(err, "ask for a catalog of %s", w.Node)
}

func (s *Queue) want(ctx context.Context, q querier, w compile.Want) (compile.Compilation, error) {
	if err := s.lockKey(ctx, q, w.Node, w.Environment, w.Version); err != nil {
		return compile.Compilation{}, err
	}
	rows, err := collect(ctx, q, scanCompilation, "SELECT "+compilationColumns+` FROM compilations
		WHERE certname = $1 AND environment = $2 AND version = $3 AND reach_digest = $5
		AND (state IN ('wanted', 'leased') OR transaction_uuid = $4 AND transaction_uuid <> '')
		ORDER BY id DESC`+s.dialect.forUpdate, w.Node, w.Environment, w.Version, w.Transaction, digestOf(w.Reach))
	if err != nil {
		return compile.Compilation{}, err
	}
	var plain int64
	if len(rows) > 0 && !w.Staged {
		if plain, err = one[int64](q.row(ctx, "SELECT COALESCE(MAX(id), 0) FROM compilations WHERE certname = $1 AND "+overtakes, w.Node)); err != nil {
			return compile.Compilation{}, err
		}
	}
	decided := compile.Decide(w, rows, plain)
	switch decided.Act {
	case compile.GiveRow:
		return decided.Row, nil
	case compile.ShareRow:
		return decided.Row, update(ctx, q, decided.Row)
	case compile.RenewRow:
		return renumber(ctx, q, decided.Row)
	case compile.AddRow:
	}
	if err := endSlowdown(ctx, q, w.Environment, w.Version, w.Priority.Apart()); err != nil {
		return compile.Compilation{}, err
	}
	return add(ctx, q, decided.Row)
}

// overtakes holds for rows of compilations of which compile.Compilation.Overtakes does.
const overtakes = "staged = 0 AND state <> 'failed'"

// isOvertaken holds for a row of compilations behind which its node has another that overtakes it.
const isOvertaken = `EXISTS (SELECT 1 FROM compilations l WHERE l.certname = compilations.certname AND l.id > compilations.id
	AND l.staged = 0 AND l.state <> 'failed')`

// renumber gives a wanted row the highest ID.
func renumber(ctx context.Context, q querier, c compile.Compilation) (compile.Compilation, error) {
	if _, err := q.exec(ctx, "DELETE FROM compilations WHERE id = $1", c.ID); err != nil {
		return c, err
	}
	return add(ctx, q, c)
}

// add stores a wanted row with the highest ID.
func add(ctx context.Context, q querier, c compile.Compilation) (compile.Compilation, error) {
	return scanCompilation(q.row(ctx, `INSERT INTO compilations
		(certname, environment, version, facts_seq, transaction_uuid, trusted, priority, state, wanted_at, attempts, checks, staged, trouble, reach, reach_digest)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 'wanted', $8, $9, $10, $11, $12, $13, $14) RETURNING `+compilationColumns,
		c.Node, c.Environment, c.Version, c.FactsSeq, c.Transaction, string(c.Trusted), c.Priority, micros(c.WantedAt), c.Attempts, c.Checks,
		bit(c.Staged), c.Trouble, c.Reach, digestOf(c.Reach)))
}

// digestOf names a reach in the index of what is wanted: conditions may be longer than an index allows.
func digestOf(reach string) fleet.Digest {
	if reach == "" {
		return ""
	}
	return fleet.DigestOf([]byte(reach))
}

// update stores what became of the row that has c's ID, but for what Finish says of it.
func update(ctx context.Context, q querier, c compile.Compilation) error {
	failure, err := textOrNone(c.Err, c.Err != nil)
	if err != nil {
		return err
	}
	_, err = q.exec(ctx, `UPDATE compilations SET state = $1, leased_by = $2, leased_until = $3, rests_until = $4, priority = $5, attempts = $6, facts_seq = $7,
		wanted_at = $8, transaction_uuid = $9, trusted = $10, checks = $11, staged = $12, trouble = $13, finished_at = $14, error = $15 WHERE id = $16`,
		c.State, c.LeasedBy, micros(c.LeasedUntil), micros(c.RestsUntil), c.Priority, c.Attempts, c.FactsSeq,
		micros(c.WantedAt), c.Transaction, string(c.Trusted), c.Checks, bit(c.Staged), c.Trouble, micros(c.FinishedAt), failure, c.ID)
	return err
}

// Renew implements compile.Queue.
func (s *Queue) Renew(ctx context.Context, worker string, ids []int64, until time.Time) (held []int64, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		var mine []int64
		for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
			count, err := q.exec(ctx, "UPDATE compilations SET leased_until = $1 WHERE id = $2 AND state = 'leased' AND leased_by = $3 AND rests_until = 0",
				micros(until), id, worker)
			if err != nil {
				return err
			}
			if count > 0 {
				mine = append(mine, id)
			}
		}
		held = mine
		return nil
	})
	return held, explain(err, "renew leases")
}

// Rest implements compile.Queue.
func (s *Queue) Rest(ctx context.Context, c compile.Compilation, until time.Time, trouble string) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		count, err := q.exec(ctx, `UPDATE compilations SET leased_until = $1, rests_until = $1, trouble = $2
			WHERE id = $3 AND state = 'leased' AND leased_by = $4 AND attempts = $5 AND rests_until = 0`,
			micros(until), query.Clean(trouble), c.ID, c.LeasedBy, c.Attempts)
		if err == nil && count == 0 {
			return compile.NotLeased(c)
		}
		return err
	})
	return explain(err, "let compilation %d rest", c.ID)
}

// Finish implements compile.Queue.
func (s *Queue) Finish(ctx context.Context, c compile.Compilation) error {
	failure, err := textOrNone(c.Err, c.Err != nil)
	logs, err2 := textOrNone(c.Logs, len(c.Logs) > 0)
	if err = errors.Join(err, err2); err != nil {
		return explain(err, "finish compilation %d", c.ID)
	}
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		row, err := scanCompilation(q.row(ctx, "SELECT "+compilationColumns+" FROM compilations WHERE id = $1"+s.dialect.forUpdate, c.ID))
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if row, err = c.Close(row); err != nil {
			return err
		}
		_, err = q.exec(ctx, `UPDATE compilations SET state = $1, facts_seq = $2, finished_at = $3, catalog = $4, uuid = $5, error = $6,
			wall = $7, cpu = $8, peak_bytes = $9, order_digest = $10, logs = $11, staged = $12 WHERE id = $13`,
			row.State, row.FactsSeq, micros(row.FinishedAt), row.Catalog, row.UUID, failure,
			int64(row.Cost.Wall), int64(row.Cost.CPU), row.Cost.PeakBytes, row.Order, logs, bit(row.Staged), row.ID)
		if err != nil {
			return err
		}
		if err := s.slowDown(ctx, q, c); err != nil {
			return err
		}
		return s.inputs.putStanding(ctx, q, c)
	})
	s.noted(err)
	return explain(err, "finish compilation %d", c.ID)
}

// textOrNone is v as JSON, if there is one.
func textOrNone(v any, there bool) (string, error) {
	if !there {
		return "", nil
	}
	text, err := json.Marshal(v)
	return string(text), err
}

// ReturnLeases implements compile.Queue.
func (s *Queue) ReturnLeases(ctx context.Context, worker string, now time.Time, maxAttempts int) (count int, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		rows, err := collect(ctx, q, scanCompilation, "SELECT "+compilationColumns+` FROM compilations
			WHERE state = 'leased' AND (leased_until <= $1 OR leased_until > $3 OR leased_by = $2 AND $2 <> '')
			ORDER BY certname, environment, version, id DESC`+s.dialect.skipLocked, micros(now), worker, micros(now.Add(compile.LongestLease)))
		if err != nil {
			return err
		}
		for _, c := range rows {
			if err := s.giveBack(ctx, q, c, now, maxAttempts); err != nil {
				return err
			}
		}
		count = len(rows)
		return nil
	})
	return count, explain(err, "return leases")
}

func (s *Queue) giveBack(ctx context.Context, q querier, c compile.Compilation, now time.Time, maxAttempts int) error {
	if err := s.lockKey(ctx, q, c.Node, c.Environment, c.Version); err != nil {
		return err
	}
	twins, err := collect(ctx, q, scanCompilation, "SELECT "+compilationColumns+` FROM compilations
		WHERE certname = $1 AND environment = $2 AND version = $3 AND reach_digest = $4 AND state = 'wanted'`+s.dialect.forUpdate,
		c.Node, c.Environment, c.Version, digestOf(c.Reach))
	if err != nil {
		return err
	}
	var wanted *compile.Compilation
	if len(twins) > 0 { // one at most
		wanted = &twins[0]
	}
	after := c.Returned(now, maxAttempts, wanted)
	if after.State == compile.Wanted && wanted != nil {
		if _, err := q.exec(ctx, "DELETE FROM compilations WHERE id IN ($1, $2) AND id <> $3", c.ID, wanted.ID, after.ID); err != nil {
			return err
		}
	}
	return update(ctx, q, after)
}

// Prune implements compile.Queue.
func (s *Queue) Prune(ctx context.Context, before time.Time) (int, error) {
	var count int64
	err := s.write(ctx, func(ctx context.Context, q querier) (err error) {
		count, err = q.exec(ctx, `DELETE FROM compilations WHERE state IN ('done', 'failed') AND finished_at < $1 AND EXISTS (
			SELECT 1 FROM compilations n WHERE n.certname = compilations.certname AND n.state IN ('done', 'failed')
			AND (n.finished_at, n.id) > (compilations.finished_at, compilations.id))
			AND NOT EXISTS (SELECT 1 FROM standings t WHERE t.environment = compilations.environment AND t.certname = compilations.certname
				AND t.compilation = compilations.id)
			AND NOT EXISTS (SELECT 1 FROM catalogs k WHERE k.compilation = compilations.id)
			AND NOT EXISTS (SELECT 1 FROM preview_shares s WHERE s.compilation = compilations.id)
			AND NOT EXISTS (SELECT 1 FROM release_targets t JOIN releases r ON r.id = t.release_id WHERE t.compilation = compilations.id AND r.ended_at = 0)
			AND NOT EXISTS (SELECT 1 FROM generations g WHERE g.certname = compilations.certname AND g.compilation = compilations.id)`, micros(before))
		if err != nil {
			return err
		}
		return s.inputs.pruneInputs(ctx, q, before)
	})
	return int(count), explain(err, "prune compilations")
}
