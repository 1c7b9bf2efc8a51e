package rest

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/catalogue"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Catalogue knows which modules nodes have.
type Catalogue interface {
	Nodes() []fleet.Certname
	OfNode(node fleet.Certname) (catalogue.Agent, action.Set, bool)
	Modules(may catalogue.May) []catalogue.Module
	Module(name string, may catalogue.May) (catalogue.Module, error)
	Newest(ctx context.Context, m catalogue.Module) (action.Module, error)
}

// actions answers the operations of modules and their actions.
type actions struct {
	gate      *gate
	roster    *roster
	catalogue Catalogue
}

func (h *actions) bindings() []binding {
	return []binding{each(answer(api.ActionList, h.listActions)), each(answer(api.ActionShow, h.showActions))}
}

// may is of which nodes the caller may know.
func (h *actions) may(ctx context.Context) (catalogue.May, error) {
	all := h.catalogue.Nodes()
	kept, err := h.gate.visibleNodes(ctx, all)
	if err != nil {
		return nil, err
	}
	if len(kept) == len(all) {
		return func(fleet.Certname) bool { return true }, nil
	}
	visible := make(map[fleet.Certname]bool, len(kept))
	for _, node := range kept {
		visible[fleet.Certname(node)] = true
	}
	return func(node fleet.Certname) bool { return visible[node] }, nil
}

// only is one node.
func (h *actions) only(ctx context.Context, text string) (catalogue.May, error) {
	name, err := fleet.ParseCertname(text)
	if err != nil {
		return nil, err
	}
	if err := h.gate.allow(ctx, fleet.NodeRead, fleet.Object{Node: name}); err != nil {
		return nil, err
	}
	if err := h.roster.checkNodes(ctx, []fleet.Certname{name}); err != nil {
		return nil, err
	}
	_, set, told := h.catalogue.OfNode(name)
	switch {
	case !told:
		return nil, fault.New(fault.NotFound, "the agent of %s has not told which modules it has: only a tutti agent does, once it is connected", name)
	case len(set) == 0:
		return nil, fault.New(fault.Unavailable, "%s has not told yet which modules it has; try again in a moment", name)
	}
	return func(node fleet.Certname) bool { return node == name }, nil
}

func (h *actions) listActions(ctx context.Context, request api.ActionListRequest) (api.List[api.ActionModule], error) {
	list := api.List[api.ActionModule]{Items: []api.ActionModule{}}
	find := h.may
	if request.Node != "" {
		find = func(ctx context.Context) (catalogue.May, error) { return h.only(ctx, request.Node) }
	}
	may, err := find(ctx)
	if err != nil {
		return list, err
	}
	for _, m := range h.catalogue.Modules(may) {
		if request.Problems && len(m.Problems) == 0 {
			continue
		}
		described, err := h.catalogue.Newest(ctx, m)
		if err != nil && fault.Of(err) != fault.Unavailable {
			return list, err
		}
		item := moduleOf(m)
		for _, a := range described.Actions {
			item.Actions = append(item.Actions, api.Action{Name: a.Name, Description: a.Description, ReadOnly: a.ReadOnly})
		}
		list.Items = append(list.Items, item)
	}
	return list, nil
}

func (h *actions) showActions(ctx context.Context, request api.ActionShowRequest) (api.ActionModule, error) {
	may, err := h.may(ctx)
	if err != nil {
		return api.ActionModule{}, err
	}
	m, err := h.catalogue.Module(request.Module, may)
	if err != nil {
		return api.ActionModule{}, err
	}
	described, err := h.catalogue.Newest(ctx, m)
	if err != nil && fault.Of(err) != fault.Unavailable {
		return api.ActionModule{}, err
	}
	shown := moduleOf(m)
	if err != nil { // it is known, and not what it can do
		return shown, nil //nolint:nilerr // see above
	}
	shown.Description, shown.Author, shown.License, shown.URL = described.Description, described.Author, described.License, described.URL
	shown.Configuration = json.RawMessage(described.Configuration)
	for _, a := range described.Actions {
		one, err := actionOf(a)
		if err != nil {
			return api.ActionModule{}, err
		}
		shown.Actions = append(shown.Actions, one)
	}
	return shown, nil
}

// maxExamples is how many nodes are named that have a problem.
const maxExamples = 10

func moduleOf(m catalogue.Module) api.ActionModule {
	item := api.ActionModule{Module: m.Name, Description: m.Description, Nodes: m.Nodes(), Versions: []api.ActionModuleVersion{}, Actions: []api.Action{}}
	for _, v := range m.Versions {
		item.Versions = append(item.Versions, api.ActionModuleVersion{Version: v.Version, Digest: string(v.Digest), Provider: string(v.Provider), Nodes: v.Nodes})
	}
	for _, p := range m.Problems {
		problem := api.ActionModuleProblem{Problem: p.Text, Version: p.Version, Provider: string(p.Provider), Nodes: len(p.Nodes)}
		for _, node := range p.Nodes[:min(len(p.Nodes), maxExamples)] {
			problem.Examples = append(problem.Examples, string(node))
		}
		item.Problems = append(item.Problems, problem)
	}
	return item
}

func actionOf(a action.Action) (api.Action, error) {
	one := api.Action{
		Name: a.Name, Description: a.Description, ReadOnly: a.ReadOnly, Display: string(a.Shown()), Timeout: float64(a.Timeout),
		Input: json.RawMessage(a.Input), Results: json.RawMessage(a.Results),
	}
	for _, s := range a.Aggregates {
		one.Aggregates = append(one.Aggregates, api.ActionSum{Function: string(s.Function), Field: s.Field, Format: s.Format, Labels: s.Labels})
	}
	var err error
	if one.Inputs, err = actionFields(a.Input); err == nil {
		one.Outputs, err = actionFields(a.Results)
	}
	return one, err
}

func actionFields(text []byte) ([]api.ActionField, error) {
	schema, err := action.Compile(text)
	if err != nil {
		return nil, err
	}
	var fields []api.ActionField
	for _, f := range schema.Fields() {
		field := api.ActionField{
			Name: f.Name, Title: f.Title, Description: f.Description, Type: f.Type, Format: f.Format, Values: slices.Clone(f.Enum), Required: f.Required,
			MaxLength: f.MaxLength, Sensitive: f.Hidden,
		}
		if f.Default != nil {
			if field.Default, err = json.Marshal(f.Default); err != nil {
				return nil, err
			}
		}
		fields = append(fields, field)
	}
	return fields, nil
}

// agentTold is what a node's agent says of itself; nil: nothing.
func (h *nodes) agentTold(node fleet.Certname) *api.AgentTold {
	a, set, told := h.catalogue.OfNode(node)
	if !told {
		return nil
	}
	agent := &api.AgentTold{Version: a.Version, OS: a.OS, Arch: a.Arch, Told: a.Told.UTC(), Modules: make([]api.NodeModule, len(set))}
	for i, l := range set {
		agent.Modules[i] = api.NodeModule{Name: l.Name, Version: l.Version, Provider: string(l.Provider), Problem: l.Problem}
	}
	return agent
}
