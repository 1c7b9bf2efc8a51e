package server

import (
	"context"
	"slices"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/protocol/rest"
	"github.com/tutti-project/tutti/internal/rbac"
)

// jobGate is job.Gate: who orders needs the permission of the kind of job for every node.
type jobGate struct {
	scopes scopes
	nodes  inventory.NodeStore
}

// Refused implements job.Gate.
func (g jobGate) Refused(ctx context.Context, actor fleet.Actor, s job.Spec, nodes []fleet.Certname) (map[fleet.Certname]string, error) {
	permission := rest.JobPermissions()[s.Kind]
	refused := map[fleet.Certname]string{}
	if !rbac.Scoped(actor, permission) {
		if err := rbac.Allow(actor, permission, fleet.Object{}); err != nil {
			for _, node := range nodes {
				refused[node] = fault.Detail(err)
			}
		}
		return refused, nil
	}
	for part := range slices.Chunk(nodes, inScope) {
		if err := g.judge(ctx, actor, permission, s, part, refused); err != nil {
			return nil, err
		}
	}
	return refused, nil
}

// inScope is how many nodes a condition is asked about at once.
const inScope = 500

// judge refuses some of the nodes. A grant that is good for some environments must be good for
// the node's own and, if the order is of another one, for that too.
func (g jobGate) judge(
	ctx context.Context, actor fleet.Actor, permission fleet.Permission, s job.Spec, nodes []fleet.Certname, refused map[fleet.Certname]string,
) error {
	inside := map[fleet.Certname][]string{}
	for _, condition := range rbac.NodeScopes(actor, permission) {
		holds, err := g.scopes.Inside(ctx, condition, nodes)
		if err != nil {
			return err
		}
		for node := range holds {
			inside[node] = append(inside[node], condition)
		}
	}
	for _, name := range nodes {
		node, err := g.nodes.Node(ctx, name)
		if err != nil && fault.Of(err) != fault.NotFound {
			return err
		}
		object := fleet.Object{Node: name, Environment: node.Environment, Inside: inside[name]}
		if s.Kind == job.Task {
			object.Task = s.Task.Name
		}
		err = rbac.Allow(actor, permission, object)
		if err == nil && s.Environment != "" {
			object.Environment = s.Environment
			err = rbac.Allow(actor, permission, object)
		}
		if err != nil {
			refused[name] = fault.Detail(err)
		}
	}
	return nil
}
