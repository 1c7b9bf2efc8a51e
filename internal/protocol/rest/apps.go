package rest

import (
	"context"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/appgraph"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Applications knows who waits for whom: appgraph.Service.
type Applications interface {
	Applications(ctx context.Context, text string, env fleet.Environment) ([]appgraph.Application, error)
	Map(ctx context.Context) (appgraph.Map, error)
}

// applications answers the operations of applications.
type applications struct {
	applications Applications
}

func (h *applications) bindings() []binding {
	return []binding{
		answer(api.AppList, h.listApps),
		answer(api.AppGraph, h.appGraph),
	}
}

func (h *applications) listApps(ctx context.Context, request api.AppListRequest) (api.List[api.App], error) {
	list := api.List[api.App]{Items: []api.App{}}
	env := fleet.Environment(request.Environment)
	if env != "" {
		if _, err := fleet.ParseEnvironment(request.Environment); err != nil {
			return list, err
		}
	}
	apps, err := h.applications.Applications(ctx, request.App, env)
	for _, a := range apps {
		list.Items = append(list.Items, appOf(a))
	}
	return list, err
}

func appOf(a appgraph.Application) api.App {
	shown := api.App{
		Name: a.Name.String(), Model: a.Name.Type, Instance: a.Name.Title, Environment: string(a.Environment), Description: a.Description,
		Parameters: a.Parameters, Nodes: certnames(a.Nodes()), Components: []api.AppComponent{},
	}
	for _, c := range a.Components {
		shown.Components = append(shown.Components, api.AppComponent{
			Name: c.Name.String(), Node: string(c.Node), Produces: refTexts(c.Produces), Consumes: refTexts(c.Consumes),
		})
	}
	for _, p := range a.Problems {
		shown.Problems = append(shown.Problems, p.Text)
	}
	return shown
}

func (h *applications) appGraph(ctx context.Context, request api.AppGraphRequest) (api.NodeGraph, error) {
	m, err := h.applications.Map(ctx)
	if err != nil {
		return api.NodeGraph{}, err
	}
	if request.App != "" {
		apps, err := m.Find(request.App, "")
		if err != nil {
			return api.NodeGraph{}, err
		}
		var nodes []fleet.Certname
		for _, a := range apps {
			nodes = append(nodes, a.Nodes()...)
		}
		m = m.Among(nodes)
		m.Applications = apps
	}
	return graphOf(m), nil
}

func graphOf(m appgraph.Map) api.NodeGraph {
	layers, cycle := m.Layers()
	shown := api.NodeGraph{Layers: [][]string{}, Edges: []api.NodeEdge{}, Cycle: certnames(cycle)}
	for _, nodes := range layers {
		shown.Layers = append(shown.Layers, certnames(nodes))
	}
	for _, e := range m.Edges {
		edge := api.NodeEdge{Node: string(e.Waits), WaitsFor: string(e.For)}
		for _, why := range e.Why {
			edge.Why = append(edge.Why, why.String())
		}
		shown.Edges = append(shown.Edges, edge)
	}
	for _, s := range m.Shared {
		shown.Shared = append(shown.Shared, api.SharedNodes{Type: s.Type, Nodes: certnames(s.Nodes)})
	}
	problems := m.Problems
	for _, a := range m.Applications {
		problems = append(problems, a.Problems...)
	}
	for _, p := range problems {
		shown.Problems = append(shown.Problems, p.Text)
	}
	return shown
}

func refTexts(refs []appgraph.Ref) []string {
	list := make([]string, len(refs))
	for i, ref := range refs {
		list[i] = ref.String()
	}
	return list
}
