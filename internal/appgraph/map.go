package appgraph

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/graph"
)

// Map is applications, and which nodes wait for which others.
type Map struct {
	Applications []Application // by environment and name
	Edges        []Edge        // by who waits, then for whom
	Shared       []Shared      // what gives no order, by type
	Problems     []Problem     // of no application
}

// Application is an instance of a model in an environment.
type Application struct {
	Environment fleet.Environment
	Name        Ref // its model and its instance
	Description string
	Parameters  json.RawMessage // an object; nil: none are said
	Components  []Component     // each behind those that it consumes from, as far as there is an order
	Problems    []Problem
}

// Nodes is where its components are, sorted, each once.
func (a Application) Nodes() []fleet.Certname {
	var nodes []fleet.Certname
	for _, c := range a.Components {
		nodes = append(nodes, c.Node)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// Chart makes a map of what catalogs say. It does not depend on the order of either list.
func Chart(declared []Declared, collections []Collection) Map {
	components, apps, problems := read(declared)
	why := reasons{}
	why.consume(components)
	m := Map{Shared: why.collect(collections), Problems: problems}
	m.Edges = why.edges()
	m.Applications = assemble(components, apps)
	slices.SortFunc(m.Problems, compareProblems)
	return m
}

// Among is the map with only these nodes: their edges with each other, and the applications that have a
// component on one of them.
func (m Map) Among(nodes []fleet.Certname) Map {
	in := make(map[fleet.Certname]bool, len(nodes))
	for _, node := range nodes {
		in[node] = true
	}
	here := Map{Shared: m.Shared, Problems: m.Problems}
	for _, e := range m.Edges {
		if in[e.Waits] && in[e.For] {
			here.Edges = append(here.Edges, e)
		}
	}
	for _, a := range m.Applications {
		if slices.ContainsFunc(a.Components, func(c Component) bool { return in[c.Node] }) {
			here.Applications = append(here.Applications, a)
		}
	}
	return here
}

// Pairs is the edges without their reasons. Invalid names the way if nodes wait for each other in a circle.
func (m Map) Pairs() ([]graph.Edge[fleet.Certname], error) {
	pairs := make([]pair, len(m.Edges))
	for i, e := range m.Edges {
		pairs[i] = pair{Waits: e.Waits, For: e.For}
	}
	if cycle := graph.New(m.names(), pairs).Cycle(); cycle != nil {
		return nil, circular(cycle, m.Edges)
	}
	return pairs, nil
}

// Layers is the nodes that have edges: those of the first layer wait for nobody, the others for some of earlier
// ones. Nodes in circles, or behind them, are in none; cycle is one of them.
func (m Map) Layers() (layers [][]fleet.Certname, cycle []fleet.Certname) {
	pairs := make([]pair, len(m.Edges))
	for i, e := range m.Edges {
		pairs[i] = pair{Waits: e.Waits, For: e.For}
	}
	g := graph.New(m.names(), pairs)
	return g.Layers(), g.Cycle()
}

// names is the nodes that have edges or components.
func (m Map) names() []fleet.Certname {
	var names []fleet.Certname
	for _, e := range m.Edges {
		names = append(names, e.Waits, e.For)
	}
	for _, a := range m.Applications {
		names = append(names, a.Nodes()...)
	}
	return names
}

// Find is the applications that a text names: a model, Shop, or one instance, Shop[eu]; of an environment, if
// that is not empty. NotFound if there are none.
func (m Map) Find(text string, env fleet.Environment) ([]Application, error) {
	if text == "" {
		return nil, fault.New(fault.Invalid, "the name of an application is empty: give a model, Shop, or an instance, Shop[eu]")
	}
	model, instance := text, Ref{}
	if strings.Contains(text, "[") {
		var err error
		if instance, err = ParseRef(text); err != nil {
			return nil, err
		}
		model = instance.Type
	}
	var found []Application
	for _, a := range m.Applications {
		fits := strings.EqualFold(a.Name.Type, model) && (instance.Title == "" || a.Name.Title == instance.Title)
		if fits && (env == "" || a.Environment == env) {
			found = append(found, a)
		}
	}
	if len(found) == 0 {
		return nil, fault.New(fault.NotFound, "no node's catalog declares an application %.100q", text)
	}
	return found, nil
}

// assemble makes applications of their components.
func assemble(components []Component, apps []described) []Application {
	type key struct {
		environment fleet.Environment
		name        Ref
	}
	known := map[key]*Application{}
	at := func(env fleet.Environment, name Ref) *Application {
		if known[key{env, name}] == nil {
			known[key{env, name}] = &Application{Environment: env, Name: name}
		}
		return known[key{env, name}]
	}
	for _, c := range components {
		a := at(c.Environment, c.Application)
		a.Components = append(a.Components, c)
	}
	slices.SortFunc(apps, func(a, b described) int { return cmp.Compare(a.node, b.node) })
	for _, d := range apps {
		at(d.environment, d.name).describe(d)
	}
	produced := capabilities(components)
	list := make([]Application, 0, len(known))
	for _, a := range known {
		a.arrange()
		a.checkConsumed(produced[a.Environment])
		slices.SortFunc(a.Problems, compareProblems)
		list = append(list, *a)
	}
	slices.SortFunc(list, func(a, b Application) int {
		return cmp.Or(cmp.Compare(a.Environment, b.Environment), a.Name.Compare(b.Name))
	})
	return list
}

// describe takes over what a catalog says of the application; the first node that does counts.
func (a *Application) describe(d described) {
	if a.Parameters == nil && a.Description == "" {
		a.Parameters, a.Description = d.parameters, d.description
	}
	for _, name := range d.components {
		if !slices.ContainsFunc(a.Components, func(c Component) bool { return c.Name == name }) {
			a.problem("", "no node carries "+name.String())
		}
	}
}

// arrange puts each component behind those that it consumes from; what is in a circle comes last.
func (a *Application) arrange() {
	slices.SortFunc(a.Components, func(b, c Component) int { return cmp.Or(b.Name.Compare(c.Name), cmp.Compare(b.Node, c.Node)) })
	names := make([]int, len(a.Components))
	producers := map[Ref][]int{}
	for i, c := range a.Components {
		names[i] = i
		for _, capability := range c.Produces {
			producers[capability] = append(producers[capability], i)
		}
	}
	var edges []graph.Edge[int]
	for i, c := range a.Components {
		for _, capability := range c.Consumes {
			for _, producer := range producers[capability] {
				edges = append(edges, graph.Edge[int]{Waits: i, For: producer})
			}
		}
	}
	g := graph.New(names, edges)
	sorted, placed := make([]Component, 0, len(names)), map[int]bool{}
	for _, i := range g.Order() {
		sorted, placed[i] = append(sorted, a.Components[i]), true
	}
	for i, c := range a.Components {
		if !placed[i] {
			sorted = append(sorted, c)
		}
	}
	if cycle := g.Cycle(); cycle != nil {
		words := make([]string, len(cycle))
		for i, place := range cycle {
			words[i] = a.Components[place].Name.String()
		}
		a.problem("", "each of these consumes from the next one, and the last one from the first: "+strings.Join(words, ", "))
	}
	a.Components = sorted
}

// capabilities is what components of each environment produce.
func capabilities(components []Component) map[fleet.Environment]map[Ref]bool {
	produced := map[fleet.Environment]map[Ref]bool{}
	for _, c := range components {
		if produced[c.Environment] == nil {
			produced[c.Environment] = map[Ref]bool{}
		}
		for _, capability := range c.Produces {
			produced[c.Environment][capability] = true
		}
	}
	return produced
}

// checkConsumed finds what nobody produces.
func (a *Application) checkConsumed(produced map[Ref]bool) {
	for _, c := range a.Components {
		for _, capability := range c.Consumes {
			if !produced[capability] {
				a.problem(c.Node, fmt.Sprintf("%s on %s consumes %s, and nobody produces it", c.Name, c.Node, capability))
			}
		}
	}
}

func (a *Application) problem(node fleet.Certname, text string) {
	p := Problem{Environment: a.Environment, Application: a.Name, Node: node, Text: text}
	if !slices.Contains(a.Problems, p) {
		a.Problems = append(a.Problems, p)
	}
}

func compareProblems(a, b Problem) int {
	return cmp.Or(cmp.Compare(a.Environment, b.Environment), a.Application.Compare(b.Application), cmp.Compare(a.Node, b.Node), strings.Compare(a.Text, b.Text))
}
