package sql

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Wants is how nodes stand, what changed, and which catalogs are wanted for it before anybody asks.
type Wants struct {
	*base
	queue *Queue
}

// putStanding stores what a finished compilation read and makes it the one from which
// its node is judged. What changed while it compiled is looked at once more.
func (s *Reusables) putStanding(ctx context.Context, q querier, c compile.Compilation) error {
	if c.State == compile.Failed && !isPreview(c) {
		return s.noteLateFailure(ctx, q, c)
	}
	if c.State != compile.Done || c.Inputs == nil {
		return nil
	}
	if err := s.putInputs(ctx, q, c.ID, c.Inputs, c.FinishedAt); err != nil {
		return err
	}
	if isPreview(c) {
		return nil
	}
	_, err := q.exec(ctx, `INSERT INTO standings (certname, environment, staged, compilation, inputs, version, volatile, compiled_at)
		VALUES ($1, $2, $3, $4, $4, $5, $6, $7) ON CONFLICT (environment, certname, staged) DO UPDATE SET compilation = excluded.compilation,
		inputs = excluded.inputs, version = excluded.version, volatile = excluded.volatile, compiled_at = excluded.compiled_at, tried_at = 0
		WHERE standings.compilation <= excluded.compilation`,
		c.Node, c.Environment, bit(isStaged(c)), c.ID, c.Version, bit(len(c.Inputs.Volatile) > 0), micros(c.Inputs.At))
	if err != nil {
		return err
	}
	return s.note(ctx, q, compile.LateFinish, c.Node, nil)
}

// noteLateFailure has a node looked at again whose compilation failed after another
// version was considered: then it was not known yet that it would.
func (s *Reusables) noteLateFailure(ctx context.Context, q querier, c compile.Compilation) error {
	newer, err := one[int64](q.row(ctx, "SELECT COUNT(*) FROM marks WHERE environment = $1 AND version <> $2", c.Environment, c.Version))
	if err != nil || newer == 0 {
		return err
	}
	return s.note(ctx, q, compile.LateFinish, c.Node, nil)
}

func isStaged(c compile.Compilation) bool { return c.Staged }

func isPreview(c compile.Compilation) bool { return c.Priority == compile.Previewing }

// standingsOf is a query for how nodes n stand.
const standingsOf = `SELECT n.certname, n.environment, COALESCE(f.seq, 0), COALESCE(p.compilation, 0), COALESCE(p.inputs, 0), COALESCE(p.version, ''),
	COALESCE(s.compilation, 0), COALESCE(s.inputs, 0), COALESCE(s.version, ''), COALESCE(p.compiled_at, 0), COALESCE(p.volatile, 0),
	CASE WHEN h.id IS NULL THEN 0 ELSE 1 END
	FROM nodes n LEFT JOIN factsets f ON f.node_id = n.id LEFT JOIN catalogs k ON k.node_id = n.id AND k.received = 0
	LEFT JOIN standings p ON p.environment = n.environment AND p.certname = n.certname AND p.staged = 0 AND p.compilation = k.compilation
	LEFT JOIN standings s ON s.environment = n.environment AND s.certname = n.certname AND s.staged = 1
	LEFT JOIN catalog_losses h ON h.certname = n.certname AND h.ended_at = 0 AND h.ruling = 'hold'
	WHERE n.deactivated_at = 0 AND n.expired_at = 0`

func scanStanding(row scanner) (t compile.Standing, err error) {
	err = row.Scan(&t.Node, &t.Environment, &t.FactsSeq, &t.Plain.Compilation, &t.Plain.Inputs, &t.Plain.Version,
		&t.Staged.Compilation, &t.Staged.Inputs, &t.Staged.Version, at(&t.CompiledAt), &t.Volatile, &t.Held)
	return t, err
}

