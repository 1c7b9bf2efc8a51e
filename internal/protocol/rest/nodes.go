package rest

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// defaultLimit is how many rows a page has when nobody says.
const defaultLimit = 100

// pageOf checks the paging fields of a request.
func pageOf(after string, limit int) (inventory.Page, error) {
	if limit == 0 {
		limit = defaultLimit
	}
	if limit < 1 || limit > 1000 {
		return inventory.Page{}, fault.New(fault.Invalid, "limit must be 1 to 1000, not %d", limit)
	}
	return inventory.Page{After: after, Limit: limit}, nil
}

// nodes answers the operations of nodes.
type nodes struct {
	nodes      inventory.NodeStore
	runs       inventory.RunStore
	breakages  compile.Breakages
	facts      inventory.FactStore
	catalogs   inventory.CatalogStore
	inputs     CatalogInputs
	roster     *roster
	selector   *selector
	deliveries *deliveries
	catalogue  Catalogue
	reports    inventory.ReportStore
}

func (h *nodes) bindings() []binding {
	return []binding{
		each(answer(api.NodeList, h.listNodes)),
		each(answer(api.NodeSummary, h.countNodes)),
		answer(api.NodeShow, h.showNode),
		answer(api.NodeWhy, h.explainNode),
		answer(api.NodeChart, h.drawNode),
		answer(api.NodeFacts, h.showFacts),
		answer(api.NodeDeactivate, h.deactivateNode),
		answer(api.NodePurge, h.purgeNode),
		answer(api.NodeCatalog, h.showCatalog),
		answer(api.NodeInputs, h.showInputs),
		answer(api.GroupNodes, h.listGroupNodes),
	}
}

func (h *nodes) showNode(ctx context.Context, request api.NameRequest) (api.Node, error) {
	name, err := fleet.ParseCertname(request.Name)
	if err != nil {
		return api.Node{}, err
	}
	node, err := h.nodes.Node(ctx, name)
	if err != nil {
		return api.Node{}, err
	}
	answers := []api.Node{h.nodeOf(node)}
	if err := h.lastRuns(ctx, answers); err != nil {
		return api.Node{}, err
	}
	if answers[0].Delivery, err = h.deliveries.delivered(ctx, name); err != nil {
		return api.Node{}, err
	}
	answers[0].Agent = h.agentTold(name)
	return answers[0], h.nameClients(ctx, []agentName{agentNameOf(answers[0].Connected, answers[0].LastConnected)}, []fleet.Certname{name})
}

// lastRuns adds to nodes, of one page, what their last runs were given and would have done, and whose certificate ended.
func (h *nodes) lastRuns(ctx context.Context, nodes []api.Node) error {
	names := make([]fleet.Certname, len(nodes))
	for i, node := range nodes {
		names[i] = fleet.Certname(node.Name)
	}
	reports, err := h.runs.LatestReports(ctx, names)
	if err != nil {
		return err
	}
	broken, err := h.breakages.Broken(ctx, names)
	if err != nil {
		return err
	}
	ended, err := h.roster.ends.Ended(ctx, names, time.Now())
	if err != nil {
		return err
	}
	for i := range nodes {
		last := reports[names[i]]
		if e, there := ended[names[i]]; there {
			nodes[i].Certificate = e.State()
		}
		nodes[i].CachedCatalog = last.CachedCatalog == inventory.OnFailure
		if last.NoopPending {
			nodes[i].Pending = last.Counts.Noop
		}
		if c, there := broken[names[i]]; there && c.Err != nil {
			nodes[i].CompileError = &api.NodeError{
				Cause: string(c.Err.Cause), Message: c.Err.Plain(), File: c.Err.File, Line: c.Err.Line, Version: string(c.Version), At: c.FinishedAt.UTC(),
			}
		}
		nodes[i].State = runState{
			status: nodes[i].Status, corrective: nodes[i].Corrective, pending: last.Noop && last.NoopPending, broken: nodes[i].CompileError != nil,
		}.word()
	}
	return nil
}

