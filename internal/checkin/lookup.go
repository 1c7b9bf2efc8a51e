package checkin

import (
	"context"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// OrderMaker makes orders for compilers; compile.Orders is one.
type OrderMaker interface {
	Build(ctx context.Context, c compile.Compilation) (order compile.Order, factsSeq int64, err error)
}

// Lookups asks Hiera what it gives for a node, with all that a compilation of the node would have.
type Lookups struct {
	Environments Environments
	Orders       OrderMaker
	Looker       compile.Looker
}

// Where is the environment that a node gets its data from, and the version of it: what was released to the node, and otherwise
// what it would get now. A requested environment goes before both; NotFound if it has no code.
func (l Lookups) Where(ctx context.Context, node fleet.Certname, requested fleet.Environment) (fleet.Environment, fleet.Digest, error) {
	if requested != "" {
		version, err := l.Environments.Versions.Refresh(ctx, requested)
		return requested, version.ID, err
	}
	known, err := l.Environments.Nodes.Node(ctx, node)
	if err != nil && fault.Of(err) != fault.NotFound {
		return "", "", err
	}
	place, err := l.Environments.OrOwn(ctx, node, known.Environment)
	if err != nil {
		return "", "", err
	}
	if place.Released && place.Standing.Head != nil {
		return place.Environment, place.Standing.Head.Version, nil
	}
	return place.Environment, place.Version, nil
}

// Lookup asks. It returns *compile.Error where the code, or what is known of the node, gives no answer.
func (l Lookups) Lookup(ctx context.Context, node fleet.Certname, env fleet.Environment, version fleet.Digest,
	question compile.Lookup,
) (compile.Looked, error) {
	order, _, err := l.Orders.Build(ctx, compile.Compilation{Node: node, Environment: env, Version: version})
	if err != nil {
		return compile.Looked{}, err
	}
	looked, err := l.Looker.Lookup(ctx, order, question)
	return looked, order.Blamed(err)
}
