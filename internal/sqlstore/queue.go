package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

const compilationColumns = `id, certname, environment, version, facts_seq, transaction_uuid, trusted, priority, state, wanted_at,
	leased_by, leased_until, attempts, finished_at, catalog, uuid, error, wall, cpu, peak_bytes, checks, staged`

func scanCompilation(row scanner) (c compile.Compilation, err error) {
	var trusted, failure string
	err = row.Scan(&c.ID, &c.Node, &c.Environment, &c.Version, &c.FactsSeq, &c.Transaction, &trusted, &c.Priority, &c.State, at(&c.WantedAt),
		&c.LeasedBy, at(&c.LeasedUntil), &c.Attempts, at(&c.FinishedAt), &c.Catalog, &c.UUID, &failure, &c.Cost.Wall, &c.Cost.CPU, &c.Cost.PeakBytes, &c.Checks, &c.Staged)
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
func (s *Store) lockKey(ctx context.Context, q querier, node fleet.Certname, env fleet.Environment, version fleet.Digest) error {
	if !s.dialect.postgres {
		return nil
	}
	_, err := q.exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", string(node)+" "+string(env)+" "+string(version))
	return err
}

// Want implements compile.Queue.
func (s *Store) Want(ctx context.Context, w compile.Want) (c compile.Compilation, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		got, err := s.want(ctx, q, w)
		c = got
		return err
	})
	return c, explain(err, "ask for a catalog of %s", w.Node)
}

func (s *Store) want(ctx context.Context, q querier, w compile.Want) (compile.Compilation, error) {
	if err := s.lockKey(ctx, q, w.Node, w.Environment, w.Version); err != nil {
		return compile.Compilation{}, err
	}
	rows, err := collect(ctx, q, scanCompilation, "SELECT "+compilationColumns+` FROM compilations
		WHERE certname = $1 AND environment = $2 AND version = $3
		AND (state IN ('wanted', 'leased') OR transaction_uuid = $4 AND transaction_uuid <> '')
		ORDER BY id DESC`+s.dialect.forUpdate, w.Node, w.Environment, w.Version, w.Transaction)
	if err != nil {
		return compile.Compilation{}, err
	}
	if c, ok := answer(rows, w); ok {
		if !finished(c) {
			return c, join(ctx, q, &c, w)
		}
		return c, nil
	}
	return scanCompilation(q.row(ctx, `INSERT INTO compilations
		(certname, environment, version, facts_seq, transaction_uuid, trusted, priority, state, wanted_at, checks, staged)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 'wanted', $8, $9, $10) RETURNING `+compilationColumns,
		w.Node, w.Environment, w.Version, w.FactsSeq, w.Transaction, string(w.Trusted), w.Priority, micros(w.At), w.Checks, bit(w.Staged)))
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

// Lease implements compile.Queue.
func (s *Store) Lease(ctx context.Context, worker string, n int, worst compile.Priority, _, until time.Time) (leased []compile.Compilation, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		rows, err := collect(ctx, q, scanCompilation, `WITH picked AS MATERIALIZED (
			SELECT id FROM compilations WHERE state = 'wanted' AND priority <= $1 ORDER BY priority, wanted_at, id LIMIT $2`+s.dialect.skipLocked+`)
			UPDATE compilations SET state = 'leased', leased_by = $3, leased_until = $4, attempts = attempts + 1,
			facts_seq = COALESCE((SELECT f.seq FROM nodes n JOIN factsets f ON f.node_id = n.id WHERE n.certname = compilations.certname), facts_seq)
			WHERE id IN (SELECT id FROM picked) RETURNING `+compilationColumns, worst, max(n, 0), worker, micros(until))
		leased = rows
		return err
	})
	slices.SortFunc(leased, func(a, b compile.Compilation) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), a.WantedAt.Compare(b.WantedAt), cmp.Compare(a.ID, b.ID))
	})
	return leased, explain(err, "lease compilations")
}

// Renew implements compile.Queue.
func (s *Store) Renew(ctx context.Context, worker string, ids []int64, until time.Time) (held []int64, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		var mine []int64
		for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
			count, err := q.exec(ctx, "UPDATE compilations SET leased_until = $1 WHERE id = $2 AND state = 'leased' AND leased_by = $3",
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

// Finish implements compile.Queue.
func (s *Store) Finish(ctx context.Context, c compile.Compilation) error {
	var failure []byte
	if c.Err != nil {
		var err error
		if failure, err = json.Marshal(c.Err); err != nil {
			return explain(err, "finish compilation %d", c.ID)
		}
	}
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		count, err := q.exec(ctx, `UPDATE compilations SET state = $1, facts_seq = $2, finished_at = $3, catalog = $4, uuid = $5, error = $6,
			wall = $7, cpu = $8, peak_bytes = $9 WHERE id = $10 AND state = 'leased' AND leased_by = $11 AND attempts = $12 AND staged >= $13`,
			c.State, c.FactsSeq, micros(c.FinishedAt), c.Catalog, c.UUID, string(failure),
			int64(c.Cost.Wall), int64(c.Cost.CPU), c.Cost.PeakBytes, c.ID, c.LeasedBy, c.Attempts, bit(c.Staged && c.State == compile.Done))
		if err == nil && count == 0 {
			return s.whyNotFinished(ctx, q, c)
		}
		if err != nil {
			return err
		}
		return s.putStanding(ctx, q, c)
	})
	s.noted(err)
	return explain(err, "finish compilation %d", c.ID)
}

