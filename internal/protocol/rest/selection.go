package rest

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/pql"
	"github.com/tutti-project/tutti/internal/rbac"
)

func (h *nodes) listNodes(ctx context.Context, request api.NodeListRequest) (api.List[api.Node], error) {
	list := api.List[api.Node]{Items: []api.Node{}}
	page, err := pageOf(request.After, request.Limit)
	if err != nil {
		return list, err
	}
	s, err := h.selector.selection(ctx, fleet.NodeRead, request)
	if err != nil {
		return list, err
	}
	byName := request.Order == "" || request.Order == sortName
	if request.Total && byName {
		list.Total, err = s.count(ctx)
	}
	switch {
	case err != nil:
	case byName && (list.Total != nil || !request.Total):
		list.Next, err = s.page(ctx, page, func(node inventory.Node, _ bool) { list.Items = append(list.Items, h.nodeOf(node)) })
	default:
		err = h.sorted(ctx, s, request, page.Limit, &list)
	}
	if err == nil {
		err = h.lastRuns(ctx, list.Items)
	}
	for i := 0; err == nil && request.Delivery && i < len(list.Items); i++ {
		list.Items[i].Delivery, err = h.deliveries.delivered(ctx, fleet.Certname(list.Items[i].Name))
	}
	if err != nil {
		return list, err
	}
	agents, names := make([]agentName, len(list.Items)), make([]fleet.Certname, len(list.Items))
	for i, item := range list.Items {
		agents[i], names[i] = agentNameOf(item.Connected, item.LastConnected), fleet.Certname(item.Name)
	}
	return list, h.nameClients(ctx, agents, names)
}

func (h *nodes) listGroupNodes(ctx context.Context, request api.GroupNodesRequest) (api.List[api.GroupNode], error) {
	list := api.List[api.GroupNode]{Items: []api.GroupNode{}}
	page, err := pageOf(request.After, request.Limit)
	if err != nil {
		return list, err
	}
	s, err := h.selector.selection(ctx, fleet.GroupRead, api.NodeListRequest{Group: request.Group})
	if err != nil {
		return list, err
	}
	list.Next, err = s.page(ctx, page, func(node inventory.Node, pinned bool) {
		list.Items = append(list.Items, api.GroupNode{Name: string(node.Certname), Pinned: pinned})
	})
	return list, err
}

// selection is which nodes are wanted.
type selection struct {
	selector    *selector
	permission  fleet.Permission // of who asks, for each node
	chosen      bool             // names holds all that can be wanted
	names       []fleet.Certname // sorted
	group       classify.ID
	environment fleet.Environment
	status      string
	connected   string
	states      []string // of the last run; none: any
	holding     *holding // nil: any version
}

// noReport is the status of nodes that never reported.
const noReport = "none"

// How a node's agent is connected.
const (
	isConnected    = "yes"
	notConnected   = "no"    // now
	neverConnected = "never" // and not earlier
)

// selector finds the nodes that a request describes.
type selector struct {
	gate       *gate
	nodes      inventory.NodeStore
	groups     classify.Store
	inventory  inventory.Asker
	classifier Classifier
	presences  inventory.Presences
	runs       inventory.RunStore
	breakages  compile.Breakages
	holders    *holders
}

func (h *selector) selection(ctx context.Context, permission fleet.Permission, request api.NodeListRequest) (s selection, err error) {
	s = selection{selector: h, permission: permission, status: request.Status, connected: request.Connected}
	switch request.Status {
	case "", "failed", "changed", "unchanged", noReport:
	default:
		return s, fault.New(fault.Invalid, "status must be failed, changed, unchanged or %s, not %.40q", noReport, request.Status)
	}
	switch request.Connected {
	case "", isConnected, notConnected, neverConnected:
	default:
		return s, fault.New(fault.Invalid, "connected must be %s, %s or %s, not %.40q", isConnected, notConnected, neverConnected, request.Connected)
	}
	if s.states, err = runStates(request.State); err != nil {
		return s, err
	}
	if s.status == "failed" && (len(s.states) == 0 || slices.Contains(s.states, "failed")) {
		s.status, s.states = "", []string{"failed"} // also those whose newest catalog does not compile
	}
	if request.Environment != "" {
		if s.environment, err = fleet.ParseEnvironment(request.Environment); err != nil {
			return s, err
		}
	}
	if s.holding, err = h.holders.holding(ctx, s.environment, request.Version); err != nil {
		return s, err
	}
	if request.Group != "" {
		groups, _, err := h.groups.Groups(ctx)
		if err != nil {
			return s, err
		}
		group, err := classify.Find(groups, request.Group)
		if err != nil {
			return s, err
		}
		s.group = group.ID
	}
	if request.Where != "" {
		s.chosen = true
		s.names, err = h.nodesWhere(ctx, request.Where)
	}
	return s, err
}

