package server

import (
	"context"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/preview"
	"github.com/tutti-project/tutti/internal/protocol/rest"
	"github.com/tutti-project/tutti/internal/release"
	"github.com/tutti-project/tutti/internal/target"
)

// deliveries is rest.Deliveries.
type deliveries struct {
	*deliver.Service
	rows deliver.Store
}

// Generations implements rest.Deliveries.
func (d deliveries) Generations(ctx context.Context, node fleet.Certname) ([]deliver.Generation, error) {
	return d.rows.Generations(ctx, node)
}

// HeldIn implements rest.Deliveries.
func (d deliveries) HeldIn(ctx context.Context, env fleet.Environment) ([]deliver.Held, error) {
	return d.rows.HeldIn(ctx, env)
}

// ModesSet implements rest.Deliveries.
func (d deliveries) ModesSet(ctx context.Context) ([]deliver.ModeSet, error) {
	return d.rows.ModesSet(ctx)
}

// catalogReleases is rest.CatalogReleases.
type catalogReleases struct {
	release.Staging
	deliver  *deliver.Service
	resolver target.Resolver
}

// catalogReleases makes it.
func (p *parts) catalogReleases() catalogReleases {
	return catalogReleases{
		deliver: p.deliver, resolver: p.resolver,
		Staging: release.Staging{
			Environment: p.places.LiveOfKnown,
			Versions:    p.store.Versions.Versions,
			Delivery:    p.deliver,
			Stager:      p.wants,
			Wake:        p.dispatch.Wake,
		},
	}
}

// ReleaseAll implements rest.CatalogReleases.
func (d catalogReleases) ReleaseAll(
	ctx context.Context, all []deliver.Prepared, o deliver.Order, apply deliver.Apply,
) ([]deliver.Outcome, error) {
	return d.deliver.ReleaseAll(ctx, all, o, apply)
}

// Targets implements rest.CatalogReleases.
func (d catalogReleases) Targets(ctx context.Context, wanted job.Targets) ([]fleet.Certname, error) {
	return d.resolver.Resolve(ctx, wanted)
}

// catalogChanges is rest.CatalogChanges.
type catalogChanges struct {
	compare func() (preview.Comparing, error)
}

// Changes implements rest.CatalogChanges.
func (d catalogChanges) Changes(ctx context.Context, steps []rest.CatalogStep) (changes api.FleetDifference, compared int, err error) {
	groups, err := d.compare()
	if err != nil {
		return changes, 0, err
	}
	for i, s := range steps {
		number := uint32(i)
		if s.From == s.To {
			groups.AddSame(number, s.Node)
			compared++
			continue
		}
		_, err := groups.Add(ctx, number, s.Node, preview.Pair{Base: s.From, Fresh: s.To})
		switch kind := fault.Of(err); {
		case err == nil:
			compared++
		case kind != fault.NotFound && kind != fault.Invalid:
			return changes, compared, err
		}
	}
	changes, err = groups.Fleet(maxDifferences, func(number uint32) string { return string(steps[number].Node) })
	return changes, compared, err
}
