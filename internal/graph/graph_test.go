package graph_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/graph"
)

type edge = graph.Edge[string]

func TestLayersAndOrder(t *testing.T) {
	t.Parallel()
	g := graph.New([]string{"lb", "web", "db", "alone", "lb"}, []edge{{"lb", "web"}, {"web", "db"}, {"lb", "db"}, {"web", "db"}, {"web", "elsewhere"}})
	if diff := cmp.Diff([][]string{{"alone", "db"}, {"web"}, {"lb"}}, g.Layers()); diff != "" {
		t.Errorf("layers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]edge{{"lb", "db"}, {"lb", "web"}, {"web", "db"}}, g.Edges()); diff != "" {
		t.Errorf("edges (-want +got):\n%s", diff)
	}
	if c, k := g.Cycle(), g.Knots(); c != nil || k != nil {
		t.Errorf("cycle %v, knots %v", c, k)
	}
}

func TestCycle(t *testing.T) {
	t.Parallel()
	g := graph.New([]string{"a", "b", "c", "d", "e", "f", "x"}, []edge{
		{"a", "b"},                         // leads into a cycle
		{"b", "c"}, {"c", "d"}, {"d", "b"}, // a long way round
		{"c", "b"}, // a short one
		{"e", "f"}, {"f", "e"},
	})
	if diff := cmp.Diff([]string{"b", "c"}, g.Cycle()); diff != "" {
		t.Errorf("cycle (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]string{{"b", "c", "d"}, {"e", "f"}}, g.Knots()); diff != "" {
		t.Errorf("knots (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]string{{"x"}}, g.Layers()); diff != "" {
		t.Errorf("layers (-want +got):\n%s", diff)
	}
	if loop := graph.New([]string{"a"}, []edge{{"a", "a"}}).Cycle(); !slices.Equal(loop, []string{"a"}) {
		t.Errorf("a thing that waits for itself: %v", loop)
	}
}

type drawn struct {
	names []string
	edges []edge
}

func draw(t *rapid.T) drawn {
	names := make([]string, rapid.IntRange(1, 12).Draw(t, "names"))
	for i := range names {
		names[i] = fmt.Sprintf("n%02d", i)
	}
	one := rapid.SampledFrom(names)
	return drawn{names, rapid.SliceOfN(rapid.Custom(func(t *rapid.T) edge {
		return edge{one.Draw(t, "waits"), one.Draw(t, "for")}
	}), 0, 20).Draw(t, "edges")}
}

// reaches says by naive search whether there is a way of at least one edge.
func (d drawn) reaches(from, to string) bool {
	seen := map[string]bool{}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, e := range d.edges {
			if e.Waits == queue[0] && e.For == to {
				return true
			}
			if e.Waits == queue[0] && !seen[e.For] {
				seen[e.For] = true
				queue = append(queue, e.For)
			}
		}
	}
	return false
}

func TestAnyGraphKeepsTheRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		d := draw(rt)
		g := graph.New(d.names, d.edges)
		place := map[string]int{}
		for i, name := range g.Order() {
			place[name] = i + 1
		}
		for _, e := range d.edges {
			if place[e.Waits] > 0 && (place[e.For] == 0 || place[e.For] >= place[e.Waits]) {
				rt.Fatalf("%s waits for %s and stands at %d, that at %d", e.Waits, e.For, place[e.Waits], place[e.For])
			}
		}
		circular := map[string]bool{}
		for _, name := range d.names {
			circular[name] = d.reaches(name, name)
		}
		d.checkPlaces(rt, place, circular)
		d.checkCycle(rt, g.Cycle(), circular)
		d.checkKnots(rt, g.Knots(), circular)
		d.checkLayers(rt, g.Layers())
	})
}

// checkPlaces: in the order is what is not in a cycle and leads into none.
func (d drawn) checkPlaces(rt *rapid.T, place map[string]int, circular map[string]bool) {
	for _, name := range d.names {
		stuck := circular[name] || slices.ContainsFunc(d.names, func(c string) bool { return circular[c] && d.reaches(name, c) })
		if stuck == (place[name] > 0) {
			rt.Fatalf("%s: in or behind a cycle is %v, its place %d", name, stuck, place[name])
		}
	}
}

func (d drawn) checkCycle(rt *rapid.T, cycle []string, circular map[string]bool) {
	first := slices.IndexFunc(d.names, func(name string) bool { return circular[name] })
	if (first >= 0) != (len(cycle) > 0) {
		rt.Fatalf("cycles: %v; reported %v", circular, cycle)
	}
	for i, name := range cycle {
		if !slices.Contains(d.edges, edge{name, cycle[(i+1)%len(cycle)]}) {
			rt.Fatalf("%v is no way", cycle)
		}
	}
	if first >= 0 && cycle[0] != d.names[first] {
		rt.Fatalf("%v does not begin with %s", cycle, d.names[first])
	}
}

func (d drawn) checkKnots(rt *rapid.T, knots [][]string, circular map[string]bool) {
	in := map[string]int{}
	for i, knot := range knots {
		for _, name := range knot {
			in[name] = i + 1
		}
	}
	for _, a := range d.names {
		if circular[a] != (in[a] > 0) {
			rt.Fatalf("%s in a cycle is %v, its knot %d", a, circular[a], in[a])
		}
		for _, b := range d.names {
			if together := in[a] > 0 && in[a] == in[b]; a != b && together != (d.reaches(a, b) && d.reaches(b, a)) {
				rt.Fatalf("%s and %s in one knot: %v", a, b, together)
			}
		}
	}
}

// checkLayers: nothing stands in a later layer than it must.
func (d drawn) checkLayers(rt *rapid.T, layers [][]string) {
	for i := 1; i < len(layers); i++ {
		for _, name := range layers[i] {
			if !slices.ContainsFunc(d.edges, func(e edge) bool { return e.Waits == name && slices.Contains(layers[i-1], e.For) }) {
				rt.Fatalf("%s is in layer %d and waits for nobody of the one before: %v", name, i, layers)
			}
		}
	}
}

func TestAnswersDoNotDependOnInputOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		d := draw(rt)
		g := graph.New(d.names, d.edges)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		r.Shuffle(len(d.names), func(i, j int) { d.names[i], d.names[j] = d.names[j], d.names[i] })
		r.Shuffle(len(d.edges), func(i, j int) { d.edges[i], d.edges[j] = d.edges[j], d.edges[i] })
		again := graph.New(d.names, d.edges)
		for what, pair := range map[string][2]any{
			"layers": {g.Layers(), again.Layers()}, "cycle": {g.Cycle(), again.Cycle()}, "knots": {g.Knots(), again.Knots()}, "edges": {g.Edges(), again.Edges()},
		} {
			if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
				rt.Fatalf("%s differ: %s", what, diff)
			}
		}
	})
}

func TestALongChainIsNoTrouble(t *testing.T) {
	t.Parallel()
	names := make([]int, 100_000)
	var edges []graph.Edge[int]
	for i := range names {
		names[i] = i
		edges = append(edges, graph.Edge[int]{Waits: i, For: i + 1})
	}
	g := graph.New(names, edges)
	if n := len(g.Layers()); n != len(names) || g.Cycle() != nil {
		t.Errorf("%d layers, cycle %v", n, g.Cycle())
	}
	edges = append(edges, graph.Edge[int]{Waits: len(names) - 1, For: 0})
	if n := len(graph.New(names, edges).Cycle()); n != len(names) {
		t.Errorf("a cycle of %d", n)
	}
}
