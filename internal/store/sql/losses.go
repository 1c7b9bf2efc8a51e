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

const lossColumns = `certname, ruling, catalog, environment, version, uuid, compilation, compiled_at,
	kept, kept_environment, kept_version, kept_uuid, kept_compilation, kept_compiled_at, resources_before, resources_after, noted_at`

const selectLosses = "SELECT id, " + lossColumns + ", ended_at, ended_by FROM catalog_losses"

func scanLoss(row scanner) (l deliver.Loss, err error) {
	err = row.Scan(&l.ID, &l.Node, &l.Ruling, &l.Catalog.Digest, &l.Catalog.Environment, &l.Catalog.Version, &l.Catalog.UUID, &l.Catalog.Compilation,
		at(&l.Catalog.CompiledAt), &l.Kept.Digest, &l.Kept.Environment, &l.Kept.Version, &l.Kept.UUID, &l.Kept.Compilation, at(&l.Kept.CompiledAt),
		&l.Was, &l.Left, at(&l.At), at(&l.Ended), &l.By)
	return l, err
}

// Had implements deliver.LossStore.
func (s *Deliveries) Had(ctx context.Context, node fleet.Certname) (c deliver.Catalog, resources int, err error) {
	err = s.reads.row(ctx, `SELECT k.digest, k.environment, k.version, k.uuid, k.compilation, k.compiled_at,
		(SELECT COUNT(*) FROM resources r WHERE r.node_id = k.node_id AND r.exported = 0 AND r.type NOT IN ('Stage', 'Class'))
		FROM nodes n JOIN catalogs k ON k.node_id = n.id AND k.received = 0 WHERE n.certname = $1`, node).
		Scan(&c.Digest, &c.Environment, &c.Version, &c.UUID, &c.Compilation, at(&c.CompiledAt), &resources)
	if errors.Is(err, sql.ErrNoRows) {
		return c, 0, nil
	}
	return c, resources, explain(err, "count the resources of %s", node)
}

// NoteLoss implements deliver.LossStore.
func (s *Deliveries) NoteLoss(ctx context.Context, l deliver.Loss) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		digest, err := one[fleet.Digest](q.row(ctx, `SELECT k.digest FROM catalogs k WHERE k.received = 0
			AND k.node_id = (SELECT n.id FROM nodes n WHERE n.certname = $1)`+s.dialect.forUpdate, l.Node))
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err != nil || digest != l.Kept.Digest {
			return fault.New(fault.Conflict, "%s has another catalog by now", l.Node)
		}
		if _, err := q.exec(ctx, "UPDATE catalog_losses SET ended_at = $1 WHERE certname = $2 AND ended_at = 0", micros(time.Now()), l.Node); err != nil {
			return err
		}
		_, err = q.exec(ctx, "INSERT INTO catalog_losses ("+lossColumns+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
			l.Node, l.Ruling, l.Catalog.Digest, l.Catalog.Environment, l.Catalog.Version, query.Clean(l.Catalog.UUID), l.Catalog.Compilation,
			micros(l.Catalog.CompiledAt),
			l.Kept.Digest, l.Kept.Environment, l.Kept.Version, query.Clean(l.Kept.UUID), l.Kept.Compilation, micros(l.Kept.CompiledAt), l.Was, l.Left, micros(l.At))
		return err
	})
	return explain(err, "note what the catalog of %s lost", l.Node)
}

// endLosses ends what a catalog that is made its node's newest brings to an end. A warning of this catalog stays.
func endLosses(ctx context.Context, q querier, node fleet.Certname, given fleet.Digest) error {
	_, err := q.exec(ctx, "UPDATE catalog_losses SET ended_at = $1 WHERE certname = $2 AND ended_at = 0 AND (ruling = 'hold' OR catalog <> $3)",
		micros(time.Now()), node, given)
	return err
}

// EndHold implements deliver.LossStore.
func (s *Deliveries) EndHold(ctx context.Context, node fleet.Certname, kept fleet.Digest, now time.Time) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, "UPDATE catalog_losses SET ended_at = $1 WHERE certname = $2 AND ended_at = 0 AND ruling = 'hold' AND kept = $3",
			micros(now), node, kept)
		return err
	})
	return explain(err, "end what is held of %s", node)
}

