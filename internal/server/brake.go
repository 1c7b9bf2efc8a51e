package server

import (
	"context"
	"errors"
	"time"

	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// limits is what the settings say of the brake; they were checked when they were read.
func (p *parts) limits() deliver.Limits {
	c := p.config.Load()
	hold, err := deliver.ParseFloor(c.CatalogHoldBelow)
	warn, err2 := deliver.ParseFloor(c.CatalogWarnBelow)
	if err != nil || err2 != nil {
		return deliver.Limits{Hold: deliver.Off, Warn: deliver.Off}
	}
	return deliver.Limits{Hold: hold, Warn: warn}
}

// SaveCatalog is compile.Results: what a catalog holds becomes rows, unless the brake holds it. A node that came into
// released mode while it was compiled keeps what was released to it.
func (a adapter) SaveCatalog(ctx context.Context, r compile.Result) error {
	if _, released, err := a.deliver.Held(ctx, r.Compilation.Node); released || err != nil {
		return err
	}
	for range 3 { // another catalog may be given meanwhile: then the brake has another one to compare with
		ruled, err := a.rule(ctx, r.Compilation, func() (int, error) { return catalog.CountResources(r.Document) })
		if err != nil {
			return err
		}
		if ruled.Ruling == deliver.Hold {
			return compile.ErrHeld
		}
		if err = a.show(ctx, r, &ruled.Over); !errors.Is(err, inventory.ErrReplaced) {
			return err
		}
	}
	return fault.Later(time.Second, "the catalog of %s changes all the time", r.Compilation.Node)
}

// Held is compile.Results.
func (a adapter) Held(ctx context.Context, c compile.Compilation) (bool, error) {
	if _, released, err := a.deliver.Held(ctx, c.Node); released || err != nil {
		return false, err
	}
	ruled, err := a.rule(ctx, c, func() (int, error) {
		document, err := a.Document(ctx, c.Catalog)
		if err != nil {
			return 0, err
		}
		return catalog.CountResources(document)
	})
	return ruled.Ruling == deliver.Hold, err
}

func (a adapter) rule(ctx context.Context, c compile.Compilation, left func() (int, error)) (deliver.Ruled, error) {
	return a.deliver.Rule(ctx, c.Node, deliver.Catalog{
		Digest: c.Catalog, Environment: c.Environment, Version: c.Version, UUID: c.UUID, Compilation: c.ID, CompiledAt: c.FinishedAt,
	}, left)
}

// kept is the catalog that a node has while a newer one is held; see compile.ServiceParts.
func (p *parts) kept(ctx context.Context, node fleet.Certname) (compile.Compilation, error) {
	had, _, err := p.store.Deliveries.Had(ctx, node)
	if err == nil && had.Digest == "" {
		err = fault.New(fault.NotFound, "%s has no catalog that it could keep", node)
	}
	return compile.Compilation{
		ID: had.Compilation, Node: node, Environment: had.Environment, Version: had.Version, State: compile.Done, FinishedAt: had.CompiledAt,
		Catalog: had.Digest, UUID: had.UUID,
	}, err
}

// openBrake counts what the brake does. Holds are rows: all servers show the same ones.
func (p *parts) openBrake() {
	p.metrics.counter("tutti_catalog_warnings_total", "Catalogs that were given though they lost more resources than catalog_warn_below allows.",
		func() float64 { return float64(p.deliver.Warned()) })
	p.metrics.gauge("tutti_catalogs_held", "Nodes that keep their catalog because the newest one lost its resources; -1 if the store does not answer.",
		func() float64 {
			ctx, cancel := context.WithTimeout(context.Background(), checkTime)
			defer cancel()
			held, err := p.store.Deliveries.Losses(ctx, deliver.LossFilter{Ruling: deliver.Hold})
			if err != nil {
				return -1
			}
			return float64(len(held))
		})
}