// delivered is what a node may have, in short.
func (h *deliveries) delivered(ctx context.Context, name fleet.Certname) (*api.Delivered, error) {
	d, err := h.delivery(ctx, name)
	short := &api.Delivered{Mode: d.Mode, ModeFrom: d.ModeFrom, ModeGroup: d.ModeGroup, State: d.State, Pinned: d.Pin != nil}
	if d.Pointer != nil {
		short.Generation = d.Pointer.Generation
	}
	if err != nil || d.Mode != string(deliver.Live) {
		return short, err
	}
	short.Loss, err = h.lossNow(ctx, name)
	return short, err
}

func (h *nodes) nodeOf(n inventory.Node) api.Node {
	return api.Node{
		Name: string(n.Certname), Environment: string(n.Environment),
		FactsAt: timeOf(n.FactsAt), CatalogAt: timeOf(n.CatalogAt), CatalogDigest: string(n.CatalogDigest),
		ReportAt: timeOf(n.ReportAt), ReportID: string(n.LatestReport), Status: n.LatestStatus,
		Noop: n.LatestNoop, Corrective: n.LatestCorrective, DeactivatedAt: timeOf(n.DeactivatedAt), ExpiredAt: timeOf(n.ExpiredAt),
		JoinedAt:  timeOf(n.JoinedAt),
		Connected: h.roster.connected(n.Certname), LastConnected: h.roster.lastConnected(n.Certname),
	}
}

// connected is nil for a node whose agent is not connected.
func (h *roster) connected(node fleet.Certname) *api.Connected {
	p, there := h.presences.Presence(node)
	if !there {
		return nil
	}
	return &api.Connected{Server: p.Server, Since: p.Since.UTC(), Agent: p.Agent, Protocol: p.Protocol, Shared: p.Shared}
}

// lastConnected is nil for a node whose agent is connected, or that never had one.
func (h *roster) lastConnected(node fleet.Certname) *api.LastSeen {
	p, there := h.presences.Presence(node)
	if there || p.Since.IsZero() {
		return nil
	}
	return &api.LastSeen{Since: p.Since.UTC(), Until: p.Until.UTC(), Agent: p.Agent}
}

// timeOf is nil for a time that never was.
func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func (h *nodes) showFacts(ctx context.Context, request api.NameRequest) (api.Facts, error) {
	name, err := fleet.ParseCertname(request.Name)
	if err != nil {
		return api.Facts{}, err
	}
	facts, err := h.facts.Facts(ctx, name)
	if err != nil {
		return api.Facts{}, err
	}
	return api.Facts{
		Name: string(facts.Certname), Environment: string(facts.Environment), Timestamp: facts.Timestamp.UTC(),
		ReceivedAt: facts.ReceivedAt.UTC(), Digest: string(facts.Digest), Values: facts.Values,
	}, nil
}

func (h *nodes) deactivateNode(ctx context.Context, request api.NameRequest) (api.Nothing, error) {
	name, err := fleet.ParseCertname(request.Name)
	if err != nil {
		return api.Nothing{}, err
	}
	if _, err := h.nodes.Node(ctx, name); err != nil {
		return api.Nothing{}, err // only a command makes a node that is gone
	}
	return api.Nothing{}, h.nodes.DeactivateNode(ctx, name, time.Now())
}

func (h *nodes) purgeNode(ctx context.Context, request api.NameRequest) (api.Nothing, error) {
	name, err := fleet.ParseCertname(request.Name)
	if err != nil {
		return api.Nothing{}, err
	}
	return api.Nothing{}, h.nodes.PurgeNode(ctx, name)
}

func (h *nodes) showCatalog(ctx context.Context, request api.NameRequest) (api.Catalog, error) {
	name, err := fleet.ParseCertname(request.Name)
	if err != nil {
		return api.Catalog{}, err
	}
	catalog, err := h.catalogs.Catalog(ctx, name)
	if err != nil {
		return api.Catalog{}, err
	}
	answer := api.Catalog{
		Name: string(catalog.Certname), Environment: string(catalog.Environment), Digest: string(catalog.Digest),
		Version: catalog.ConfigVersion, UUID: catalog.UUID, Producer: catalog.Producer, Received: catalog.Received, CompiledAt: catalog.CompiledAt.UTC(),
		Resources: make([]api.Resource, len(catalog.Resources)), Edges: make([]api.Edge, len(catalog.Edges)),
	}
	for i, r := range catalog.Resources {
		answer.Resources[i] = api.Resource(r)
	}
	for i, e := range catalog.Edges {
		answer.Edges[i] = api.Edge(e)
	}
	return answer, nil
}
