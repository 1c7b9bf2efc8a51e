package job

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/graph"
)

// MaxEdges bounds how many edges an ordered job has.
const MaxEdges = 1_000_000

// layers is who of nodes waits for whom of them, and the order that follows. Invalid if
// none does: no run of a circle could ever begin.
func (s *Service) layers(ctx context.Context, nodes []fleet.Certname) ([]graph.Edge[fleet.Certname], [][]fleet.Certname, error) {
	edges, err := s.Graph.Edges(ctx, nodes)
	if err != nil {
		return nil, nil, err
	}
	g := graph.New(nodes, edges)
	if cycle := g.Cycle(); cycle != nil {
		return nil, nil, fault.New(fault.Invalid, "field ordered: %s: nobody can be the first", circle(cycle))
	}
	edges = g.Edges()
	if len(edges) > MaxEdges {
		return nil, nil, fault.New(fault.Invalid, "field ordered: there are %d edges among the targets, at most %d can be in one job", len(edges), MaxEdges)
	}
	return edges, g.Layers(), nil
}

// circle is nodes that wait for each other, in words.
func circle(nodes []fleet.Certname) string {
	var text strings.Builder
	text.WriteString(string(nodes[0]))
	for _, node := range slices.Concat(nodes[1:], nodes[:1]) {
		fmt.Fprintf(&text, " waits for %s, which", node)
	}
	return strings.TrimSuffix(text.String(), ", which")
}

// edges is the plan's by the numbers that its runs get.
func (p Plan) edges() []Edge {
	numbers := make(map[fleet.Certname]int, len(p.Targets))
	for i, t := range p.Targets {
		numbers[t.Node] = i + 1
	}
	edges := make([]Edge, len(p.Edges))
	for i, e := range p.Edges {
		edges[i] = Edge{Run: numbers[e.Waits], For: numbers[e.For]}
	}
	return edges
}

// waits is what the runs with a number wait for, in words.
func (p Plan) waits() map[int]string {
	needs := map[int][]int{}
	for _, e := range p.edges() {
		needs[e.Run] = append(needs[e.Run], e.For)
	}
	words := make(map[int]string, len(needs))
	for number, list := range needs {
		words[number] = fmt.Sprintf("waits for %s", p.Targets[list[0]-1].Node)
		if others := len(list) - 1; others > 0 {
			words[number] += fmt.Sprintf(" and %d more", others)
		}
	}
	return words
}
