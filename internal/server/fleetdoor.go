package server

import (
	"context"
	"encoding/json"

	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	classifierapi "github.com/tutti-project/tutti/internal/protocol/classifier"
)

// fleetDoor is what the classifier's API asks for.
type fleetDoor struct{ *parts }

// GroupNodes is classifierapi.Fleet.
func (d fleetDoor) GroupNodes(ctx context.Context, group classify.ID) ([]fleet.Certname, error) {
	var found []fleet.Certname
	for after := ""; ; {
		nodes, err := d.store.Nodes.Nodes(ctx, inventory.Page{After: after, Limit: inventory.MaxNamed})
		if err != nil || len(nodes) == 0 {
			return found, err
		}
		names := make([]fleet.Certname, len(nodes))
		for i, node := range nodes {
			names[i] = node.Certname
		}
		members, err := d.groups.Members(ctx, group, names)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if _, member := members[name]; member {
				found = append(found, name)
			}
		}
		after = string(names[len(names)-1])
	}
}

// Known is classifierapi.Fleet.
func (d fleetDoor) Known(ctx context.Context, name fleet.Certname) (facts, trusted json.RawMessage, err error) {
	return d.groups.documents(ctx, name, classify.Needs{Facts: true, Trusted: true})
}

// Deployed is classifierapi.Fleet.
func (d fleetDoor) Deployed(ctx context.Context) ([]classifierapi.Environment, error) {
	versions, err := d.store.Versions.Environments(ctx)
	deployed := make([]classifierapi.Environment, len(versions))
	for i, v := range versions {
		deployed[i] = classifierapi.Environment{Name: v.Environment, At: v.DeployedAt}
	}
	return deployed, err
}
