package rest

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/call"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Asker asks actions of agents.
type Asker interface {
	// Ask tells the answers of nodes as they come, each once, and returns when all are told; see call.Caller.
	Ask(ctx context.Context, q call.Question, tell func([]action.Answer))
	// Connected is the nodes whose agents are connected, sorted, each once.
	Connected() []fleet.Certname
}

// Targets says which nodes are meant; it is job.Resolver.
type Targets interface {
	Resolve(ctx context.Context, t job.Targets) ([]fleet.Certname, error)
}

// pings answers node.ping.
type pings struct {
	gate    *gate
	roster  *roster
	nodes   *nodes
	targets Targets
	asker   Asker
}

func (h *pings) bindings() []binding { return []binding{each(answer(api.NodePing, h.ping))} }

// How long an agent has to answer, in milliseconds.
const (
	defaultPing = 5000
	maxPing     = 60_000
)

func (h *pings) ping(ctx context.Context, request api.NodePingRequest) (list api.List[api.Pong], err error) {
	if request.Timeout == 0 {
		request.Timeout = defaultPing
	}
	if request.Timeout < 0 || request.Timeout > maxPing {
		return list, fault.New(fault.Invalid, "field timeout: it is a number of milliseconds, 1 to %d", maxPing)
	}
	meant, err := h.meant(ctx, request.Targets)
	if err != nil {
		return list, err
	}
	took := map[fleet.Certname]float64{}
	question := call.Question{Module: pxp.Ping, Action: pxp.Ping, Nodes: meant, Timeout: time.Duration(request.Timeout) * time.Millisecond}
	h.asker.Ask(ctx, question, func(answers []action.Answer) {
		for _, a := range answers {
			if a.Code.Answered() { // one that says no is there
				took[a.Node] = a.Millis
			}
		}
	})
	list.Items = make([]api.Pong, len(meant))
	agents := make([]agentName, len(meant))
	for i, node := range meant {
		pong := &list.Items[i]
		*pong = api.Pong{Node: string(node), Connected: h.roster.connected(node), LastConnected: h.roster.lastConnected(node)}
		if ms, answered := took[node]; answered {
			pong.Milliseconds = &ms
		}
		agents[i] = agentNameOf(pong.Connected, pong.LastConnected)
	}
	return list, h.nodes.nameClients(ctx, agents, meant)
}

// meant is who is asked: those named, or everybody who is connected and whom the caller may see; filter and limit hold for both.
func (h *pings) meant(ctx context.Context, t api.JobTargets) ([]fleet.Certname, error) {
	targets, err := targetsOf(t)
	if err != nil {
		return nil, err
	}
	if !t.Any() {
		targets.Nodes, err = seen(ctx, h.gate, fleet.NodeRead, h.asker.Connected(), func(node fleet.Certname) fleet.Object { return fleet.Object{Node: node} })
		if err != nil {
			return nil, err
		}
		return h.targets.Resolve(ctx, targets)
	}
	if err := h.roster.checkNodes(ctx, targets.Nodes); err != nil {
		return nil, err
	}
	nodes, err := h.targets.Resolve(ctx, targets)
	if err != nil {
		return nil, err
	}
	return nodes, h.gate.allowEach(ctx, fleet.NodeRead, nodes)
}
