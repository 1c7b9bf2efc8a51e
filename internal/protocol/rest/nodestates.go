package rest

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// runState is what decides the one word for a node's last run.
type runState struct {
	status     string
	corrective bool
	pending    bool // a run of noop would have changed something
	broken     bool // the newest catalog does not compile
}

// The states of a last run, the worst first.
var stateWords = []string{"failed", "corrective", "changed", "pending", "unchanged", noReport}

func (s runState) word() string {
	switch {
	case s.broken, s.status == "failed":
		return "failed"
	case s.status == "":
		return noReport
	case s.pending:
		return "pending"
	case s.corrective:
		return "corrective"
	}
	return s.status
}

// runStates reads a list of states.
func runStates(text string) ([]string, error) { return wordsOf("state", text, stateWords) }

// stateful is a node with the word for its last run.
type stateful struct {
	inventory.Node
	state string
}

// statesOf says the state of each node's last run. Only runs of noop are looked up: the summary has the others.
func (h *selector) statesOf(ctx context.Context, nodes []inventory.Node) ([]stateful, error) {
	pending, broken, err := h.exceptions(ctx, nodes)
	if err != nil {
		return nil, err
	}
	all := make([]stateful, len(nodes))
	for i, node := range nodes {
		state := runState{
			status: node.LatestStatus, corrective: node.LatestCorrective, pending: node.LatestNoop && pending[node.Certname], broken: broken[node.Certname],
		}
		all[i] = stateful{node, state.word()}
	}
	return all, nil
}

// exceptions is what the summaries of nodes do not have: whose last run of noop would have changed something, and whose catalog does not compile. Of a
// whole fleet it is asked at once, of a few nodes by their names.
func (h *selector) exceptions(ctx context.Context, nodes []inventory.Node) (pending, broken map[fleet.Certname]bool, err error) {
	pending, broken = map[fleet.Certname]bool{}, map[fleet.Certname]bool{}
	var names, noop []fleet.Certname
	for _, node := range nodes {
		names = append(names, node.Certname)
		if node.LatestNoop {
			noop = append(noop, node.Certname)
		}
	}
	if len(names) > inventory.MaxNamed {
		if names, err = h.breakages.BrokenNodes(ctx); err == nil && len(noop) > 0 {
			noop, err = h.runs.PendingNodes(ctx)
		}
		for _, name := range names {
			broken[name] = true
		}
		for _, name := range noop {
			pending[name] = true
		}
		return pending, broken, err
	}
	if len(noop) > 0 {
		reports, err := h.runs.LatestReports(ctx, noop)
		if err != nil {
			return nil, nil, err
		}
		for name, r := range reports {
			pending[name] = r.NoopPending
		}
	}
	failed, err := h.breakages.Broken(ctx, names)
	for name, c := range failed {
		broken[name] = c.Err != nil
	}
	return pending, broken, err
}

// inState is those of the nodes whose last run is in one of the wanted states.
func (s selection) inState(ctx context.Context, nodes []inventory.Node) ([]inventory.Node, error) {
	if len(s.states) == 0 {
		return nodes, nil
	}
	all, err := s.selector.statesOf(ctx, nodes)
	kept := make([]inventory.Node, 0, len(nodes))
	for _, node := range all {
		if slices.Contains(s.states, node.state) {
			kept = append(kept, node.Node)
		}
	}
	return kept, err
}

// every is all wanted nodes, by name. Their states are asked for at once, if they are wanted or decide what is.
func (s selection) every(ctx context.Context, states bool) (all []stateful, err error) {
	var nodes []inventory.Node
	stateless := s
	stateless.states = nil
	for page := (inventory.Page{Limit: inventory.MaxNamed}); ; {
		page.After, err = stateless.page(ctx, page, func(node inventory.Node, _ bool) { nodes = append(nodes, node) })
		if err != nil {
			return nil, err
		}
		if page.After == "" {
			break
		}
	}
	if !states && len(s.states) == 0 {
		all = make([]stateful, len(nodes))
		for i, node := range nodes {
			all[i].Node = node
		}
		return all, nil
	}
	all, err = s.selector.statesOf(ctx, nodes)
	if len(s.states) > 0 {
		all = slices.DeleteFunc(all, func(n stateful) bool { return !slices.Contains(s.states, n.state) })
	}
	return all, err
}

