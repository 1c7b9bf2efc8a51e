package sql

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/sql/query"
)

// Deliveries is which catalog each node may have: modes, generations, and catalogs that lost their resources.
type Deliveries struct {
	*base
	inputs *Reusables
}

// Kinds of owners of a mode.
const (
	modeOfGroup = "group"
	modeOfNode  = "node"
)

// Modes implements deliver.ModeStore.
func (s *Deliveries) Modes(ctx context.Context) (groups []deliver.GroupMode, nodes int, err error) {
	err = s.snapshot(ctx, func(ctx context.Context, q querier) (err error) {
		groups, err = collect(ctx, q, func(row scanner) (m deliver.GroupMode, err error) {
			err = row.Scan(&m.Group, &m.Mode)
			return m, err
		}, "SELECT name, mode FROM delivery_modes WHERE kind = $1 ORDER BY name", modeOfGroup)
		if err != nil {
			return err
		}
		nodes, err = one[int](q.row(ctx, "SELECT COUNT(*) FROM delivery_modes WHERE kind = $1", modeOfNode))
		return err
	})
	return groups, nodes, explain(err, "read delivery modes")
}

// ModesSet implements deliver.ModeStore.
func (s *Deliveries) ModesSet(ctx context.Context) ([]deliver.ModeSet, error) {
	list, err := collect(ctx, s.reads, func(row scanner) (m deliver.ModeSet, err error) {
		var kind, name string
		err = row.Scan(&kind, &name, &m.Mode, at(&m.At), &m.By)
		if kind == modeOfGroup {
			m.Group = name
		} else {
			m.Node = fleet.Certname(name)
		}
		return m, err
	}, "SELECT kind, name, mode, set_at, set_by FROM delivery_modes ORDER BY kind, name")
	return list, explain(err, "list delivery modes")
}

// SetMode implements deliver.ModeStore.
func (s *Deliveries) SetMode(ctx context.Context, m deliver.ModeSet) error {
	kind, name := modeOfNode, string(m.Node)
	if m.Group != "" {
		kind, name = modeOfGroup, m.Group
	}
	err := s.write(ctx, func(ctx context.Context, q querier) (err error) {
		if m.Mode == "" {
			_, err = q.exec(ctx, "DELETE FROM delivery_modes WHERE kind = $1 AND name = $2", kind, name)
			return err
		}
		_, err = q.exec(ctx, `INSERT INTO delivery_modes (kind, name, mode, set_at, set_by) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (kind, name) DO UPDATE SET mode = excluded.mode, set_at = excluded.set_at, set_by = excluded.set_by`,
			kind, name, m.Mode, micros(m.At), query.Clean(m.By))
		return err
	})
	return explain(err, "set the delivery mode of %s %s", kind, name)
}

// Standing implements deliver.Ledger. It is one statement: every node asks for it.
func (s *Deliveries) Standing(ctx context.Context, node fleet.Certname) (deliver.Standing, error) {
	standing := deliver.Standing{Node: node}
	var head deliver.Generation
	var newest deliver.Catalog
	err := s.reads.row(ctx,
		`SELECT COALESCE(m.mode, ''), COALESCE(d.mode, 'live'), COALESCE(d.pinned_at, 0), COALESCE(d.pinned_by, ''), COALESCE(d.pinned_why, ''),
		COALESCE(g.number, 0), COALESCE(g.catalog, ''), COALESCE(g.environment, ''), COALESCE(g.version, ''), COALESCE(g.uuid, ''), COALESCE(g.compilation, 0),
		COALESCE(g.compiled_at, 0), COALESCE(g.release_id, 0), COALESCE(g.released_at, 0), COALESCE(g.released_by, ''), COALESCE(g.why, ''), COALESCE(g.promoted, 0),
		COALESCE(k.digest, ''), COALESCE(k.environment, ''), COALESCE(k.version, ''), COALESCE(k.uuid, ''), COALESCE(k.compilation, 0), COALESCE(k.compiled_at, 0)
		FROM (SELECT CAST($1 AS TEXT) AS certname) a
		LEFT JOIN delivery_modes m ON m.kind = 'node' AND m.name = a.certname
		LEFT JOIN deliveries d ON d.certname = a.certname
		LEFT JOIN generations g ON g.certname = a.certname AND g.number = d.head
		LEFT JOIN nodes n ON n.certname = a.certname
		LEFT JOIN catalogs k ON k.node_id = n.id AND k.received = 0`, node).
		Scan(&standing.Own, &standing.Force, at(&standing.Pin.At), &standing.Pin.By, &standing.Pin.Why,
			&head.Number, &head.Digest, &head.Environment, &head.Version, &head.UUID, &head.Compilation,
			at(&head.CompiledAt), &head.Release, at(&head.At), &head.By, &head.Why, &head.Promoted,
			&newest.Digest, &newest.Environment, &newest.Version, &newest.UUID, &newest.Compilation, at(&newest.CompiledAt))
	if head.Number > 0 {
		head.Node = node
		standing.Head = &head
	}
	if newest.Digest != "" {
		standing.Newest = &newest
	}
	return standing, explain(err, "read the delivery to %s", node)
}

