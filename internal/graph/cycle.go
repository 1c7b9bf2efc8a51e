package graph

import "slices"

// Cycle is names that wait for one another in a circle: each for the next one, the last for the
// first. It begins with the first of all names that are in cycles, and is a shortest one through it.
// Nil: there is none.
func (g *Graph[K]) Cycle() []K {
	knots := g.circular()
	if len(knots) == 0 {
		return nil
	}
	return g.named(g.wayBack(knots[0][0]))
}

// Knots is the names that are in cycles, each together with all that it waits for and that
// wait for it, perhaps by way of others.
func (g *Graph[K]) Knots() [][]K {
	var knots [][]K
	for _, knot := range g.circular() {
		knots = append(knots, g.named(knot))
	}
	return knots
}

// circular is Knots by place, each and all sorted.
func (g *Graph[K]) circular() [][]int {
	s := search{needs: g.needs, number: make([]int, len(g.names)), low: make([]int, len(g.names)), open: make([]bool, len(g.names))}
	for i := range g.names {
		if s.number[i] == 0 {
			s.visit(i)
		}
	}
	slices.SortFunc(s.knots, func(a, b []int) int { return a[0] - b[0] })
	return s.knots
}

// search finds strongly connected components: R. Tarjan, Depth-first search and linear graph
// algorithms, SIAM Journal on Computing 1(2), 1972.
type search struct {
	needs  [][]int
	last   int
	number []int // in the order of visits, from 1
	low    []int // the lowest number of an open place that can be reached
	open   []bool
	stack  []int // open places
	knots  [][]int
}

func (s *search) visit(i int) {
	s.last++
	s.number[i], s.low[i], s.open[i] = s.last, s.last, true
	s.stack = append(s.stack, i)
	for _, to := range s.needs[i] {
		if s.number[to] == 0 {
			s.visit(to)
		}
		if s.open[to] {
			s.low[i] = min(s.low[i], s.low[to])
		}
	}
	if s.low[i] == s.number[i] {
		s.close(i)
	}
}

// close takes the component that was entered by i off the stack.
func (s *search) close(i int) {
	from := len(s.stack) - 1
	for s.stack[from] != i { // from its end: it may be long
		from--
	}
	knot := slices.Clone(s.stack[from:])
	s.stack = s.stack[:from]
	for _, place := range knot {
		s.open[place] = false
	}
	if len(knot) > 1 || slices.Contains(s.needs[i], i) {
		slices.Sort(knot)
		s.knots = append(s.knots, knot)
	}
}

// wayBack is a shortest way from a place in a cycle to itself, without its end.
func (g *Graph[K]) wayBack(start int) []int {
	came := make([]int, len(g.names)) // from where, plus one
	for queue := []int{start}; len(queue) > 0; queue = queue[1:] {
		for _, to := range g.needs[queue[0]] {
			if to == start {
				return trail(came, start, queue[0])
			}
			if came[to] == 0 {
				came[to] = queue[0] + 1
				queue = append(queue, to)
			}
		}
	}
	return nil
}

// trail is the way from start to end.
func trail(came []int, start, end int) []int {
	way := []int{end}
	for end != start {
		end = came[end] - 1
		way = append(way, end)
	}
	slices.Reverse(way)
	return way
}
