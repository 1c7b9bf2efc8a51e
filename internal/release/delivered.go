package release

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Delivered is Delivery over what nodes have.
type Delivered struct {
	Given   // what nodes were given
	Deliver *deliver.Service
}

// Given is what nodes were given by releases, and reported.
type Given interface {
	Generations(ctx context.Context, node fleet.Certname) ([]deliver.Generation, error)
	GivenBy(ctx context.Context, release int64) ([]fleet.Certname, error)
	ReportedCatalog(ctx context.Context, node fleet.Certname, transaction string) (uuid string, ok bool, err error)
}

// Has implements Delivery.
func (d Delivered) Has(ctx context.Context, node fleet.Certname) (h Holding, err error) {
	standing, _, err := d.Deliver.Standing(ctx, node)
	if err != nil {
		return h, err
	}
	probe := deliver.Order{Catalog: deliver.Catalog{Digest: "-", Environment: "-", Version: "-"}}
	if _, refused := deliver.Advance(standing, probe, time.Now()); refused != nil {
		h.Refuses = fault.Detail(refused)
		if !standing.Pin.At.IsZero() {
			h.Refuses += "; to release to it: tutti catalog unpin " + string(node)
		}
	}
	switch {
	case standing.Force != deliver.Released && standing.Newest != nil:
		h.Catalog, h.Version = standing.Newest.Digest, standing.Newest.Version
	case standing.Head != nil:
		h.Catalog, h.Version, h.Generation, h.Release = standing.Head.Digest, standing.Head.Version, standing.Head.Number, standing.Head.Release
	}
	return h, nil
}

// Give implements Delivery. The job that comes next is what has the node run: nobody is told to run before.
func (d Delivered) Give(ctx context.Context, node fleet.Certname, o deliver.Order) (int64, error) {
	given, _, err := d.Deliver.Release(ctx, node, o, deliver.Scheduled)
	return given.Number, err
}
