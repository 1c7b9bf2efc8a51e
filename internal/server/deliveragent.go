package server

import (
	"context"

	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/puppet"
)

// released answers a stock agent with what was released to its node. Nothing is
// compiled. An agent that is told no goes on with the catalog that it has kept.
func (d agentDoor) released(ctx context.Context, held deliver.Standing, stamp catalog.Stamp, packed bool) (puppet.Answer, error) {
	pointer, err := d.deliver.PointerOf(ctx, held)
	if err != nil {
		if fault.Of(err) == fault.NotFound {
			err = fault.Wrap(fault.Conflict, err, "%s", fault.Detail(err)) // the environment is there
		}
		return puppet.Answer{}, err
	}
	stamp.Version, stamp.UUID = pointer.Version, pointer.UUID
	answer := puppet.Answer{Packed: packed, Environment: pointer.Environment, CodeID: string(pointer.Version)}
	if packed {
		answer.Document, answer.Rich, err = d.packs.Packed(ctx, pointer.Catalog, stamp)
	} else {
		var document []byte
		if document, err = adapter(d).Document(ctx, pointer.Catalog); err == nil {
			answer.Document, err = catalog.Render(document, stamp)
			answer.Rich = catalog.Rich(answer.Document)
		}
	}
	if err != nil {
		return puppet.Answer{}, fault.Wrap(fault.Internal, err, "generation %d of %s cannot be read", pointer.Generation, held.Node)
	}
	return answer, nil
}

// Released is puppet.Releases. A node whose newest catalog is held is given the files of the one that it keeps.
func (d agentDoor) Released(ctx context.Context, node fleet.Certname) (r puppet.Release, ok bool, err error) {
	held, ok, err := d.deliver.Held(ctx, node)
	if err != nil || ok && held.Head == nil {
		return r, false, err
	}
	if ok {
		return puppet.Release{Environment: held.Head.Environment, Version: held.Head.Version}, true, nil
	}
	loss, ok, err := d.deliver.OnHold(ctx, node)
	return puppet.Release{Environment: loss.Kept.Environment, Version: loss.Kept.Version}, ok && err == nil, err
}
