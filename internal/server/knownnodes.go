package server

import (
	"context"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// knownNodes is the inventory's nodes, those that have joined and sent nothing yet, and those that are connected. The runs of a node that is purged end.
type knownNodes struct {
	inventory.WithConnected
	departures departures
}

// knownNodes makes it.
func (p *parts) knownNodes() knownNodes {
	joined := inventory.WithEnrolled{NodeStore: p.store.Nodes, Enrolments: p.store.Nodes}
	return knownNodes{inventory.WithConnected{NodeStore: joined, Connections: presences{p.agents}}, p.departures}
}

// PurgeNode implements inventory.NodeStore.
func (k knownNodes) PurgeNode(ctx context.Context, name fleet.Certname) error {
	err := k.WithConnected.PurgeNode(ctx, name)
	if err == nil || fault.Of(err) == fault.NotFound {
		k.departures.purged(ctx, "its node was purged", name)
	}
	return err
}
