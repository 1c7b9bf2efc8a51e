// Package graph sorts things that wait for one another: nodes of a job, components of an application.
//
// All answers depend only on the content of a graph, never on the order of its input. Methods may be called
// concurrently. Building a graph and asking it cost time in proportion to names and edges.
package graph

import (
	"cmp"
	"slices"
)

// Edge says that one thing waits for another.
type Edge[K cmp.Ordered] struct {
	Waits K // comes later
	For   K // comes first
}

// Graph is things and what each of them waits for.
type Graph[K cmp.Ordered] struct {
	names []K
	needs [][]int // by place in names: what it waits for, sorted
}

// New makes a graph. An edge with an end that is not among names is passed over; names and
// edges may come several times.
func New[K cmp.Ordered](names []K, edges []Edge[K]) *Graph[K] {
	g := &Graph[K]{names: slices.Compact(slices.Sorted(slices.Values(names)))}
	places := make(map[K]int, len(g.names))
	for i, name := range g.names {
		places[name] = i
	}
	g.needs = make([][]int, len(g.names))
	for _, e := range edges {
		from, here := places[e.Waits]
		to, there := places[e.For]
		if here && there {
			g.needs[from] = append(g.needs[from], to)
		}
	}
	for i, list := range g.needs {
		slices.Sort(list)
		g.needs[i] = slices.Compact(list)
	}
	return g
}

// Edges is every edge once, by who waits, then by what for.
func (g *Graph[K]) Edges() []Edge[K] {
	var edges []Edge[K]
	for from, list := range g.needs {
		for _, to := range list {
			edges = append(edges, Edge[K]{g.names[from], g.names[to]})
		}
	}
	return edges
}

// Layers groups the names: those of the first layer wait for nobody, each other one waits for one of
// the layer before its own, and for none of its own or a later one. What is in a cycle, or waits for
// something in one, is in no layer.
func (g *Graph[K]) Layers() [][]K {
	open, waiters := make([]int, len(g.names)), make([][]int, len(g.names))
	var now []int
	for i, list := range g.needs {
		if open[i] = len(list); open[i] == 0 {
			now = append(now, i)
		}
		for _, to := range list {
			waiters[to] = append(waiters[to], i)
		}
	}
	var layers [][]K
	for len(now) > 0 {
		slices.Sort(now)
		layers = append(layers, g.named(now))
		var next []int
		for _, i := range now {
			for _, w := range waiters[i] {
				if open[w]--; open[w] == 0 {
					next = append(next, w)
				}
			}
		}
		now = next
	}
	return layers
}

// Order is the names so that each stands behind all that it waits for.
func (g *Graph[K]) Order() []K { return slices.Concat(g.Layers()...) }

func (g *Graph[K]) named(places []int) []K {
	list := make([]K, len(places))
	for i, place := range places {
		list[i] = g.names[place]
	}
	return list
}
