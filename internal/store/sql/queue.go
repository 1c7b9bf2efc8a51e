package sql

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
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
		&c.LeasedBy, at(&c.LeasedUntil), &c.Attempts, at(&c.FinishedAt), &c.Catalog, &c.UUID, &failure, &c.Cost.Wall, &c.Cost.CPU, &c.Cost.PeakBytes, &c.Checks, &c.Staged,
		&c.Trouble, at(&c.RestsUntil), &c.Order, &c.Reach)
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
	if c, ok := answer(rows, w); ok {
		if finished(c) {
			return c, nil
		}
		overtaken, err := overtaken(ctx, q, c, w)
		switch {
		case err != nil:
			return c, err
		case !overtaken:
			return c, join(ctx, q, &c, w)
		case c.State == compile.Wanted:
			if err := join(ctx, q, &c, w); err != nil {
				return c, err
			}
			return renumber(ctx, q, c)
		}
	}
	if err := endSlowdown(ctx, q, w.Environment, w.Version, w.Priority.Apart()); err != nil {
		return compile.Compilation{}, err
	}
	return scanCompilation(q.row(ctx, `INSERT INTO compilations
		(certname, environment, version, facts_seq, transaction_uuid, trusted, priority, state, wanted_at, checks, staged, reach, reach_digest)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 'wanted', $8, $9, $10, $11, $12) RETURNING `+compilationColumns,
		w.Node, w.Environment, w.Version, w.FactsSeq, w.Transaction, string(w.Trusted), w.Priority, micros(w.At), w.Checks, bit(w.Staged),
		w.Reach, digestOf(w.Reach)))
}

// digestOf names a reach in the index of what is wanted: conditions may be longer than an index allows.
func digestOf(reach string) fleet.Digest {
	if reach == "" {
		return ""
	}
	return fleet.DigestOf([]byte(reach))
}

// answer finds the row that answers w in rows of its key, newest first.
func answer(rows []compile.Compilation, w compile.Want) (compile.Compilation, bool) {
	for _, fits := range []func(c compile.Compilation) bool{
		func(c compile.Compilation) bool {
			return finished(c) && (w.Staged || !c.Staged) && w.Transaction != "" && c.Transaction == w.Transaction && c.FactsSeq >= w.FactsSeq
		},
		func(c compile.Compilation) bool { return c.State == compile.Wanted },
		func(c compile.Compilation) bool {
			return c.State == compile.Leased && c.FactsSeq >= w.FactsSeq && !w.Fresh
		},
	} {
		if i := slices.IndexFunc(rows, fits); i >= 0 {
			return rows[i], true
		}
	}
	return compile.Compilation{}, false
}

// overtaken says whether a plain row of c's node was wanted after c, so that what c gives would not become the newest catalog.
func overtaken(ctx context.Context, q querier, c compile.Compilation, w compile.Want) (bool, error) {
	if w.Staged {
		return false, nil
	}
	count, err := one[int64](q.row(ctx, "SELECT COUNT(*) FROM compilations WHERE id = $1 AND "+isOvertaken, c.ID))
	return count > 0, err
}

// isOvertaken holds for a row of compilations behind which a plain row of its node was wanted that did not fail.
const isOvertaken = `EXISTS (SELECT 1 FROM compilations l WHERE l.certname = compilations.certname AND l.id > compilations.id
	AND l.staged = 0 AND l.state <> 'failed')`

// renumber gives a wanted row the highest ID.
func renumber(ctx context.Context, q querier, c compile.Compilation) (compile.Compilation, error) {
	if _, err := q.exec(ctx, "DELETE FROM compilations WHERE id = $1", c.ID); err != nil {
		return c, err
	}
	return scanCompilation(q.row(ctx, `INSERT INTO compilations
		(certname, environment, version, facts_seq, transaction_uuid, trusted, priority, state, wanted_at, attempts, checks, staged, trouble)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 'wanted', $8, $9, $10, $11, $12) RETURNING `+compilationColumns,
		c.Node, c.Environment, c.Version, c.FactsSeq, c.Transaction, string(c.Trusted), c.Priority, micros(c.WantedAt), c.Attempts, c.Checks, bit(c.Staged), c.Trouble))
}

func finished(c compile.Compilation) bool {
	return c.State == compile.Done || c.State == compile.Failed
}

