package checkin

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

// Brake rules on catalogs; *deliver.Service is one.
type Brake interface {
	Standings
	Rule(ctx context.Context, node fleet.Certname, c deliver.Catalog, left func() (int, error)) (deliver.Ruled, error)
}

// Shown keeps the catalog that the inventory shows of each node; an inventory.CatalogStore is one.
type Shown interface {
	SaveCatalog(ctx context.Context, c inventory.Catalog) error
}

// Reinstater gives the catalog of a generation a row of its own, so that it is later than any other one of its node.
type Reinstater interface {
	// NotFound when another generation was released meanwhile.
	Reinstate(ctx context.Context, g deliver.Generation, now time.Time) (compile.Compilation, error)
}

// Results is compile.Results and deliver.Promoter: it rules on catalogs that were compiled, and shows in the inventory
// what nodes have.
type Results struct {
	Brake     Brake
	Shown     Shown
	Rows      Reinstater
	Documents Documents
	Server    string // the name of this server
}

// SaveCatalog implements compile.Results: what a catalog holds becomes rows, unless the brake holds it. A node that came into
// released mode while it was compiled keeps what was released to it.
func (s Results) SaveCatalog(ctx context.Context, r compile.Result) error {
	if _, released, err := s.Brake.Held(ctx, r.Compilation.Node); released || err != nil {
		return err
	}
	for range 3 { // another catalog may be given meanwhile: then the brake has another one to compare with
		ruled, err := s.rule(ctx, r.Compilation, func() (int, error) { return catalog.CountResources(r.Document) })
		if err != nil {
			return err
		}
		if ruled.Ruling == deliver.Hold {
			return compile.ErrHeld
		}
		if err = s.show(ctx, r, &ruled.Over); !errors.Is(err, inventory.ErrReplaced) {
			return err
		}
	}
	return fault.Later(time.Second, "the catalog of %s changes all the time", r.Compilation.Node)
}

// Held implements compile.Results.
func (s Results) Held(ctx context.Context, c compile.Compilation) (bool, error) {
	if _, released, err := s.Brake.Held(ctx, c.Node); released || err != nil {
		return false, err
	}
	ruled, err := s.rule(ctx, c, func() (int, error) {
		document, err := s.Documents.Document(ctx, c.Catalog)
		if err != nil {
			return 0, err
		}
		return catalog.CountResources(document)
	})
	return ruled.Ruling == deliver.Hold, err
}

func (s Results) rule(ctx context.Context, c compile.Compilation, left func() (int, error)) (deliver.Ruled, error) {
	return s.Brake.Rule(ctx, c.Node, CatalogOf(c), left)
}

// CatalogOf is the catalog that a compilation gave.
func CatalogOf(c compile.Compilation) deliver.Catalog {
	return deliver.Catalog{
		Digest: c.Catalog, Environment: c.Environment, Version: c.Version, UUID: c.UUID, Compilation: c.ID, CompiledAt: c.FinishedAt,
	}
}

// Promote implements deliver.Promoter: what was released is what the inventory shows.
func (s Results) Promote(ctx context.Context, g deliver.Generation) error {
	row, err := s.Rows.Reinstate(ctx, g, time.Now())
	if fault.Is(err, fault.NotFound) {
		return nil // another one was released meanwhile
	}
	if err != nil {
		return err
	}
	document, err := s.Documents.Document(ctx, g.Digest)
	if err != nil {
		return err
	}
	result := compile.Result{Compilation: row, Document: document}
	if row.Inputs != nil {
		result.Collected = row.Inputs.Collected
	}
	return s.show(ctx, result, nil)
}

// show makes a catalog its node's newest in the inventory, in the place of over; nil: of any.
func (s Results) show(ctx context.Context, r compile.Result, over *fleet.Digest) error {
	exported, own, err := catalog.Split(r.Document)
	if err != nil {
		return err
	}
	resources, edges, err := inventory.ParseCatalog(own)
	if err != nil {
		return err
	}
	offered, _, err := inventory.ParseCatalog(append(append([]byte(`{"resources":`), exported...), '}'))
	if err != nil {
		return err
	}
	resources = withExported(resources, offered)
	c := r.Compilation
	return s.Shown.SaveCatalog(ctx, inventory.Catalog{
		Origin: inventory.Origin{Producer: s.Server}, ConfigVersion: string(c.Version), CodeID: string(c.Version),
		Certname: c.Node, Environment: c.Environment, Digest: c.Catalog, Version: c.Version, UUID: c.UUID,
		Transaction: c.Transaction, CompiledAt: c.FinishedAt, Compilation: c.ID, Attempt: c.Attempts, Over: over, Resources: resources, Edges: edges,
		Collected: collectedIn(resources, r.Collected),
	})
}

// withExported adds what a node exports. What it also collects itself is in its
// catalog, too, and is kept in the form in which others are given it.
func withExported(resources, offered []inventory.Resource) []inventory.Resource {
	place := make(map[[2]string]int, len(resources))
	for i, resource := range resources {
		place[[2]string{resource.Type, resource.Title}] = i
	}
	for _, resource := range offered {
		resource.Exported = true
		if i, there := place[[2]string{resource.Type, resource.Title}]; there {
			resources[i] = resource
			continue
		}
		resources = append(resources, resource)
	}
	return resources
}

// collectedIn keeps what became part of the catalog: code may ask for more.
func collectedIn(resources []inventory.Resource, collected []compile.Collected) []inventory.Collected {
	there := make(map[[2]string]bool, len(resources))
	for _, resource := range resources {
		there[[2]string{resource.Type, resource.Title}] = !resource.Exported
	}
	var kept []inventory.Collected
	for _, c := range collected {
		if there[[2]string{c.Type, c.Title}] {
			kept = append(kept, inventory.Collected(c))
		}
	}
	return kept
}
