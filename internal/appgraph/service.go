package appgraph

import (
	"context"
	"slices"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/graph"
)

// Service answers questions about the graph of a fleet. See the package comment.
type Service struct {
	Store Store
}

// Map is everything.
func (s Service) Map(ctx context.Context) (Map, error) {
	declared, err := s.Store.Declared(ctx)
	if err != nil {
		return Map{}, err
	}
	collections, err := s.Store.Collections(ctx)
	if err != nil {
		return Map{}, err
	}
	return Chart(declared, collections), nil
}

// Applications is those that a text names, see Map.Find; all of the environment if it is empty.
func (s Service) Applications(ctx context.Context, text string, env fleet.Environment) ([]Application, error) {
	declared, err := s.Store.Declared(ctx)
	if err != nil {
		return nil, err
	}
	m := Chart(declared, nil)
	if text != "" {
		return m.Find(text, env)
	}
	return slices.DeleteFunc(m.Applications, func(a Application) bool { return env != "" && a.Environment != env }), nil
}

// Nodes is where the components of applications are that a text names, sorted.
func (s Service) Nodes(ctx context.Context, text string) ([]fleet.Certname, error) {
	apps, err := s.Applications(ctx, text, "")
	if err != nil {
		return nil, err
	}
	var nodes []fleet.Certname
	for _, a := range apps {
		nodes = append(nodes, a.Nodes()...)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes), nil
}

// Edges is who of nodes waits for whom of them. Invalid names the way if some wait for one another in a
// circle. What is outside of nodes does not count.
func (s Service) Edges(ctx context.Context, nodes []fleet.Certname) ([]graph.Edge[fleet.Certname], error) {
	m, err := s.Map(ctx)
	if err != nil {
		return nil, err
	}
	return m.Among(nodes).Pairs()
}