// whyNotFinished is the Conflict of a row that did not take its end.
func (s *Store) whyNotFinished(ctx context.Context, q querier, c compile.Compilation) error {
	held, err := one[int64](q.row(ctx, "SELECT COUNT(*) FROM compilations WHERE id = $1 AND state = 'leased' AND leased_by = $2 AND attempts = $3",
		c.ID, c.LeasedBy, c.Attempts))
	switch {
	case err != nil:
		return err
	case held > 0:
		return fault.Wrap(fault.Conflict, compile.ErrUnstaged, "compilation %d is not staged any more", c.ID)
	}
	return fault.New(fault.Conflict, "compilation %d is not leased by %s any more", c.ID, c.LeasedBy)
}

// ReturnLeases implements compile.Queue.
func (s *Store) ReturnLeases(ctx context.Context, worker string, now time.Time, maxAttempts int) (count int, err error) {
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

func (s *Store) giveBack(ctx context.Context, q querier, c compile.Compilation, now time.Time, maxAttempts int) error {
	if c.Attempts >= maxAttempts {
		failure, err := json.Marshal(compile.Exhausted(c.Attempts))
		if err != nil {
			return err
		}
		_, err = q.exec(ctx, "UPDATE compilations SET state = 'failed', finished_at = $1, error = $2 WHERE id = $3", micros(now), string(failure), c.ID)
		return err
	}
	if err := s.lockKey(ctx, q, c.Node, c.Environment, c.Version); err != nil {
		return err
	}
	folded, err := q.exec(ctx, `UPDATE compilations SET
		priority = CASE WHEN priority > $1 THEN $1 ELSE priority END, attempts = CASE WHEN attempts < $2 THEN $2 ELSE attempts END,
		facts_seq = CASE WHEN facts_seq < $3 THEN $3 ELSE facts_seq END, wanted_at = CASE WHEN wanted_at > $4 THEN $4 ELSE wanted_at END,
		transaction_uuid = CASE WHEN transaction_uuid = '' THEN $8 ELSE transaction_uuid END, trusted = CASE WHEN trusted = '' THEN $9 ELSE trusted END,
		staged = CASE WHEN staged > $10 THEN $10 ELSE staged END
		WHERE certname = $5 AND environment = $6 AND version = $7 AND state = 'wanted'`,
		c.Priority, c.Attempts, c.FactsSeq, micros(c.WantedAt), c.Node, c.Environment, c.Version, c.Transaction, string(c.Trusted), bit(c.Staged))
	if err != nil {
		return err
	}
	if folded > 0 {
		_, err = q.exec(ctx, "DELETE FROM compilations WHERE id = $1", c.ID)
	} else {
		_, err = q.exec(ctx, "UPDATE compilations SET state = 'wanted', leased_by = '', leased_until = 0 WHERE id = $1", c.ID)
	}
	return err
}

// Compilation implements compile.Queue.
func (s *Store) Compilation(ctx context.Context, id int64) (compile.Compilation, error) {
	c, err := scanCompilation(s.reads.row(ctx, "SELECT "+compilationColumns+" FROM compilations WHERE id = $1", id))
	return c, explain(missing(err, "there is no compilation %d", id), "read compilation %d", id)
}

// Depth implements compile.Queue.
func (s *Store) Depth(ctx context.Context, now time.Time) (wanted, leased int, oldest time.Duration, err error) {
	var first time.Time
	err = s.reads.row(ctx, `SELECT (SELECT COUNT(*) FROM compilations WHERE state = 'wanted'), (SELECT COUNT(*) FROM compilations WHERE state = 'leased'),
		COALESCE((SELECT MIN(wanted_at) FROM compilations WHERE state = 'wanted'), 0)`).Scan(&wanted, &leased, at(&first))
	if wanted > 0 {
		oldest = max(0, now.Sub(first))
	}
	return wanted, leased, oldest, explain(err, "count compilations")
}

// Prune implements compile.Queue.
func (s *Store) Prune(ctx context.Context, before time.Time) (int, error) {
	var count int64
	err := s.write(ctx, func(ctx context.Context, q querier) (err error) {
		count, err = q.exec(ctx, `DELETE FROM compilations WHERE state IN ('done', 'failed') AND finished_at < $1 AND EXISTS (
			SELECT 1 FROM compilations n WHERE n.certname = compilations.certname AND n.state IN ('done', 'failed')
			AND (n.finished_at, n.id) > (compilations.finished_at, compilations.id))
			AND NOT EXISTS (SELECT 1 FROM catalogs k WHERE k.compilation = compilations.id)
			AND NOT EXISTS (SELECT 1 FROM preview_shares s WHERE s.compilation = compilations.id)`, micros(before))
		if err != nil {
			return err
		}
		return s.pruneInputs(ctx, q, before)
	})
	return int(count), explain(err, "prune compilations")
}

// Distinct implements compile.History.
func (s *Store) Distinct(ctx context.Context, env fleet.Environment, n int) ([]compile.Compilation, error) {
	newest, err := collect(ctx, s.reads, scanCompilation, "SELECT "+compilationColumns+` FROM compilations c WHERE state = 'done' AND environment = $1
		AND NOT EXISTS (SELECT 1 FROM compilations o WHERE o.certname = c.certname AND o.environment = c.environment AND o.state = 'done'
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