// Standings implements compile.Wants.
func (s *Wants) Standings(ctx context.Context, env fleet.Environment) ([]compile.Standing, error) {
	query, args := standingsOf+" ORDER BY n.certname", []any{}
	if env != "" {
		query, args = standingsOf+" AND n.environment = $1 ORDER BY n.certname", []any{env}
	}
	list, err := collect(ctx, s.reads, scanStanding, query, args...)
	return list, explain(err, "list how nodes stand in %s", env)
}

// StandingsNamed implements compile.Wants.
func (s *Wants) StandingsNamed(ctx context.Context, nodes []fleet.Certname) ([]compile.Standing, error) {
	names, err := jsonNames(nodes)
	if err != nil {
		return nil, err
	}
	list, err := collect(ctx, s.reads, scanStanding, standingsOf+" AND n.certname IN (SELECT value FROM "+s.words().Elements("$1")+" l) ORDER BY n.certname",
		names)
	return list, explain(err, "read how nodes stand")
}

// footprintChunk is how many sets are read at once.
const footprintChunk = 500

// Footprints implements compile.Wants.
func (s *Reusables) Footprints(ctx context.Context, inputs []int64) (map[int64]compile.Footprint, error) {
	found := make(map[int64]compile.Footprint, len(inputs))
	for len(inputs) > 0 {
		n := min(len(inputs), footprintChunk)
		ids, err := json.Marshal(inputs[:n])
		if err != nil {
			return nil, err
		}
		inputs = inputs[n:]
		_, err = collect(ctx, s.reads, func(row scanner) (none struct{}, err error) {
			var id int64
			var packed []byte
			if err := row.Scan(&id, &packed); err != nil {
				return none, err
			}
			stored, err := s.unpackInputs(packed)
			found[id] = compile.Footprint{Set: stored.InputSet, Groups: stored.Groups}
			return none, err
		}, "SELECT compilation, document FROM compilation_inputs WHERE compilation IN (SELECT CAST(value AS BIGINT) FROM "+s.words().Elements("$1")+" l)",
			string(ids))
		if err != nil {
			return nil, explain(err, "read what compilations read")
		}
	}
	return found, nil
}

// SourceGroup implements compile.Wants.
func (s *Reusables) SourceGroup(ctx context.Context, group fleet.Digest) ([]byte, error) {
	text, err := s.groupText(ctx, s.reads, group)
	return text, explain(err, "read a group of source files")
}

const markColumns = "environment, version, upto, done, nodes, touched, began_at, known_for"

func scanMark(row scanner) (m compile.Mark, err error) {
	err = row.Scan(&m.Environment, &m.Version, &m.Upto, &m.Done, &m.Nodes, &m.Touched, at(&m.BeganAt), &m.KnownFor)
	return m, err
}

// Marks implements compile.Wants.
func (s *Wants) Marks(ctx context.Context) ([]compile.Mark, error) {
	list, err := collect(ctx, s.reads, scanMark, "SELECT "+markColumns+" FROM marks ORDER BY environment")
	return list, explain(err, "list how far versions were considered")
}

// Consider implements compile.Wants.
func (s *Wants) Consider(ctx context.Context, step compile.Step) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		if err := putMark(ctx, q, step.From, step.To); err != nil {
			return err
		}
		if step.To.Environment != "" && step.From.Version != step.To.Version {
			if err := s.moveAhead(ctx, q, step.To); err != nil {
				return err
			}
		}
		if err := s.putStands(ctx, q, step); err != nil {
			return err
		}
		for _, w := range step.Wants {
			if err := s.wantAhead(ctx, q, w, compile.Chain{}); err != nil {
				return err
			}
		}
		return nil
	})
	return explain(err, "consider a version of %s", step.To.Environment)
}

