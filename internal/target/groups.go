package target

import (
	"context"

	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// Classifier knows groups; *classify.Service is one.
type Classifier interface {
	// Current is the tree of groups as it is stored now.
	Current(ctx context.Context) (*classify.Tree, error)
	// Members says which of the nodes are in a group; there are at most inventory.MaxNamed.
	Members(ctx context.Context, group classify.ID, nodes []fleet.Certname) (map[fleet.Certname]bool, error)
}

// Nodes lists the nodes that are stored; an inventory.NodeStore is one.
type Nodes interface {
	Nodes(ctx context.Context, page inventory.Page) ([]inventory.Node, error)
}

// Groups lists the members of groups. It is deliver.Groups.
type Groups struct {
	Classifier Classifier
	Nodes      Nodes
}

// GroupNodes is the nodes of a group that the inventory knows, by name.
func (g Groups) GroupNodes(ctx context.Context, group classify.ID) (found []fleet.Certname, err error) {
	err = g.each(ctx, func(names []fleet.Certname) error {
		members, err := g.Classifier.Members(ctx, group, names)
		for _, name := range names {
			if _, member := members[name]; member {
				found = append(found, name)
			}
		}
		return err
	})
	return found, err
}

// each tells of all nodes, some at a time.
func (g Groups) each(ctx context.Context, tell func([]fleet.Certname) error) error {
	for after := ""; ; {
		nodes, err := g.Nodes.Nodes(ctx, inventory.Page{After: after, Limit: inventory.MaxNamed})
		if err != nil || len(nodes) == 0 {
			return err
		}
		names := make([]fleet.Certname, len(nodes))
		for i, node := range nodes {
			names[i] = node.Certname
		}
		if err := tell(names); err != nil {
			return err
		}
		after = string(names[len(names)-1])
	}
}

// Members implements deliver.Groups.
func (g Groups) Members(ctx context.Context, group string) (all []fleet.Certname, err error) {
	tree, err := g.Classifier.Current(ctx)
	if err != nil {
		return nil, err
	}
	if !tree.Gate(classify.ID(group)).Everybody() {
		return g.GroupNodes(ctx, classify.ID(group))
	}
	err = g.each(ctx, func(names []fleet.Certname) error {
		all = append(all, names...)
		return nil
	})
	return all, err
}

// Memberships implements deliver.Groups.
func (g Groups) Memberships(ctx context.Context, nodes []fleet.Certname, groups []string) (map[fleet.Certname][]deliver.Membership, error) {
	tree, err := g.Classifier.Current(ctx)
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
		if err := g.eachMember(ctx, classify.ID(id), nodes, in); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// eachMember asks for a group's members, some nodes at a time.
func (g Groups) eachMember(ctx context.Context, group classify.ID, nodes []fleet.Certname, in func(fleet.Certname)) error {
	for len(nodes) > 0 {
		part := nodes[:min(len(nodes), inventory.MaxNamed)]
		nodes = nodes[len(part):]
		members, err := g.Classifier.Members(ctx, group, part)
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