// Take implements deliver.Ledger.
func (s *Deliveries) Take(ctx context.Context, step deliver.Step) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		if _, err := q.exec(ctx, "INSERT INTO deliveries (certname, mode, head) VALUES ($1, $2, 0) ON CONFLICT DO NOTHING", step.Node, deliver.Live); err != nil {
			return err
		}
		head := step.Base
		if step.Next != nil {
			head++
		}
		count, err := q.exec(ctx, `UPDATE deliveries SET mode = $1, head = $2,
			pinned_at = CASE WHEN $1 = 'live' THEN 0 ELSE pinned_at END, pinned_by = CASE WHEN $1 = 'live' THEN '' ELSE pinned_by END,
			pinned_why = CASE WHEN $1 = 'live' THEN '' ELSE pinned_why END
			WHERE certname = $3 AND mode = $4 AND head = $5`, step.To, head, step.Node, step.From, step.Base)
		if err == nil && count == 0 {
			return fault.New(fault.Conflict, "the delivery to %s is another by now", step.Node)
		}
		if err == nil && step.To == deliver.Released && step.From != deliver.Released {
			err = endLosses(ctx, q, step.Node, "")
		}
		if err != nil || step.Next == nil {
			return err
		}
		g := step.Next
		_, err = q.exec(ctx, "INSERT INTO generations ("+generationColumns+") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
			step.Node, head, g.Digest, g.Environment, g.Version, query.Clean(g.UUID), g.Compilation, micros(g.CompiledAt), g.Release, micros(g.At), query.Clean(g.By),
			query.Clean(g.Why), bit(g.Promoted))
		return err
	})
	return explain(err, "change the delivery to %s", step.Node)
}

// SetPin implements deliver.Ledger.
func (s *Deliveries) SetPin(ctx context.Context, node fleet.Certname, p deliver.Pin) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		count, err := q.exec(ctx, `UPDATE deliveries SET pinned_at = $1, pinned_by = $2, pinned_why = $3
			WHERE certname = $4 AND ($5 = 1 OR mode = 'released' AND head > 0)`, micros(p.At), query.Clean(p.By), query.Clean(p.Why), node, bit(p.At.IsZero()))
		if err == nil && count == 0 && !p.At.IsZero() {
			return fault.New(fault.Conflict, "%s has no released catalog that it could be pinned to", node)
		}
		return err
	})
	return explain(err, "pin %s", node)
}

// Promoted implements deliver.Ledger.
func (s *Deliveries) Promoted(ctx context.Context, node fleet.Certname, number int64) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, "UPDATE generations SET promoted = 1 WHERE certname = $1 AND number = $2", node, number)
		return err
	})
	return explain(err, "note that a generation of %s is shown", node)
}

// Reinstate adds a done compilation that gave the catalog of a generation, so that it
// can be made its node's newest, with what was read for it if that is known. NotFound
// unless the generation is what its node has.
func (s *Deliveries) Reinstate(ctx context.Context, g deliver.Generation, now time.Time) (made compile.Compilation, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		has, err := one[int](q.row(ctx, "SELECT COUNT(*) FROM deliveries WHERE certname = $1 AND mode = 'released' AND head = $2", g.Node, g.Number))
		if err == nil && has == 0 {
			err = fault.New(fault.NotFound, "generation %d is not what %s has", g.Number, g.Node)
		}
		if err != nil {
			return err
		}
		was, err := scanCompilation(q.row(ctx, "SELECT "+compilationColumns+" FROM compilations WHERE id = $1", g.Compilation))
		if err != nil && !errors.Is(err, sql.ErrNoRows) { // it may be gone: then it cannot be used again
			return err
		}
		made, err = s.inputs.insertDone(ctx, q, compile.Compilation{
			Node: g.Node, Environment: g.Environment, Version: g.Version, FactsSeq: was.FactsSeq, Trusted: was.Trusted, Priority: compile.Background,
			WantedAt: now, FinishedAt: now, Catalog: g.Digest, UUID: g.UUID,
		})
		if err != nil {
			return err
		}
		if made.Inputs, err = s.inputs.inputsOf(ctx, q, g.Compilation); err != nil && fault.Of(err) != fault.NotFound {
			return err
		}
		if err := keepCurrent(ctx, q, g.Node, g.Environment); err != nil {
			return err
		}
		return s.inputs.putStanding(ctx, q, made)
	})
	return made, explain(err, "show generation %d of %s", g.Number, g.Node)
}

// keepCurrent keeps the base of a node's newest catalog as the staged one, if it stands for the environment's version and the
// staged one does not: what a release puts in its place may be of another version, and the node is not compiled again for that.
func keepCurrent(ctx context.Context, q querier, node fleet.Certname, env fleet.Environment) error {
	_, err := q.exec(ctx, `INSERT INTO standings (certname, environment, staged, compilation, inputs, version, volatile, compiled_at)
		SELECT certname, environment, 1, compilation, inputs, version, volatile, compiled_at FROM standings
			WHERE environment = $1 AND certname = $2 AND staged = 0 AND version = (SELECT version FROM marks WHERE environment = $1)
		ON CONFLICT (environment, certname, staged) DO UPDATE SET compilation = excluded.compilation, inputs = excluded.inputs,
		version = excluded.version, volatile = excluded.volatile, compiled_at = excluded.compiled_at, tried_at = 0
		WHERE standings.version <> excluded.version`, env, node)
	return err
}