// moveAhead makes what is wanted ahead of older versions wanted of the new one. Where the new version is wanted already, by an agent or
// by a preview, both become one row. What was overtaken by another row of its node gets the highest ID again: it is wanted last.
func (s *Wants) moveAhead(ctx context.Context, q querier, to compile.Mark) error {
	const (
		ahead = "state = 'wanted' AND environment = $1 AND transaction_uuid = '' AND priority >= $3 AND priority <= $4"
		older = ahead + " AND version <> $2"
		twin  = `EXISTS (SELECT 1 FROM compilations o WHERE o.certname = compilations.certname AND o.environment = $1 AND o.state = 'wanted'
			AND o.version = $2 AND o.reach_digest = '')`
		overtaken = `EXISTS (SELECT 1 FROM compilations o WHERE o.certname = compilations.certname AND o.environment = $1 AND o.state = 'wanted'
			AND o.id > compilations.id AND o.transaction_uuid = '' AND o.priority >= $3 AND o.priority <= $4)`
	)
	if err := endSlowdown(ctx, q, to.Environment, to.Version, false); err != nil {
		return err
	}
	folded, err := collect(ctx, q, scanCompilation, "SELECT "+compilationColumns+" FROM compilations WHERE "+older+" AND "+twin+" ORDER BY id",
		to.Environment, to.Version, compile.Signed, compile.NewCode)
	if err != nil {
		return err
	}
	for _, text := range []string{
		"DELETE FROM compilations WHERE " + older + " AND (" + twin + " OR " + overtaken + ")",
		"UPDATE compilations SET version = $2 WHERE " + older,
	} {
		if _, err := q.exec(ctx, text, to.Environment, to.Version, compile.Signed, compile.NewCode); err != nil {
			return err
		}
	}
	for _, c := range folded {
		if _, err := s.queue.want(ctx, q, compile.Moved(c, to.Version)); err != nil {
			return err
		}
	}
	rows, err := collect(ctx, q, scanCompilation, "SELECT "+compilationColumns+" FROM compilations WHERE "+ahead+" AND version = $2 AND staged = 0 AND "+
		isOvertaken+" ORDER BY id", to.Environment, to.Version, compile.Signed, compile.NewCode)
	if err != nil {
		return err
	}
	for _, c := range rows {
		if _, err := renumber(ctx, q, c); err != nil {
			return err
		}
	}
	return nil
}

// putMark moves a mark if nobody else did.
func putMark(ctx context.Context, q querier, from, to compile.Mark) error {
	var count int64
	var err error
	if from.Version == "" {
		count, err = q.exec(ctx, "INSERT INTO marks ("+markColumns+") VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
			to.Environment, to.Version, to.Upto, bit(to.Done), to.Nodes, to.Touched, micros(to.BeganAt), int64(to.KnownFor))
	} else {
		count, err = q.exec(ctx, `UPDATE marks SET version = $1, upto = $2, done = $3, nodes = $4, touched = $5, began_at = $6, known_for = $7
			WHERE environment = $8 AND version = $9 AND upto = $10 AND done = $11`,
			to.Version, to.Upto, bit(to.Done), to.Nodes, to.Touched, micros(to.BeganAt), int64(to.KnownFor),
			to.Environment, from.Version, from.Upto, bit(from.Done))
	}
	if err == nil && count == 0 {
		err = fault.New(fault.Conflict, "another server considers %s", to.Environment)
	}
	return err
}

// putStands says of bases that they stand for the step's version: one statement for
// each kind of base and version. Compilations are listed, as a node may have another
// base by now.
func (s *Wants) putStands(ctx context.Context, q querier, step compile.Step) error {
	compilations := map[bool][]int64{}
	names := make([]string, 0, len(step.Stands))
	for _, t := range step.Stands {
		names = append(names, string(t.Node))
		for staged, base := range map[bool]compile.Base{false: t.Plain, true: t.Staged} {
			if base.Compilation != 0 && base.Version != step.To.Version {
				compilations[staged] = append(compilations[staged], base.Compilation)
			}
		}
	}
	nodes, err := json.Marshal(names)
	if err != nil {
		return err
	}
	for staged, ids := range compilations {
		list, err := json.Marshal(ids)
		if err != nil {
			return err
		}
		if _, err := q.exec(ctx, `UPDATE standings SET version = $1 WHERE environment = $2 AND staged = $3
			AND certname IN (SELECT value FROM `+s.words().Elements("$4")+` l)
			AND compilation IN (SELECT CAST(value AS BIGINT) FROM `+s.words().Elements("$5")+" k)",
			step.To.Version, step.To.Environment, bit(staged), string(nodes), string(list)); err != nil {
			return err
		}
	}
	return nil
}

