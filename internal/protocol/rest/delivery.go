package rest

import (
	"context"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/job"
)

// Deliveries knows and changes what nodes may have. Errors are deliver's.
type Deliveries interface {
	Standing(ctx context.Context, node fleet.Certname) (deliver.Standing, deliver.Reason, error)
	PointerOf(ctx context.Context, standing deliver.Standing) (deliver.Pointer, error)
	State(ctx context.Context, standing deliver.Standing) (deliver.State, deliver.Applied, error)
	Generations(ctx context.Context, node fleet.Certname) ([]deliver.Generation, error)
	HeldIn(ctx context.Context, env fleet.Environment) ([]deliver.Held, error)
	ModesSet(ctx context.Context) ([]deliver.ModeSet, error)
	SetMode(ctx context.Context, m deliver.ModeSet) (switched int, err error)
	Pin(ctx context.Context, node fleet.Certname, by, why string) error
}

// Losses are catalogs that lost much, and may be held; *deliver.Service knows them.
type Losses interface {
	Losses(ctx context.Context, f deliver.LossFilter) ([]deliver.Loss, error)
	LetGo(ctx context.Context, l deliver.Let) ([]fleet.Certname, error)
}

// CatalogChanges compares catalogs of many nodes.
type CatalogChanges interface {
	// Changes is what steps change, and of how many of them that can be said: catalogs of others are not stored any more.
	Changes(ctx context.Context, steps []CatalogStep) (changes api.FleetDifference, compared int, err error)
}

// CatalogReleases releases catalogs without a preview.
type CatalogReleases interface {
	// Targets is the nodes that are meant.
	Targets(ctx context.Context, wanted job.Targets) ([]fleet.Certname, error)
	// Stage prepares a version for nodes; env empty: each in its own environment.
	Stage(ctx context.Context, nodes []fleet.Certname, env fleet.Environment, version, ticket string) ([]deliver.Prepared, error)
	// ReleaseAll releases what is ready.
	ReleaseAll(ctx context.Context, all []deliver.Prepared, o deliver.Order, apply deliver.Apply) ([]deliver.Outcome, error)
}

// deliveries answers the operations of what nodes may have.
type deliveries struct {
	gate       *gate
	roster     *roster
	nodes      inventory.NodeStore
	groups     classify.Store
	deliveries Deliveries
	losses     Losses
	releases   CatalogReleases
}

func (h *deliveries) bindings() []binding {
	return []binding{
		each(raw(api.CatalogRelease, h.releaseCatalogs)),
		answer(api.NodeDelivery, h.showDelivery),
		answer(api.NodeModeSet, h.setNodeMode),
		answer(api.NodePin, h.pinNode),
		answer(api.NodeUnpin, h.unpinNode),
		each(answer(api.CatalogLosses, h.listLosses)),
		answer(api.NodeLet, h.letNode),
		answer(api.CatalogLetGo, h.letVersion),
		answer(api.GroupModeSet, h.setGroupMode),
		each(answer(api.ModeList, h.listModes)),
	}
}

func (h *deliveries) showDelivery(ctx context.Context, request api.NameRequest) (api.Delivery, error) {
	name, err := fleet.ParseCertname(request.Name)
	if err != nil {
		return api.Delivery{}, err
	}
	if _, err := h.nodes.Node(ctx, name); err != nil {
		return api.Delivery{}, err
	}
	answer, err := h.delivery(ctx, name)
	if err != nil {
		return answer, err
	}
	generations, err := h.deliveries.Generations(ctx, name)
	for _, g := range generations {
		answer.Generations = append(answer.Generations, api.Generation{
			Number: g.Number, Catalog: string(g.Digest), Environment: string(g.Environment), Version: string(g.Version), UUID: g.UUID,
			CompiledAt: g.CompiledAt.UTC(), Release: g.Release, At: g.At.UTC(), By: g.By, Why: g.Why,
		})
	}
	return answer, err
}

// delivery is what a node may have, without what it had.
func (h *deliveries) delivery(ctx context.Context, name fleet.Certname) (answer api.Delivery, err error) {
	standing, reason, err := h.deliveries.Standing(ctx, name)
	if err != nil {
		return answer, err
	}
	state, applied, err := h.deliveries.State(ctx, standing)
	if err != nil {
		return answer, err
	}
	answer = api.Delivery{
		Name: string(name), Mode: string(standing.Force), ModeFrom: reason.From, ModeGroup: reason.Group, State: string(state), Generations: []api.Generation{},
	}
	if !standing.Pin.At.IsZero() {
		answer.Pin = &api.Pin{At: standing.Pin.At.UTC(), By: standing.Pin.By, Why: standing.Pin.Why}
	}
	if applied.UUID != "" {
		answer.Applied = &api.Applied{
			UUID: applied.UUID, CodeID: applied.CodeID, Catalog: string(applied.Catalog), Generation: applied.Generation, At: applied.At.UTC(),
		}
	}
	p, err := h.deliveries.PointerOf(ctx, standing)
	switch {
	case err == nil:
		answer.Pointer = &api.Pointer{
			Catalog: string(p.Catalog), Environment: string(p.Environment), Version: string(p.Version), Generation: p.Generation, UUID: p.UUID, CompiledAt: p.CompiledAt,
		}
	case fault.Of(err) == fault.NotFound:
		answer.Why, err = fault.Detail(err), nil
	}
	return answer, err
}

