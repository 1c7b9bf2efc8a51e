package classify

import "slices"

// Tree is a set of groups, ready to classify nodes.
type Tree struct {
	groups   []Group // parents before children
	parents  []int   // by position; the root's is -1
	depths   []int
	needs    Needs
	facts    []string // top-level facts that rules look at, sorted
	settles  bool
	detached []Group
}

// Needs says what the rules look at, so that nobody fetches the rest.
type Needs struct {
	Facts   bool
	Trusted bool
}

// NewTree arranges groups. Groups that hang nowhere are defective: they match
// nothing.
func NewTree(groups []Group) *Tree {
	t := &Tree{groups: Ordered(groups)}
	at := make(map[ID]int, len(t.groups))
	t.parents, t.depths = make([]int, len(t.groups)), make([]int, len(t.groups))
	for i, g := range t.groups {
		at[g.ID] = i
		t.parents[i] = -1
		if !g.IsRoot() {
			t.parents[i] = at[g.Parent]
			t.depths[i] = t.depths[t.parents[i]] + 1
		}
		t.settles = t.settles || g.Environment != ""
		if g.Rule != nil {
			g.Rule.walk(func(r Rule) {
				if r.Path.Root == Fact && len(r.Path.Steps) > 0 {
					t.facts = append(t.facts, r.Path.Steps[0].Key)
				}
				t.needs.Facts = t.needs.Facts || r.Path.Root == Fact
				t.needs.Trusted = t.needs.Trusted || r.Path.Root == Trusted
			})
		}
	}
	slices.Sort(t.facts)
	t.facts = slices.Compact(t.facts)
	for _, g := range groups {
		if _, hangs := at[g.ID]; !hangs {
			g.Defect = "no way leads from it up to " + RootName
			t.detached = append(t.detached, g)
		}
	}
	return t
}

// Needs says what the rules look at.
func (t *Tree) Needs() Needs { return t.needs }

// FactNames lists the top-level facts that rules look at, sorted.
func (t *Tree) FactNames() []string { return t.facts }

// SettlesEnvironments says whether any group names an environment.
func (t *Tree) SettlesEnvironments() bool { return t.settles }

// Defects lists the groups that cannot be used, with the reason in Defect.
func (t *Tree) Defects() []Group {
	out := append([]Group(nil), t.detached...)
	for _, g := range t.groups {
		if g.Defect != "" {
			out = append(out, g)
		}
	}
	return out
}

// narrows says whether the group has a condition of its own.
func (g Group) narrows() bool { return g.Rule != nil || len(g.Pinned) > 0 }

// stand is how a node stands to a group.
type stand struct {
	open    bool // the node may be in groups below
	member  bool // the node is in the group
	leaf    bool // and in none below it
	pinned  bool
	stopped int // the group whose condition fails, this one or one above; -1 when none does
}

// stands finds the groups that node is in.
func (t *Tree) stands(node Node) []stand {
	out := make([]stand, len(t.groups))
	for i := range t.groups {
		out[i] = t.stand(i, out, node)
	}
	below := make([]bool, len(t.groups)) // a member is below
	for i := len(out) - 1; i >= 0; i-- {
		out[i].leaf = out[i].member && !below[i]
		if p := t.parents[i]; p >= 0 && (out[i].member || below[i]) {
			below[p] = true
		}
	}
	return out
}

func (t *Tree) stand(i int, above []stand, node Node) stand {
	g, parent := &t.groups[i], t.parents[i]
	if parent >= 0 && !above[parent].open {
		return stand{stopped: above[parent].stopped}
	}
	if g.Defect != "" {
		return stand{stopped: i}
	}
	if !g.narrows() {
		return stand{open: true, stopped: -1}
	}
	pinned := g.pins(node)
	if pinned || g.Rule != nil && g.Rule.Holds(node) {
		return stand{open: true, member: true, pinned: pinned, stopped: -1}
	}
	return stand{stopped: i}
}