// join lets w share c.
func join(ctx context.Context, q querier, c *compile.Compilation, w compile.Want) error {
	if w.Transaction != "" {
		c.Transaction = w.Transaction
	}
	if len(w.Trusted) != 0 {
		c.Trusted = slices.Clone(w.Trusted)
	}
	if c.State == compile.Wanted {
		c.FactsSeq = max(c.FactsSeq, w.FactsSeq)
	}
	c.Priority = min(c.Priority, w.Priority)
	c.Staged = c.Staged && w.Staged
	if c.State == compile.Wanted && c.Checks == 0 {
		c.Checks = w.Checks
	}
	_, err := q.exec(ctx, "UPDATE compilations SET transaction_uuid = $1, trusted = $2, facts_seq = $3, priority = $4, checks = $5, staged = $6 WHERE id = $7",
		c.Transaction, string(c.Trusted), c.FactsSeq, c.Priority, c.Checks, bit(c.Staged), c.ID)
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
			micros(until), clean(trouble), c.ID, c.LeasedBy, c.Attempts)
		if err == nil && count == 0 {
			return notLeased(c)
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
		count, err := q.exec(ctx, `UPDATE compilations SET state = $1, facts_seq = $2, finished_at = $3, catalog = $4, uuid = $5, error = $6,
			wall = $7, cpu = $8, peak_bytes = $9, order_digest = $10, logs = $11, staged = CASE WHEN $16 = 1 THEN 1 ELSE staged END
			WHERE id = $12 AND state = 'leased' AND leased_by = $13 AND attempts = $14 AND rests_until = 0 AND (staged >= $15 OR $16 = 1)`,
			c.State, c.FactsSeq, micros(c.FinishedAt), c.Catalog, c.UUID, failure,
			int64(c.Cost.Wall), int64(c.Cost.CPU), c.Cost.PeakBytes, c.Order, logs, c.ID, c.LeasedBy, c.Attempts, bit(c.Staged && c.State == compile.Done),
			bit(c.Held && c.State == compile.Done))
		if err == nil && count == 0 {
			return s.whyNotFinished(ctx, q, c)
		}
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

func notLeased(c compile.Compilation) error {
	return fault.New(fault.Conflict, "compilation %d is not leased by %s any more", c.ID, c.LeasedBy)
}

// whyNotFinished is the Conflict of a row that did not take its end.
func (s *Queue) whyNotFinished(ctx context.Context, q querier, c compile.Compilation) error {
	held, err := one[int64](q.row(ctx, `SELECT COUNT(*) FROM compilations
		WHERE id = $1 AND state = 'leased' AND leased_by = $2 AND attempts = $3 AND rests_until = 0`,
		c.ID, c.LeasedBy, c.Attempts))
	switch {
	case err != nil:
		return err
	case held > 0:
		return fault.Wrap(fault.Conflict, compile.ErrUnstaged, "compilation %d is not staged any more", c.ID)
	}
	return notLeased(c)
}

// ReturnLeases implements compile.Queue.
func (s *Queue) ReturnLeases(ctx context.Context, worker string, now time.Time, maxAttempts int) (count int, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		rows, err := collect(ctx, q, scanCompilation, "SELECT "+compilationColumns+` FROM compilations
			WHERE state = 'leased' AND (leased_until <= $1 OR leased_by = $2 AND $2 <> '')
			ORDER BY certname, environment, version, id DESC`+s.dialect.skipLocked, micros(now), worker)
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
	if c.Attempts >= maxAttempts {
		failure, err := json.Marshal(compile.Exhausted(c.Attempts))
		if err != nil {
			return err
		}
		_, err = q.exec(ctx, "UPDATE compilations SET state = 'failed', finished_at = $1, error = $2, rests_until = 0 WHERE id = $3", micros(now), string(failure), c.ID)
		return err
	}
	if err := s.lockKey(ctx, q, c.Node, c.Environment, c.Version); err != nil {
		return err
	}
	twins, err := collect(ctx, q, scanCompilation, "SELECT "+compilationColumns+` FROM compilations
		WHERE certname = $1 AND environment = $2 AND version = $3 AND reach_digest = $4 AND state = 'wanted'`+s.dialect.forUpdate,
		c.Node, c.Environment, c.Version, digestOf(c.Reach))
	if err != nil {
		return err
	}
	for _, twin := range twins { // one at most
		both := folded(twin, c)
		if _, err := q.exec(ctx, "DELETE FROM compilations WHERE id IN ($1, $2) AND id <> $3", c.ID, twin.ID, both.ID); err != nil {
			return err
		}
		c = both
	}
	_, err = q.exec(ctx, `UPDATE compilations SET state = 'wanted', leased_by = '', leased_until = 0, rests_until = 0, priority = $1, attempts = $2, facts_seq = $3,
		wanted_at = $4, transaction_uuid = $5, trusted = $6, checks = $7, staged = $8, trouble = $9 WHERE id = $10`,
		c.Priority, c.Attempts, c.FactsSeq, micros(c.WantedAt), c.Transaction, string(c.Trusted), c.Checks, bit(c.Staged), c.Trouble, c.ID)
	return err
}

// folded is a wanted row and one that comes back, as one.
func folded(wanted, back compile.Compilation) compile.Compilation {
	both := wanted
	if wanted.Staged == back.Staged && back.ID > wanted.ID || wanted.Staged && !back.Staged {
		both.ID = back.ID
	}
	both.Priority, both.Attempts = min(wanted.Priority, back.Priority), max(wanted.Attempts, back.Attempts)
	both.FactsSeq, both.Staged = max(wanted.FactsSeq, back.FactsSeq), wanted.Staged && back.Staged
	both.Transaction, both.Trouble = cmp.Or(wanted.Transaction, back.Transaction), cmp.Or(wanted.Trouble, back.Trouble)
	if len(both.Trusted) == 0 {
		both.Trusted = back.Trusted
	}
	if back.WantedAt.Before(both.WantedAt) {
		both.WantedAt = back.WantedAt
	}
	return both
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
