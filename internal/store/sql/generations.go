package sql

import (
	"context"
	"database/sql"
	"errors"

	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fleet"
)

const generationColumns = `certname, number, catalog, environment, version, uuid, compilation, compiled_at, release_id, released_at, released_by, why, promoted`

func scanGeneration(row scanner) (g deliver.Generation, err error) {
	err = row.Scan(&g.Node, &g.Number, &g.Digest, &g.Environment, &g.Version, &g.UUID, &g.Compilation, at(&g.CompiledAt), &g.Release, at(&g.At), &g.By,
		&g.Why, &g.Promoted)
	return g, err
}

// Unpromoted implements deliver.Ledger.
func (s *Deliveries) Unpromoted(ctx context.Context, after fleet.Certname, n int) ([]deliver.Generation, error) {
	list, err := collect(ctx, s.reads, scanGeneration, "SELECT "+generationColumns+` FROM generations WHERE promoted = 0 AND certname > $2
		AND EXISTS (SELECT 1 FROM deliveries d WHERE d.certname = generations.certname AND d.mode = 'released' AND d.head = generations.number)
		ORDER BY certname LIMIT $1`, max(n, 0), after)
	return list, explain(err, "list generations that are not shown")
}

// Generations implements deliver.Archive.
func (s *Deliveries) Generations(ctx context.Context, node fleet.Certname) ([]deliver.Generation, error) {
	list, err := collect(ctx, s.reads, scanGeneration, "SELECT "+generationColumns+" FROM generations WHERE certname = $1 ORDER BY number DESC", node)
	return list, explain(err, "list the generations of %s", node)
}

// Keeps implements deliver.Archive.
func (s *Deliveries) Keeps(ctx context.Context, node fleet.Certname, catalog fleet.Digest) (bool, error) {
	n, err := one[int](s.reads.row(ctx, "SELECT COUNT(*) FROM generations WHERE certname = $1 AND catalog = $2", node, catalog))
	return n > 0, explain(err, "look for a generation of %s", node)
}

// PruneGenerations implements deliver.Archive.
func (s *Deliveries) PruneGenerations(ctx context.Context, keep int) (int, error) {
	var count int64
	err := s.write(ctx, func(ctx context.Context, q querier) (err error) {
		count, err = q.exec(ctx, `DELETE FROM generations WHERE number <= (SELECT d.head FROM deliveries d WHERE d.certname = generations.certname) - $1`,
			max(keep, 1))
		return err
	})
	return int(count), explain(err, "prune generations")
}

// GenerationCatalogs implements deliver.Archive.
func (s *Deliveries) GenerationCatalogs(ctx context.Context) ([]fleet.Digest, error) {
	digests, err := collect(ctx, s.reads, one[fleet.Digest], "SELECT DISTINCT catalog FROM generations ORDER BY catalog")
	return digests, explain(err, "list released catalogs")
}

// HeldIn implements deliver.Archive.
func (s *Deliveries) HeldIn(ctx context.Context, env fleet.Environment) ([]deliver.Held, error) {
	held, err := collect(ctx, s.reads, func(r scanner) (h deliver.Held, err error) {
		err = r.Scan(&h.Node, &h.Version, &h.Released)
		return h, err
	}, `SELECT n.certname, g.version, 1 FROM deliveries d JOIN generations g ON g.certname = d.certname AND g.number = d.head
			JOIN nodes n ON n.certname = d.certname
			WHERE d.mode = 'released' AND g.environment = $1 AND n.deactivated_at = 0 AND n.expired_at = 0
		UNION ALL SELECT n.certname, k.version, 0 FROM catalogs k JOIN nodes n ON n.id = k.node_id LEFT JOIN deliveries d ON d.certname = n.certname
			WHERE k.received = 0 AND k.environment = $1 AND COALESCE(d.mode, 'live') = 'live' AND n.deactivated_at = 0 AND n.expired_at = 0
		ORDER BY 1`, env)
	return held, explain(err, "list what the nodes of %s may have", env)
}

// HeadsIn implements deliver.Archive.
func (s *Deliveries) HeadsIn(ctx context.Context, env fleet.Environment) (int, error) {
	n, err := one[int](s.reads.row(ctx, `SELECT COUNT(*) FROM deliveries d JOIN generations g ON g.certname = d.certname AND g.number = d.head
		WHERE d.mode = 'released' AND g.environment = $1`, env))
	return n, explain(err, "count the nodes with a released catalog of %s", env)
}

// Applied implements deliver.Archive. A run that changes nothing applies nothing.
func (s *Deliveries) Applied(ctx context.Context, node fleet.Certname) (a deliver.Applied, err error) {
	err = s.snapshot(ctx, func(ctx context.Context, q querier) error {
		err := q.row(ctx, `SELECT r.catalog_uuid, r.code_id, r.started_at FROM nodes n JOIN reports r ON r.node_id = n.id
			WHERE n.certname = $1 AND r.catalog_uuid <> '' AND r.noop = 0 ORDER BY r.received_at DESC, r.digest DESC LIMIT 1`, node).
			Scan(&a.UUID, &a.CodeID, at(&a.At))
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		err = q.row(ctx, "SELECT number, catalog FROM generations WHERE certname = $1 AND uuid = $2 ORDER BY number DESC LIMIT 1", node, a.UUID).
			Scan(&a.Generation, &a.Catalog)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		a.Catalog, err = one[fleet.Digest](q.row(ctx, `SELECT catalog FROM compilations WHERE certname = $1 AND uuid = $2 AND state = 'done'
			UNION ALL SELECT k.digest FROM nodes n JOIN catalogs k ON k.node_id = n.id WHERE n.certname = $1 AND k.uuid = $2 AND k.received = 0 LIMIT 1`, node, a.UUID))
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return a, explain(err, "read what %s applied", node)
}
