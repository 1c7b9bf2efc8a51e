package chart

import (
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/graph"
	"github.com/tutti-project/tutti/internal/inventory"
)

// moment is the beginning or the end of a resource: what needs it waits for its end, and what is in it for its beginning.
type moment struct {
	name string
	ends bool
}

// moments is what follows from what, as Puppet walks a catalog.
type moments struct {
	contents, containers map[string][]string
	needers              map[string][]inventory.Edge
}

func momentsOf(edges []inventory.Edge) moments {
	m := moments{map[string][]string{}, map[string][]string{}, map[string][]inventory.Edge{}}
	for _, e := range edges {
		if e.Relationship == contains {
			m.contents[e.Source] = append(m.contents[e.Source], e.Target)
			m.containers[e.Target] = append(m.containers[e.Target], e.Source)
			continue
		}
		m.needers[e.Source] = append(m.needers[e.Source], e)
	}
	return m
}

// step leads from a moment to a later one.
type step struct {
	to   moment
	kind string // of the line that shows it; empty: none does
}

// next is what cannot come before a moment. What is no container ends after its beginning only if it was skipped: else it was done.
func (m moments) next(at moment, skipped map[string]bool) []step {
	var steps []step
	if at.ends {
		for _, e := range m.needers[at.name] {
			steps = append(steps, step{moment{e.Target, false}, e.Relationship})
		}
		for _, name := range m.containers[at.name] {
			steps = append(steps, step{moment{name, true}, Inside})
		}
		return steps
	}
	for _, name := range m.contents[at.name] {
		steps = append(steps, step{moment{name, false}, contains})
	}
	if skipped[at.name] || holdsThings(at.name) {
		steps = append(steps, step{moment{at.name, true}, ""})
	}
	return steps
}

// holdsThings says whether a resource is done when all in it is: Puppet runs nothing for a class or stage itself.
func holdsThings(name string) bool { return kindOf(name) == "Class" || kindOf(name) == "Stage" }

// trouble is what failed, what was skipped, and the containers by way of which one led to the other.
func trouble(known map[string]Resource, edges []inventory.Edge) (map[string]bool, []link) {
	m, shown, skipped := momentsOf(edges), map[string]bool{}, map[string]bool{}
	var queue []moment
	reached := map[moment]bool{}
	for name, r := range known {
		if r.State == "failed" || r.State == "skipped" {
			shown[name] = true
		}
		if r.State == "skipped" {
			skipped[name] = true
		}
		if r.State == "failed" {
			queue = append(queue, moment{name, true})
			reached[moment{name, true}] = true
		}
	}
	type way struct {
		from moment
		step
	}
	var ways []way
	for ; len(queue) > 0; queue = queue[1:] {
		for _, s := range m.next(queue[0], skipped) {
			ways = append(ways, way{queue[0], s})
			if !reached[s.to] {
				reached[s.to] = true
				queue = append(queue, s.to)
			}
		}
	}
	before := map[moment][]moment{}
	for _, w := range ways {
		before[w.to] = append(before[w.to], w.from)
	}
	// Only what leads to something that was skipped is of interest.
	leads := map[moment]bool{}
	for name := range skipped {
		if at := (moment{name, false}); reached[at] && !leads[at] {
			leads[at] = true
			queue = append(queue, at)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, from := range before[queue[0]] {
			if !leads[from] {
				leads[from] = true
				queue = append(queue, from)
			}
		}
	}
	var links []link
	for _, w := range ways {
		if !leads[w.from] || !leads[w.to] || w.kind == "" {
			continue
		}
		if w.kind == Inside && reached[moment{w.to.name, false}] {
			continue // the container had not begun: it holds its content up, not the content it
		}
		shown[w.from.name], shown[w.to.name] = true, true
		links = append(links, link{w.from.name, w.to.name, w.kind})
	}
	return shown, links
}

// cycleIn is resources that wait for one another in a circle, each for the next; nil: there is none. A container waits for what is in it.
func cycleIn(edges []inventory.Edge) []string {
	var names []string
	var waits []graph.Edge[string]
	begin := func(name string) string { return name + " begins" }
	end := func(name string) string { return name + " ends" }
	for _, e := range edges {
		for _, name := range []string{e.Source, e.Target} {
			names = append(names, begin(name), end(name))
			waits = append(waits, graph.Edge[string]{Waits: end(name), For: begin(name)})
		}
		if e.Relationship == contains {
			waits = append(waits, graph.Edge[string]{Waits: begin(e.Target), For: begin(e.Source)}, graph.Edge[string]{Waits: end(e.Source), For: end(e.Target)})
		} else {
			waits = append(waits, graph.Edge[string]{Waits: begin(e.Target), For: end(e.Source)})
		}
	}
	var cycle []string
	for _, at := range graph.New(names, waits).Cycle() {
		for _, of := range []string{" begins", " ends"} {
			if name, is := strings.CutSuffix(at, of); is && !slices.Contains(cycle, name) {
				cycle = append(cycle, name)
			}
		}
	}
	return cycle
}