// Oldest implements compile.Wants.
func (s *Wants) Oldest(ctx context.Context, old, volatile time.Time, n int) ([]compile.Standing, error) {
	list, err := collect(ctx, s.reads, scanStanding, standingsOf+` AND (p.compiled_at < $1 AND p.tried_at < $1
		OR p.volatile = 1 AND p.compiled_at < $2 AND p.tried_at < $2) ORDER BY p.compiled_at, n.certname LIMIT $3`, micros(old), micros(volatile), n)
	return list, explain(err, "list old catalogs")
}

// Refresh implements compile.Wants.
func (s *Wants) Refresh(ctx context.Context, wants []compile.Want) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		for _, w := range wants {
			if _, err := s.queue.want(ctx, q, w); err != nil {
				return err
			}
			if _, err := q.exec(ctx, "UPDATE standings SET tried_at = $1 WHERE environment = $2 AND certname = $3 AND staged = 0",
				micros(w.At), w.Environment, w.Node); err != nil {
				return err
			}
		}
		return nil
	})
	return explain(err, "refresh old catalogs")
}

// Backgrounds implements compile.Wants.
func (s *Wants) Backgrounds(ctx context.Context) (int, error) {
	n, err := one[int](s.reads.row(ctx, "SELECT COUNT(*) FROM compilations WHERE state IN ('wanted', 'leased') AND priority = $1", compile.Background))
	return n, explain(err, "count refreshes")
}

// Failures implements compile.Wants.
func (s *Wants) Failures(ctx context.Context, env fleet.Environment, version fleet.Digest) ([]compile.Compilation, error) {
	list, err := collect(ctx, s.reads, scanCompilation, "SELECT "+compilationColumns+` FROM compilations c
		WHERE state = 'failed' AND environment = $1 AND version = $2 AND reach_digest = ''
		AND NOT EXISTS (SELECT 1 FROM compilations o WHERE o.certname = c.certname AND o.environment = c.environment AND o.version = c.version
			AND o.state IN ('done', 'failed') AND o.reach_digest = '' AND o.id > c.id)
		AND EXISTS (SELECT 1 FROM nodes n WHERE n.certname = c.certname AND n.environment = c.environment AND n.deactivated_at = 0 AND n.expired_at = 0)
		ORDER BY certname`, env, version)
	return list, explain(err, "list what failed in %s", env)
}

// Failing implements compile.Wants.
func (s *Wants) Failing(ctx context.Context, env fleet.Environment) ([]fleet.Certname, error) {
	list, err := collect(ctx, s.reads, one[fleet.Certname], `SELECT c.certname FROM compilations c
		WHERE c.state = 'failed' AND c.environment = $1 AND c.reach_digest = ''
		AND NOT EXISTS (SELECT 1 FROM compilations o WHERE o.certname = c.certname AND o.environment = c.environment
			AND o.state IN ('done', 'failed') AND o.reach_digest = '' AND o.id > c.id)
		AND EXISTS (SELECT 1 FROM nodes n WHERE n.certname = c.certname AND n.environment = c.environment AND n.deactivated_at = 0 AND n.expired_at = 0)
		ORDER BY c.certname`, env)
	return list, explain(err, "list what fails in %s", env)
}

// Waiting implements compile.Wants.
func (s *Wants) Waiting(ctx context.Context, env fleet.Environment, version fleet.Digest) ([]fleet.Certname, error) {
	list, err := collect(ctx, s.reads, one[fleet.Certname], `SELECT DISTINCT certname FROM compilations
		WHERE state IN ('wanted', 'leased') AND environment = $1 AND version = $2 ORDER BY certname`, env, version)
	return list, explain(err, "list what is wanted in %s", env)
}
