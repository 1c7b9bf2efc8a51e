// Package chart makes a picture of what waits for what on a node: of what failed in its last run and all that was skipped for it, or of its
// whole catalog.
//
// A picture has a bounded number of boxes. Of many resources those of one class are one box, until the class is opened; what failed has
// always a box of its own. Places come from graph/layout: who shows the picture only draws.
package chart

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/graph/layout"
	"github.com/tutti-project/tutti/internal/inventory"
)

// Resource is one of a catalog or of a run.
type Resource struct {
	Name  string // Type[title]
	State string // of the run: failed, skipped, changed, noop, unchanged; empty: the run does not say
	File  string
	Line  int
}

// Question is what a picture is asked of.
type Question struct {
	Resources []Resource
	Edges     []inventory.Edge
	Whole     bool     // the whole catalog; else what failed, what was skipped, and what is between
	Open      []string // classes whose resources have boxes of their own; All is every class
	Near      string   // only this resource, what it waits for and what waits for it; empty: all
}

// All opens every class.
const All = "all"

// The bounds of a picture.
const (
	MostBoxes = 500
	MostLines = 2000
	few       = 40 // so many resources are shown one by one though nobody asks for it
)

// How large a box is.
const (
	boxWidth  = 210
	boxHeight = 46
)

// Box is a resource, a container, or a class with all that is in it.
type Box struct {
	Resource
	Folded bool           // it stands for all of its class
	Counts map[string]int // of a folded one: its resources by state; without a state under ""
	X, Y   int
	Row    int
}

// Line says that one box waits for another, or is in it.
type Line struct {
	From, To string // names of boxes: To waits for From
	Kinds    []string
	Edges    int  // how many of the catalog it stands for
	Back     bool // it closes a circle
	Points   []layout.Point
}

// Inside is the kind of a line from a resource to the container that is not done before it.
const Inside = "inside"

// contains is how a catalog says that something is in something.
const contains = "contains"

// Chart is a picture.
type Chart struct {
	Width, Height int
	BoxWidth      int
	BoxHeight     int
	Boxes         []Box // by row, from left to right
	Lines         []Line
	Left          int // boxes that are too many
	LinesLeft     int
	Cycle         []string // resources that wait for one another in a circle
	Folds         bool     // classes are folded
}

// link is an edge that is shown.
type link struct{ from, to, kind string }

// Draw answers a question. NotFound is an empty chart: who asks knows whether the resource of Near is there.
func Draw(q Question) Chart {
	known := make(map[string]Resource, len(q.Resources))
	for _, r := range q.Resources {
		known[r.Name] = r
	}
	tree := newTree(q.Edges)
	shown, links := wholeCatalog(known, q.Edges)
	var cycle []string
	if !q.Whole {
		shown, links = trouble(known, q.Edges)
	}
	if q.Whole || len(shown) == 0 {
		cycle = cycleIn(q.Edges)
	}
	if !q.Whole && len(shown) == 0 {
		shown, links = circle(cycle, q.Edges)
	}
	if q.Near != "" {
		shown, links = near(q.Near, shown, links)
	}
	f := folding{known: known, tree: tree, open: q.Open, folds: len(shown) > few && !slices.Contains(q.Open, All)}
	c := f.fold(shown, links)
	c.Cycle, c.Folds = cycle, f.folds
	c.cut()
	c.draw()
	return c
}

// severity orders states, the worst first.
var severity = map[string]int{"failed": 0, "skipped": 1, "changed": 2, "noop": 3, "unchanged": 4, "": 5}

func worse(a, b string) int { return cmp.Compare(severity[a], severity[b]) }

// cut leaves out what is too much: of boxes the calmest.
func (c *Chart) cut() {
	slices.SortFunc(c.Boxes, func(a, b Box) int { return cmp.Or(worse(a.State, b.State), strings.Compare(a.Name, b.Name)) })
	if c.Left = max(0, len(c.Boxes)-MostBoxes); c.Left > 0 {
		c.Boxes = c.Boxes[:MostBoxes]
	}
	here := map[string]bool{}
	for _, b := range c.Boxes {
		here[b.Name] = true
	}
	c.Lines = slices.DeleteFunc(c.Lines, func(l Line) bool { return !here[l.From] || !here[l.To] })
	if c.LinesLeft = max(0, len(c.Lines)-MostLines); c.LinesLeft > 0 {
		c.Lines = c.Lines[:MostLines]
	}
}

