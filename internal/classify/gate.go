package classify

import (
	"encoding/json"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Gate decides about one group alone: its own condition, and those of the groups
// above it. It looks at no others, so it is what to ask for the nodes of a group.
type Gate struct {
	way    []*Group // from the group up to the root
	closed bool     // no way leads to it
}

// Gate is the one of the group; of a group that there is none of, and of one that
// hangs nowhere, it is closed.
func (t *Tree) Gate(id ID) Gate {
	for i := range t.groups {
		if t.groups[i].ID != id {
			continue
		}
		var gate Gate
		for ; i >= 0; i = t.parents[i] {
			gate.way = append(gate.way, &t.groups[i])
		}
		return gate
	}
	return Gate{closed: true}
}

// Admits says whether node is in the group, and whether it is pinned there.
// Classify finds the same.
func (g Gate) Admits(node Node) (member, pinned bool) {
	if g.closed || !g.way[0].narrows() {
		return false, false
	}
	for _, group := range g.way {
		if group.Defect != "" || group.narrows() && !group.pins(node) && (group.Rule == nil || !group.Rule.Holds(node)) {
			return false, false
		}
	}
	return true, g.way[0].pins(node)
}

// Depth is how many groups are above the group; 0 for one that is not there.
func (g Gate) Depth() int { return max(0, len(g.way)-1) }

// Name is the group's; empty for one that is not there.
func (g Gate) Name() string {
	if g.closed {
		return ""
	}
	return g.way[0].Name
}

// Everybody says whether the group is the root, and the root has no condition.
func (g Gate) Everybody() bool { return !g.closed && g.way[0].IsRoot() && !g.way[0].narrows() }

// Open says whether the group can have nodes of its own, that is a rule or pinned
// nodes.
func (g Gate) Open() bool { return !g.closed && g.way[0].narrows() }

// Paths lists what the conditions look at below a root, each once, so that nobody
// fetches the rest.
func (g Gate) Paths(root Root) []Path {
	var paths []Path
	seen := map[string]bool{}
	for _, group := range g.way {
		if group.Rule == nil {
			continue
		}
		group.Rule.walk(func(r Rule) {
			if text := r.Path.String(); r.Path.Root == root && !seen[text] {
				seen[text] = true
				paths = append(paths, r.Path)
			}
		})
	}
	return paths
}

// NewPartNode is a node of which only some facts are known: string, bool,
// json.Number or nil by the path that leads there (Path.String). Rules must not look
// at others. What is a structure may be left out: it matches nothing.
func NewPartNode(name fleet.Certname, facts map[string]any, trusted json.RawMessage) (Node, error) {
	node, err := NewNode(name, nil, trusted)
	node.parts = facts
	if facts == nil {
		node.parts = map[string]any{}
	}
	return node, err
}