// nodesWhere asks for the names of the nodes that a condition holds for, of
// deactivated ones too: the whole list has them.
func (h *selector) nodesWhere(ctx context.Context, condition string) ([]fleet.Certname, error) {
	where, err := pql.NodeCondition(condition)
	if err != nil {
		return nil, err
	}
	checked, err := pql.Check(&pql.Query{Entity: "nodes", Columns: []pql.Column{{Field: pql.Field{Name: "certname"}}}, Where: where})
	if err != nil {
		return nil, err
	}
	var names []fleet.Certname
	err = h.inventory.Ask(ctx, inventory.Question{Query: checked, Gone: true}, func(text json.RawMessage) error {
		var row struct{ Certname fleet.Certname }
		err := json.Unmarshal(text, &row)
		names = append(names, row.Certname)
		return err
	})
	slices.Sort(names)
	return names, err
}

// maxExamined is how many nodes are looked at for one page, which then ends early.
const maxExamined = 20_000

// page hands out wanted nodes, at most page.Limit of those after page.After, and
// returns where the next page begins; empty at the end.
func (s selection) page(ctx context.Context, page inventory.Page, each func(node inventory.Node, pinned bool)) (next string, err error) {
	found, batch := 0, inventory.MaxNamed
	if !s.narrows() {
		batch = page.Limit // all are wanted
	}
	for after, examined := page.After, 0; examined < maxExamined; examined += batch {
		nodes, last, err := s.batch(ctx, inventory.Page{After: after, Limit: batch})
		if err != nil || len(nodes) == 0 && last == "" {
			return "", err
		}
		nodes, err = seen(ctx, s.selector.gate, s.permission, nodes, func(n inventory.Node) fleet.Object {
			return fleet.Object{Node: n.Certname, Environment: n.Environment}
		})
		if err != nil {
			return "", err
		}
		pinned, err := s.members(ctx, nodes)
		if err != nil {
			return "", err
		}
		if nodes, err = s.inState(ctx, nodes); err != nil {
			return "", err
		}
		for _, node := range nodes {
			isPinned, member := pinned[node.Certname]
			if s.group != "" && !member || !s.wants(node) {
				continue
			}
			each(node, isPinned)
			if found++; found == page.Limit {
				return string(node.Certname), nil
			}
		}
		after, next = last, last
	}
	return next, nil
}

// count is how many nodes are wanted, if no look at each of them is needed to know it; else nil.
func (s selection) count(ctx context.Context) (*int, error) {
	if s.narrows() || rbac.Scoped(fleet.ActorFrom(ctx), s.permission) {
		return nil, nil //nolint:nilnil // it is not known yet
	}
	if n := len(s.names); s.chosen {
		return &n, nil
	}
	checked, err := pql.Check(&pql.Query{Entity: "nodes", Columns: []pql.Column{{Function: "count"}}})
	if err != nil {
		return nil, err
	}
	var n int
	err = s.selector.inventory.Ask(ctx, inventory.Question{Query: checked, Gone: true}, func(text json.RawMessage) error {
		var row struct{ Count int }
		err := json.Unmarshal(text, &row)
		n = row.Count
		return err
	})
	return &n, err
}

// narrows says whether some nodes may be left out of those that were chosen.
func (s selection) narrows() bool {
	return s.group != "" || s.environment != "" || s.holding != nil || s.status != "" || s.connected != "" || len(s.states) > 0
}

// batch reads the next nodes that may be wanted, and the name of the last one that
// was looked for; that is empty at the end.
func (s selection) batch(ctx context.Context, page inventory.Page) (nodes []inventory.Node, last string, err error) {
	if !s.chosen {
		if nodes, err = s.selector.nodes.Nodes(ctx, page); len(nodes) > 0 {
			last = string(nodes[len(nodes)-1].Certname)
		}
		return nodes, last, err
	}
	from, found := slices.BinarySearch(s.names, fleet.Certname(page.After))
	if found {
		from++
	}
	names := s.names[from:min(from+page.Limit, len(s.names))]
	if len(names) == 0 {
		return nil, "", nil
	}
	nodes, err = s.selector.nodes.NodesNamed(ctx, names)
	return nodes, string(names[len(names)-1]), err
}

func (s selection) members(ctx context.Context, nodes []inventory.Node) (map[fleet.Certname]bool, error) {
	if s.group == "" {
		return nil, nil //nolint:nilnil // nobody asks
	}
	names := make([]fleet.Certname, len(nodes))
	for i, node := range nodes {
		names[i] = node.Certname
	}
	return s.selector.classifier.Members(ctx, s.group, names)
}

func (s selection) wants(node inventory.Node) bool {
	status := node.LatestStatus
	if status == "" {
		status = noReport
	}
	return (s.environment == "" || node.Environment == s.environment) &&
		(s.status == "" || s.status == status) &&
		s.holding.wants(node) &&
		s.wantsConnected(node.Certname)
}

func (s selection) wantsConnected(node fleet.Certname) bool {
	if s.connected == "" {
		return true
	}
	p, there := s.selector.presences.Presence(node)
	switch s.connected {
	case isConnected:
		return there
	case neverConnected:
		return !there && p.Since.IsZero()
	}
	return !there
}
