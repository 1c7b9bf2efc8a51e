package chart

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/inventory"
)

// tree is what contains what.
type tree struct {
	above map[string]string
	class map[string]string // what was found
}

func newTree(edges []inventory.Edge) *tree {
	t := &tree{map[string]string{}, map[string]string{}}
	for _, e := range edges {
		if e.Relationship == contains {
			t.above[e.Target] = e.Source
		}
	}
	return t
}

// classOf is the class that a resource is in, itself if it is one; empty: none.
func (t *tree) classOf(name string) string {
	found := ""
	seen := map[string]bool{}
	for at := name; at != "" && !seen[at]; at = t.above[at] {
		if kindOf(at) == "Class" {
			found = at
			break
		}
		if class, known := t.class[at]; known {
			found = class
			break
		}
		seen[at] = true
	}
	for at := range seen {
		t.class[at] = found
	}
	return found
}

// folding makes boxes of resources.
type folding struct {
	known map[string]Resource
	tree  *tree
	open  []string
	folds bool
}

// box is the name of the box that shows a resource.
func (f *folding) box(name string) string {
	if !f.folds || f.known[name].State == "failed" {
		return name
	}
	class := f.tree.classOf(name)
	if class == "" || slices.Contains(f.open, class) {
		return name
	}
	return class
}

func (f *folding) fold(shown map[string]bool, links []link) Chart {
	members := map[string][]string{}
	for name := range shown {
		at := f.box(name)
		members[at] = append(members[at], name)
	}
	boxOf := map[string]string{}
	var c Chart
	for at, names := range members {
		if len(names) == 1 { // a class with one thing of interest tells less than the thing
			at = names[0]
		}
		b := Box{Resource: f.known[at]}
		b.Name = at
		for _, name := range names {
			boxOf[name] = at
		}
		if b.Folded = len(names) > 1; b.Folded {
			b.State, b.Counts = f.sum(names)
		}
		c.Boxes = append(c.Boxes, b)
	}
	c.Lines = merge(links, boxOf)
	return c
}

// sum is the worst state of resources, and how many are in which. The class itself does not count: the run does nothing for it.
func (f *folding) sum(names []string) (worst string, counts map[string]int) {
	counts = map[string]int{}
	for _, name := range names {
		state := f.known[name].State
		if holdsThings(name) && state == "" {
			continue
		}
		counts[state]++
		if worse(state, worst) < 0 {
			worst = state
		}
	}
	return worst, counts
}

// merge makes one line of all links between two boxes.
func merge(links []link, boxOf map[string]string) []Line {
	type ends struct{ from, to string }
	lines := map[ends]*Line{}
	for _, l := range links {
		at := ends{boxOf[l.from], boxOf[l.to]}
		if at.from == at.to {
			continue
		}
		line := lines[at]
		if line == nil {
			line = &Line{From: at.from, To: at.to}
			lines[at] = line
		}
		line.Edges++
		if !slices.Contains(line.Kinds, l.kind) {
			line.Kinds = append(line.Kinds, l.kind)
		}
	}
	all := make([]Line, 0, len(lines))
	for _, line := range lines {
		slices.Sort(line.Kinds)
		all = append(all, *line)
	}
	slices.SortFunc(all, func(a, b Line) int { return cmp.Or(strings.Compare(a.From, b.From), strings.Compare(a.To, b.To)) })
	return all
}