// Orders of the list of nodes.
const (
	sortName     = "name"
	sortReported = "reported"
	sortState    = "state"
)

// sorted is a page of all wanted nodes, in any order, with their number if it is asked for. After is the last name before it in the order of
// names, else how many come before it. Who has equal places is in the order of names.
func (h *nodes) sorted(ctx context.Context, s selection, request api.NodeListRequest, limit int, list *api.List[api.Node]) error {
	order := cmp.Or(request.Order, sortName)
	key, reverse := strings.CutPrefix(order, "-")
	if !slices.Contains([]string{sortName, sortReported, sortState}, key) {
		return fault.New(fault.Invalid, "order must be %s, %s or %s, perhaps with a minus before it, not %.40q", sortName, sortReported, sortState, request.Order)
	}
	var from int64
	var err error
	if request.After != "" && order != sortName {
		if from, err = numberOf("after", request.After); err != nil {
			return err
		}
	}
	all, err := s.every(ctx, key == sortState)
	if err != nil {
		return err
	}
	if n := len(all); request.Total {
		list.Total = &n
	}
	slices.SortStableFunc(all, func(a, b stateful) int {
		order := 0
		switch key {
		case sortName:
			order = cmp.Compare(a.Certname, b.Certname)
		case sortReported:
			order = a.ReportAt.Compare(b.ReportAt)
		case sortState:
			order = slices.Index(stateWords, a.state) - slices.Index(stateWords, b.state)
		}
		if reverse {
			order = -order
		}
		return cmp.Or(order, cmp.Compare(a.Certname, b.Certname))
	})
	if order == sortName {
		for from < int64(len(all)) && string(all[from].Certname) <= request.After {
			from++
		}
	}
	if from >= int64(len(all)) {
		return nil
	}
	page := all[from:min(int(from)+limit, len(all))]
	for _, node := range page {
		list.Items = append(list.Items, h.nodeOf(node.Node))
	}
	if end := int(from) + len(page); end < len(all) {
		if list.Next = strconv.Itoa(end); order == sortName {
			list.Next = string(all[end-1].Certname)
		}
	}
	return nil
}

// lateAfter is how old the last report of a node is that is counted as late: two of Puppet's usual intervals.
const lateAfter = time.Hour

func (h *nodes) countNodes(ctx context.Context, request api.NodeSummaryRequest) (counts api.NodeCounts, err error) {
	s, err := h.selector.selection(ctx, fleet.NodeRead, api.NodeListRequest{
		Where: request.Where, Group: request.Group, Environment: request.Environment, Status: request.Status, Connected: request.Connected, State: request.State,
	})
	if err != nil {
		return counts, err
	}
	all, err := s.every(ctx, true)
	if err != nil {
		return counts, err
	}
	states := map[string]*int{
		"failed": &counts.States.Failed, "corrective": &counts.States.Corrective, "changed": &counts.States.Changed,
		"pending": &counts.States.Pending, "unchanged": &counts.States.Unchanged, noReport: &counts.States.None,
	}
	late := time.Now().Add(-lateAfter)
	for _, node := range all {
		counts.Nodes++
		*states[node.state]++
		if !node.ReportAt.IsZero() && node.ReportAt.Before(late) {
			counts.Late++
		}
		p, there := h.roster.presences.Presence(node.Certname)
		switch {
		case there:
			counts.Connections.Yes++
		case p.Since.IsZero():
			counts.Connections.Never++
		default:
			counts.Connections.No++
		}
	}
	return counts, nil
}