// modeOf reads a mode of a request; empty takes a mode away.
func modeOf(text string) (deliver.Mode, error) {
	if text == "" {
		return "", nil
	}
	mode, err := deliver.ParseMode(text)
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, "field mode: %s; empty takes it away", fault.Detail(err))
	}
	return mode, nil
}

func (h *deliveries) setNodeMode(ctx context.Context, request api.NodeModeRequest) (api.ModeSwitched, error) {
	name, err := fleet.ParseCertname(request.Name)
	if err != nil {
		return api.ModeSwitched{}, err
	}
	mode, err := modeOf(request.Mode)
	if err != nil {
		return api.ModeSwitched{}, err
	}
	if err := h.roster.checkNodes(ctx, []fleet.Certname{name}); err != nil {
		return api.ModeSwitched{}, err
	}
	n, err := h.deliveries.SetMode(ctx, deliver.ModeSet{Node: name, Mode: mode, By: fleet.ActorFrom(ctx).Name})
	return api.ModeSwitched{Switched: n}, err
}

func (h *deliveries) setGroupMode(ctx context.Context, request api.GroupModeRequest) (api.ModeSwitched, error) {
	mode, err := modeOf(request.Mode)
	if err != nil {
		return api.ModeSwitched{}, err
	}
	groups, _, err := h.groups.Groups(ctx)
	if err != nil {
		return api.ModeSwitched{}, err
	}
	group, err := classify.Find(groups, request.Group)
	if err != nil {
		return api.ModeSwitched{}, err
	}
	n, err := h.deliveries.SetMode(ctx, deliver.ModeSet{Group: string(group.ID), Mode: mode, By: fleet.ActorFrom(ctx).Name})
	return api.ModeSwitched{Switched: n}, err
}

// listModes lists what is set; who may see some nodes only is shown those.
func (h *deliveries) listModes(ctx context.Context, _ api.Nothing) (api.List[api.ModeSet], error) {
	list := api.List[api.ModeSet]{Items: []api.ModeSet{}}
	set, err := h.deliveries.ModesSet(ctx)
	if err != nil {
		return list, err
	}
	groups, _, err := h.groups.Groups(ctx)
	if err != nil {
		return list, err
	}
	names := map[string]string{}
	for _, g := range groups {
		names[string(g.ID)] = g.Name
	}
	set, err = seen(ctx, h.gate, fleet.CatalogRead, set, func(m deliver.ModeSet) fleet.Object { return fleet.Object{Node: m.Node} })
	for _, m := range set {
		shown := api.ModeSet{Node: string(m.Node), Group: m.Group, Mode: string(m.Mode), At: m.At.UTC(), By: m.By}
		if name := names[m.Group]; name != "" {
			shown.Group = name
		}
		list.Items = append(list.Items, shown)
	}
	return list, err
}

// maxWhy is the longest reason that is kept, in bytes.
const maxWhy = 1000

func (h *deliveries) pinNode(ctx context.Context, request api.NodePinRequest) (api.Nothing, error) {
	name, err := fleet.ParseCertname(request.Name)
	if err != nil {
		return api.Nothing{}, err
	}
	if request.Why == "" || len(request.Why) > maxWhy {
		return api.Nothing{}, fault.New(fault.Invalid, "field why: say why the node is pinned, in at most %d bytes", maxWhy)
	}
	if err := h.roster.checkNodes(ctx, []fleet.Certname{name}); err != nil {
		return api.Nothing{}, err
	}
	return api.Nothing{}, h.deliveries.Pin(ctx, name, fleet.ActorFrom(ctx).Name, request.Why)
}

func (h *deliveries) unpinNode(ctx context.Context, request api.NameRequest) (api.Nothing, error) {
	name, err := fleet.ParseCertname(request.Name)
	if err != nil {
		return api.Nothing{}, err
	}
	if err := h.roster.checkNodes(ctx, []fleet.Certname{name}); err != nil {
		return api.Nothing{}, err
	}
	return api.Nothing{}, h.deliveries.Pin(ctx, name, "", "")
}
