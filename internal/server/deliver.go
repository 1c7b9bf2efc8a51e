package server

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// openDeliver wires the deliver core to its neighbours.
func (p *parts) openDeliver() error {
	p.deliver = deliver.NewService(deliver.Parts{
		Store: p.store.Deliveries, Groups: deliveryGroups{p}, Promoter: promoter{p}, Now: time.Now, Log: p.log.Logger,
		Setting: func() deliver.Mode { return deliver.Mode(p.config.Load().DeliveryMode) }, FactsRead: p.factsRead, Limits: p.limits,
		Changed: func(node fleet.Certname, apply deliver.Apply) { p.hinter.Changed(node, apply) },
	})
	p.openBrake()
	return p.openHinter()
}

// deliveryGroups is deliver.Groups over the stored groups.
type deliveryGroups struct{ *parts }

// Memberships implements deliver.Groups.
func (d deliveryGroups) Memberships(ctx context.Context, nodes []fleet.Certname, groups []string) (map[fleet.Certname][]deliver.Membership, error) {
	tree, err := d.groups.current(ctx)
	if err != nil {
		return nil, err
	}
	found := map[fleet.Certname][]deliver.Membership{}
	for _, id := range groups {
		gate := tree.Gate(classify.ID(id))
		in := func(node fleet.Certname) {
			found[node] = append(found[node], deliver.Membership{Group: id, Name: gate.Name(), Depth: gate.Depth()})
		}
		if gate.Everybody() {
			for _, node := range nodes {
				in(node)
			}
			continue
		}
		if !gate.Open() {
			continue
		}
		if err := d.eachMember(ctx, classify.ID(id), nodes, in); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// eachMember asks for a group's members, some nodes at a time.
func (d deliveryGroups) eachMember(ctx context.Context, group classify.ID, nodes []fleet.Certname, in func(fleet.Certname)) error {
	for len(nodes) > 0 {
		part := nodes[:min(len(nodes), inventory.MaxNamed)]
		nodes = nodes[len(part):]
		members, err := d.groups.Members(ctx, group, part)
		if err != nil {
			return err
		}
		for _, node := range part {
			if _, member := members[node]; member {
				in(node)
			}
		}
	}
	return nil
}

// Members implements deliver.Groups.
func (d deliveryGroups) Members(ctx context.Context, group string) ([]fleet.Certname, error) {
	tree, err := d.groups.current(ctx)
	if err != nil {
		return nil, err
	}
	if tree.Gate(classify.ID(group)).Everybody() {
		return d.everyNode(ctx)
	}
	return fleetDoor(d).GroupNodes(ctx, classify.ID(group))
}

func (d deliveryGroups) everyNode(ctx context.Context) (all []fleet.Certname, err error) {
	for after := ""; ; {
		nodes, err := d.store.Nodes.Nodes(ctx, inventory.Page{After: after, Limit: inventory.MaxNamed})
		if err != nil || len(nodes) == 0 {
			return all, err
		}
		for _, node := range nodes {
			all = append(all, node.Certname)
		}
		after = string(nodes[len(nodes)-1].Certname)
	}
}

// promoter is deliver.Promoter: what was released is what the inventory shows.
type promoter struct{ *parts }

// Promote implements deliver.Promoter. The catalog gets a row of its own, so that it is
// later than any other one of its node.
func (d promoter) Promote(ctx context.Context, g deliver.Generation) error {
	row, err := d.store.Deliveries.Reinstate(ctx, g, time.Now())
	if fault.Is(err, fault.NotFound) {
		return nil //nolint:nilerr // another one was released meanwhile
	}
	if err != nil {
		return err
	}
	document, err := adapter(d).Document(ctx, g.Digest)
	if err != nil {
		return err
	}
	result := compile.Result{Compilation: row, Document: document}
	if row.Inputs != nil {
		result.Collected = row.Inputs.Collected
	}
	return adapter(d).show(ctx, result, nil)
}
