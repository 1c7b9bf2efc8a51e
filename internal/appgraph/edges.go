package appgraph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/graph"
)

// Edge says that a node waits for another one, and why.
type Edge struct {
	Waits, For fleet.Certname
	Why        []Why // at least one, by their text
}

// Why is one reason of an edge: a capability, or what was collected.
type Why struct {
	Capability Ref    // that the one consumes and the other one produces
	Consumer   Ref    // the component
	Type       string // that the one collected from the other one
	Title      string // the first of them
	Count      int
}

// String is the reason in words, to go on from "waits for NODE: ".
func (w Why) String() string {
	switch {
	case w.Type == "":
		return w.Consumer.String() + " consumes " + w.Capability.String()
	case w.Count > 1:
		return fmt.Sprintf("collects %s[%s] and %d more", w.Type, w.Title, w.Count-1)
	}
	return fmt.Sprintf("collects %s[%s]", w.Type, w.Title)
}

// Shared is nodes that collect resources of one type from each other.
type Shared struct {
	Type  string
	Nodes []fleet.Certname // sorted
}

// pair is who waits for whom.
type pair = graph.Edge[fleet.Certname]

// reasons collects why nodes wait for others.
type reasons map[pair][]Why

// consume adds the edges between components. Consumption on the producer's own node needs none.
func (r reasons) consume(components []Component) {
	type key struct {
		environment fleet.Environment
		capability  Ref
	}
	producers := map[key][]fleet.Certname{}
	for _, c := range components {
		for _, capability := range c.Produces {
			producers[key{c.Environment, capability}] = append(producers[key{c.Environment, capability}], c.Node)
		}
	}
	for _, c := range components {
		for _, capability := range c.Consumes {
			for _, producer := range producers[key{c.Environment, capability}] {
				r.add(c.Node, producer, Why{Capability: capability, Consumer: c.Name})
			}
		}
	}
}

// collect adds the edges of what was collected, without those among nodes that share a type.
func (r reasons) collect(collections []Collection) (shared []Shared) {
	byType := map[string][]Collection{}
	for _, c := range collections {
		byType[c.Type] = append(byType[c.Type], c)
	}
	for kind, list := range byType {
		names, edges := make([]fleet.Certname, 0, 2*len(list)), make([]pair, 0, len(list))
		for _, c := range list {
			names, edges = append(names, c.Collector, c.Exporter), append(edges, pair{Waits: c.Collector, For: c.Exporter})
		}
		knot := map[fleet.Certname]int{}
		for i, nodes := range graph.New(names, edges).Knots() {
			for _, node := range nodes {
				knot[node] = i + 1
			}
			if len(nodes) > 1 {
				shared = append(shared, Shared{kind, nodes})
			}
		}
		for _, c := range list {
			if knot[c.Collector] == 0 || knot[c.Collector] != knot[c.Exporter] {
				r.add(c.Collector, c.Exporter, Why{Type: c.Type, Title: c.Title, Count: c.Count})
			}
		}
	}
	slices.SortFunc(shared, func(a, b Shared) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), cmp.Compare(a.Nodes[0], b.Nodes[0]))
	})
	return shared
}

func (r reasons) add(waits, other fleet.Certname, why Why) {
	if waits != other {
		r[pair{Waits: waits, For: other}] = append(r[pair{Waits: waits, For: other}], why)
	}
}

// edges is what was collected, sorted.
func (r reasons) edges() []Edge {
	edges := make([]Edge, 0, len(r))
	for p, why := range r {
		slices.SortFunc(why, func(a, b Why) int { return strings.Compare(a.String(), b.String()) })
		edges = append(edges, Edge{p.Waits, p.For, slices.Compact(why)})
	}
	slices.SortFunc(edges, func(a, b Edge) int { return cmp.Or(cmp.Compare(a.Waits, b.Waits), cmp.Compare(a.For, b.For)) })
	return edges
}

// circular is the refusal of edges that have no order: the whole way, with the reason of each step.
func circular(cycle []fleet.Certname, edges []Edge) error {
	var steps []string
	for i, node := range cycle {
		next := cycle[(i+1)%len(cycle)]
		at, _ := slices.BinarySearchFunc(edges, Edge{Waits: node, For: next}, func(a, b Edge) int {
			return cmp.Or(cmp.Compare(a.Waits, b.Waits), cmp.Compare(a.For, b.For))
		})
		steps = append(steps, fmt.Sprintf("%s waits for %s (%s)", node, next, edges[at].Why[0]))
	}
	return fault.New(fault.Invalid, "field ordered: nobody can be the first of these: %s", strings.Join(steps, ", "))
}
