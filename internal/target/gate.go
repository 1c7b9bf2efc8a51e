package target

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/pql"
	"github.com/tutti-project/tutti/internal/rbac"
)

// Permissions are what it takes to order each kind of job.
func Permissions() map[job.Kind]fleet.Permission {
	return map[job.Kind]fleet.Permission{
		job.Puppet:  fleet.PuppetRun,
		job.Task:    fleet.TaskRun,
		job.Command: fleet.CommandRun,
		job.Script:  fleet.ScriptRun,
		job.File:    fleet.FileSend,
		job.Action:  fleet.ActionRun,
	}
}

// Gate is job.Gate: an actor who orders a job needs the permission of its kind for every node.
type Gate struct {
	Scopes Scopes
	Nodes  NodeByName
}

// NodeByName tells what is known of a node; an inventory.NodeStore does.
type NodeByName interface {
	Node(ctx context.Context, name fleet.Certname) (inventory.Node, error) // NotFound
}

// Refused implements job.Gate.
func (g Gate) Refused(ctx context.Context, actor fleet.Actor, s job.Spec, nodes []fleet.Certname) (map[fleet.Certname]string, error) {
	return g.RefusedTo(ctx, actor, Permissions()[s.Kind], s, nodes)
}

// RefusedTo is Refused for an order that needs another permission than its kind has as a job.
func (g Gate) RefusedTo(
	ctx context.Context, actor fleet.Actor, permission fleet.Permission, s job.Spec, nodes []fleet.Certname,
) (map[fleet.Certname]string, error) {
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
func (g Gate) judge(
	ctx context.Context, actor fleet.Actor, permission fleet.Permission, s job.Spec, nodes []fleet.Certname, refused map[fleet.Certname]string,
) error {
	inside := map[fleet.Certname][]string{}
	for _, condition := range rbac.NodeScopes(actor, permission) {
		holds, err := g.Scopes.Inside(ctx, condition, nodes)
		if err != nil {
			return err
		}
		for node := range holds {
			inside[node] = append(inside[node], condition)
		}
	}
	for _, name := range nodes {
		node, err := g.Nodes.Node(ctx, name)
		if err != nil && fault.Of(err) != fault.NotFound {
			return err
		}
		object := fleet.Object{Node: name, Environment: node.Environment, Inside: inside[name]}
		switch s.Kind {
		case job.Task:
			object.Task = s.Task.Name
		case job.Action:
			object.Action = s.Action.Module + "." + s.Action.Action
		case job.Puppet, job.Command, job.Script, job.File:
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

// Scopes says which nodes the conditions of grants hold for, by asking the inventory.
type Scopes struct{ Inventory inventory.Asker }

// Inside is those of the nodes that a condition holds for.
func (s Scopes) Inside(ctx context.Context, condition string, nodes []fleet.Certname) (map[fleet.Certname]bool, error) {
	where, err := pql.NodeCondition(condition)
	if err != nil {
		return nil, err
	}
	among := pql.In{Fields: []pql.Field{{Name: "certname"}}}
	for _, node := range nodes {
		among.Values = append(among.Values, pql.Text(string(node)))
	}
	checked, err := pql.Check(&pql.Query{
		Entity: "nodes", Columns: []pql.Column{{Field: pql.Field{Name: "certname"}}}, Where: pql.And{Terms: []pql.Expr{among, where}},
	})
	if err != nil {
		return nil, err
	}
	inside := map[fleet.Certname]bool{}
	err = s.Inventory.Ask(ctx, inventory.Question{Query: checked, MaxRows: len(nodes)}, func(row json.RawMessage) error {
		var node struct{ Certname fleet.Certname }
		if err := json.Unmarshal(row, &node); err != nil {
			return err
		}
		inside[node.Certname] = true
		return nil
	})
	return inside, err
}

// CheckScope refuses a condition that no inventory could be asked.
func CheckScope(condition string) error {
	if _, err := pql.NodeCondition(condition); err != nil {
		return fault.Wrap(fault.Invalid, err, "the condition on nodes %.80q cannot be used: %s", condition, fault.Detail(err))
	}
	return nil
}
