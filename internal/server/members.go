package server

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Members is httpapi.Classifier: it asks the stored groups, and reads of each node
// what the rules look at.
func (c *classifier) Members(ctx context.Context, group classify.ID, nodes []fleet.Certname) (map[fleet.Certname]bool, error) {
	tree, err := c.current(ctx)
	if err != nil {
		return nil, err
	}
	members, gate := map[fleet.Certname]bool{}, tree.Gate(group)
	if !gate.Open() {
		return members, nil
	}
	facts, trusted := factPaths(gate), gate.Paths(classify.Trusted)
	leaves, err := c.leaves(ctx, nodes, facts)
	if err != nil {
		return nil, err
	}
	for _, name := range nodes {
		known, err := c.partTrusted(ctx, name, trusted)
		if err != nil {
			return nil, err
		}
		node, err := classify.NewPartNode(name, factsAt(facts, leaves[name]), known)
		if err != nil {
			return nil, err
		}
		if member, pinned := gate.Admits(node); member {
			members[name] = pinned
		}
	}
	return members, nil
}

// factPaths is what the conditions look at: from the inventory's spelling of a path
// to the rules'.
func factPaths(gate classify.Gate) map[string]string {
	paths := map[string]string{}
	for _, path := range gate.Paths(classify.Fact) {
		paths[factPath(path)] = path.String()
	}
	return paths
}

func (c *classifier) leaves(ctx context.Context, nodes []fleet.Certname, paths map[string]string) (map[fleet.Certname][]facts.Leaf, error) {
	if len(paths) == 0 {
		return nil, nil //nolint:nilnil // nobody looks
	}
	return c.store.FactLeaves(ctx, nodes, slices.Sorted(maps.Keys(paths)))
}

// factPath is where the inventory keeps what a rule looks at.
func factPath(path classify.Path) string {
	steps := make([]any, len(path.Steps))
	for i, step := range path.Steps {
		if steps[i] = step.Key; step.IsIndex {
			steps[i] = int64(step.Index)
		}
	}
	return facts.PathText(steps...)
}

// factsAt are leaves as rules ask for them.
func factsAt(paths map[string]string, leaves []facts.Leaf) map[string]any {
	facts := make(map[string]any, len(leaves))
	for _, leaf := range leaves {
		facts[paths[leaf.Path]] = leafValue(leaf)
	}
	return facts
}

// leafValue is a leaf as rules see it.
func leafValue(leaf facts.Leaf) any {
	switch leaf.Kind {
	case facts.String:
		return leaf.Text
	case facts.Integer, facts.Float:
		return json.Number(leaf.Text)
	case facts.Boolean:
		return leaf.Text == "true"
	case facts.EmptyObject:
		return map[string]any{}
	case facts.EmptyArray:
		return []any{}
	case facts.Null:
	}
	return nil
}

// partTrusted reads the certificate only if a rule looks at trusted data, and asks
// the program for external ones only if a rule looks at these.
func (c *classifier) partTrusted(ctx context.Context, name fleet.Certname, paths []classify.Path) (trusted json.RawMessage, err error) {
	if len(paths) == 0 {
		return nil, nil
	}
	external := false
	for _, path := range paths {
		external = external || path.Steps[0].Key == "external"
	}
	door := agentDoor{c.parts}
	if external {
		trusted, err = door.Trusted(ctx, name, nil)
	} else {
		trusted, err = door.certified(ctx, name)
	}
	if fault.Of(err) == fault.NotFound { // it has no certificate
		err = nil
	}
	return trusted, err
}

// certified is what a node's certificate says.
func (d agentDoor) certified(ctx context.Context, node fleet.Certname) (json.RawMessage, error) {
	cert, err := d.issued(ctx, node)
	if err != nil {
		return nil, err
	}
	return d.ca.Trusted(cert, nil)
}