// draw gives boxes and lines their places.
func (c *Chart) draw() {
	slices.SortFunc(c.Boxes, func(a, b Box) int { return strings.Compare(a.Name, b.Name) })
	places, boxes := make(map[string]int, len(c.Boxes)), make([]layout.Box, len(c.Boxes))
	for i, b := range c.Boxes {
		places[b.Name], boxes[i] = i, layout.Box{Width: boxWidth, Height: boxHeight}
	}
	lines := make([]layout.Line, len(c.Lines))
	for i, l := range c.Lines {
		lines[i] = layout.Line{From: places[l.From], To: places[l.To]}
	}
	p := layout.Draw(boxes, lines)
	c.Width, c.Height, c.BoxWidth, c.BoxHeight = p.Width, p.Height, boxWidth, boxHeight
	for i := range c.Boxes {
		c.Boxes[i].X, c.Boxes[i].Y, c.Boxes[i].Row = p.Boxes[i].X, p.Boxes[i].Y, p.Rows[i]
	}
	for i := range c.Lines {
		c.Lines[i].Points, c.Lines[i].Back = p.Paths[i].Points, p.Paths[i].Back
	}
	slices.SortFunc(c.Boxes, func(a, b Box) int { return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.X, b.X)) })
}

// wholeCatalog is every resource and edge. Stages, and containers with nothing in them, are shown only if something waits for them or they wait.
func wholeCatalog(known map[string]Resource, edges []inventory.Edge) (map[string]bool, []link) {
	waits, holds := map[string]bool{}, map[string]bool{}
	for _, e := range edges {
		if e.Relationship == contains {
			holds[e.Source] = true
		} else {
			waits[e.Source], waits[e.Target] = true, true
		}
	}
	shown := map[string]bool{}
	for name := range known {
		bare := kindOf(name) == "Stage" || kindOf(name) == "Class" && !holds[name]
		shown[name] = !bare || waits[name]
	}
	maps.DeleteFunc(shown, func(_ string, is bool) bool { return !is })
	var links []link
	for _, e := range edges {
		if shown[e.Source] && shown[e.Target] {
			links = append(links, link{e.Source, e.Target, e.Relationship})
		}
	}
	return shown, links
}

// circle is resources that wait for one another, each for the next, with the edges by which they do.
func circle(names []string, edges []inventory.Edge) (map[string]bool, []link) {
	shown, next := map[string]bool{}, map[string]string{}
	for i, name := range names {
		shown[name], next[name] = true, names[(i+1)%len(names)]
	}
	var links []link
	for _, e := range edges {
		if e.Relationship == contains && next[e.Source] == e.Target { // the container is not done before what is in it
			links = append(links, link{e.Target, e.Source, Inside})
		} else if next[e.Target] == e.Source {
			links = append(links, link{e.Source, e.Target, e.Relationship})
		}
	}
	return shown, links
}

// near leaves a resource, all that it waits for and all that waits for it.
func near(name string, shown map[string]bool, links []link) (map[string]bool, []link) {
	if !shown[name] {
		return nil, nil
	}
	after, before := map[string][]string{}, map[string][]string{}
	for _, l := range links {
		after[l.from] = append(after[l.from], l.to)
		before[l.to] = append(before[l.to], l.from)
	}
	kept := map[string]bool{name: true}
	for _, next := range []map[string][]string{after, before} {
		seen := map[string]bool{name: true}
		for queue := []string{name}; len(queue) > 0; queue = queue[1:] {
			for _, to := range next[queue[0]] {
				if !seen[to] {
					seen[to], kept[to] = true, true
					queue = append(queue, to)
				}
			}
		}
	}
	return kept, slices.DeleteFunc(links, func(l link) bool { return !kept[l.from] || !kept[l.to] })
}

// kindOf is the type of a resource.
func kindOf(name string) string {
	kind, _, _ := strings.Cut(name, "[")
	return kind
}