// Losses implements deliver.LossStore.
func (s *Deliveries) Losses(ctx context.Context, f deliver.LossFilter) ([]deliver.Loss, error) {
	names, err := jsonNames(f.Nodes)
	if err != nil {
		return nil, err
	}
	where := " WHERE ($1 = '' OR l.ruling = $1) AND ($2 = '' OR l.environment = $2) AND ($3 = '' OR l.version = $3)"
	args := []any{f.Ruling, f.Environment, f.Version}
	if !f.Past {
		where += ` AND l.ended_at = 0 AND (l.ruling = 'hold' OR EXISTS (SELECT 1 FROM nodes n JOIN catalogs k ON k.node_id = n.id
			WHERE n.certname = l.certname AND k.received = 0 AND k.digest = l.catalog))`
	}
	if len(f.Nodes) > 0 {
		where += " AND l.certname IN (SELECT value FROM " + s.words().Elements("$4") + " w)"
		args = append(args, names)
	}
	list, err := collect(ctx, s.reads, scanLoss, selectLosses+" l"+where+" ORDER BY l.certname, l.id DESC", args...)
	return list, explain(err, "list catalogs that lost resources")
}

// Kinds of what an operator lets go: the catalogs of a node, or of a version.
const (
	letNode    = "node"
	letVersion = "version"
)

// Let implements deliver.LossStore.
func (s *Deliveries) Let(ctx context.Context, l deliver.Let) (nodes []fleet.Certname, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		held, err := collect(ctx, q, scanLoss, selectLosses+` WHERE ended_at = 0 AND ruling = 'hold'
			AND ($1 = '' OR certname = $1) AND ($2 = '' OR version = $2) ORDER BY certname`+s.dialect.forUpdate, l.Node, l.Version)
		if err != nil {
			return err
		}
		if len(held) == 0 {
			return fault.New(fault.NotFound, "nothing of it is held")
		}
		kind, name, catalog := letVersion, string(l.Version), fleet.Digest("")
		if l.Node != "" {
			kind, name, catalog = letNode, string(l.Node), held[0].Catalog.Digest
		}
		if _, err := q.exec(ctx, `INSERT INTO catalog_lets (kind, name, catalog, let_at, let_by) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (kind, name, catalog) DO NOTHING`, kind, name, catalog, micros(l.At), query.Clean(l.By)); err != nil {
			return err
		}
		nodes = nil
		for _, h := range held {
			if _, err := q.exec(ctx, "UPDATE catalog_losses SET ended_at = $1, ended_by = $2 WHERE id = $3", micros(l.At), query.Clean(l.By), h.ID); err != nil {
				return err
			}
			if err := s.note(ctx, q, compile.LateFinish, h.Node, nil); err != nil {
				return err
			}
			nodes = append(nodes, h.Node)
		}
		return nil
	})
	s.noted(err)
	return nodes, explain(err, "let held catalogs go")
}

// Confirmed implements deliver.LossStore.
func (s *Deliveries) Confirmed(ctx context.Context, node fleet.Certname, catalog, version fleet.Digest) (bool, error) {
	n, err := one[int](s.reads.row(ctx, `SELECT COUNT(*) FROM catalog_lets WHERE kind = 'node' AND name = $1 AND catalog = $2
		OR kind = 'version' AND name = $3 AND catalog = ''`, node, catalog, version))
	return n > 0, explain(err, "look whether the catalog of %s was let go", node)
}

// PruneLosses implements deliver.LossStore.
func (s *Deliveries) PruneLosses(ctx context.Context, before time.Time) (int, error) {
	var count int64
	err := s.write(ctx, func(ctx context.Context, q querier) (err error) {
		count, err = q.exec(ctx, "DELETE FROM catalog_losses WHERE ended_at > 0 AND ended_at < $1", micros(before))
		return err
	})
	return int(count), explain(err, "prune losses")
}
