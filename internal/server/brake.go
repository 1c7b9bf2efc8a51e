package server

import (
	"context"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/sql"
)

// keptCatalogs are the catalogs that nodes have while newer ones are held.
type keptCatalogs struct{ rows *sql.Deliveries }

// of is the catalog that a node keeps; see compile.ServiceParts.
func (k keptCatalogs) of(ctx context.Context, node fleet.Certname) (compile.Compilation, error) {
	had, _, err := k.rows.Had(ctx, node)
	if err == nil && had.Digest == "" {
		err = fault.New(fault.NotFound, "%s has no catalog that it could keep", node)
	}
	return compile.Compilation{
		ID:          had.Compilation,
		Node:        node,
		Environment: had.Environment,
		Version:     had.Version,
		State:       compile.Done,
		FinishedAt:  had.CompiledAt,
		Catalog:     had.Digest,
		UUID:        had.UUID,
	}, err
}

// brakeFigures registers what the brake does. Holds are rows: all servers show the same ones.
func (m *metrics) brakeFigures(delivery *deliver.Service, rows *sql.Deliveries) {
	m.counter("tutti_catalog_warnings_total", "Catalogs that were given though they lost more resources than catalog_warn_below allows.",
		func() float64 { return float64(delivery.Warned()) })
	m.gauge("tutti_catalogs_held", "Nodes that keep their catalog because the newest one lost its resources; -1 if the store does not answer.",
		func() float64 {
			ctx, cancel := context.WithTimeout(context.Background(), checkTime)
			defer cancel()
			held, err := rows.Losses(ctx, deliver.LossFilter{Ruling: deliver.Hold})
			if err != nil {
				return -1
			}
			return float64(len(held))
		})
}
