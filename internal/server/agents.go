package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/action/call"
	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/protocol/websocket"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// agents are the agents that are connected, to this server or to another one with the same records. The broker is opened after what holds this, so it is looked
// up each time; until then nobody is connected.
type agents struct {
	broker   func() *broker.Broker
	register func() *broker.Register
	others   func() *others // that some of them are connected to; nil: there are none
}

// agentOf is where a node's agent listens.
func agentOf(node fleet.Certname) wire.URI { return wire.NewURI(string(node), websocket.DefaultType) }

// presence is how a node's agent is connected, if it is.
func (a agents) presence(node fleet.Certname) (broker.Presence, bool) {
	b := a.broker()
	if b == nil {
		return broker.Presence{}, false
	}
	return b.Presence(agentOf(node))
}

// server is the name of the server that a node's agent is connected to.
func (a agents) server(node fleet.Certname) string {
	if b := a.broker(); b != nil {
		if id := b.ServerOf(agentOf(node)); id != "" {
			name, _, _ := strings.Cut(id, "/")
			return name
		}
	}
	return settings.ServerName()
}

// nodes are those whose agents are connected and give no orders to others.
func (a agents) nodes() (nodes []fleet.Certname) {
	for _, who := range a.broker().Presences() {
		if who.URI == agentOf(who.Certname) && who.Party == broker.Node {
			nodes = append(nodes, who.Certname)
		}
	}
	return nodes
}

// presences is inventory.Connections: it tells the API which agents are connected.
type presences struct{ agents agents }

// Presence implements inventory.Presences.
func (p presences) Presence(node fleet.Certname) (inventory.Presence, bool) {
	who, there := p.agents.presence(node)
	if !there {
		last, _ := p.agents.register().Last(node)
		return inventory.Presence{Server: settings.ServerName(), Since: last.Since, Until: last.Until, Agent: last.Agent}, false
	}
	return inventory.Presence{
		Server:   p.agents.server(node),
		Since:    who.Since,
		Agent:    who.Agent,
		Protocol: fmt.Sprintf("PCP %d", who.Version),
		Shared:   who.Shared(time.Now()),
	}, true
}

// Connected implements inventory.Connections. Controllers are of another type.
func (p presences) Connected() []fleet.Certname {
	b := p.agents.broker()
	if b == nil {
		return nil
	}
	uris := b.Connected(wire.NewURI("*", websocket.DefaultType))
	names := make([]fleet.Certname, len(uris))
	for i, uri := range uris {
		names[i] = fleet.Certname(uri.Name())
	}
	return names
}

// asking is rest.Asker.
type asking struct {
	*call.Caller
	presences
}

// sender is job.Sender: the broker brings orders to agents.
type sender struct{ agents agents }

// Order implements job.Sender.
func (s sender) Order(ctx context.Context, node fleet.Certname, r pxp.Request) error {
	return s.agents.broker().Send(ctx, wire.Message{Type: wire.NonBlockingRequest, Target: agentOf(node), Data: pxp.Data(r)})
}

// Ask implements job.Sender.
func (s sender) Ask(ctx context.Context, node fleet.Certname, r pxp.Request) error {
	if who, there := s.agents.presence(node); !there || !strings.HasPrefix(who.Agent, ownAgent) {
		r.Caller = "" // other agents take no field that they do not know
	}
	return s.agents.broker().Send(ctx, wire.Message{Type: wire.BlockingRequest, Target: agentOf(node), Data: pxp.BlockingData(r)})
}

// Connected implements job.Sender.
func (s sender) Connected(node fleet.Certname) (job.Link, bool) {
	who, connected := s.agents.presence(node)
	if !connected {
		last, _ := s.agents.register().Last(node)
		return job.Link{Agent: last.Agent, Since: last.Since, Until: last.Until}, false
	}
	return job.Link{
		Agent: who.Agent, Since: who.Since, Superseded: who.Superseded, Unreachable: s.agents.unreachable(node), Shared: who.Shared(time.Now()),
	}, true
}

// unreachable is why nothing can be sent for now to a node that is connected; empty: it can.
func (a agents) unreachable(node fleet.Certname) string {
	b, others := a.broker(), a.others()
	if b == nil || others == nil {
		return ""
	}
	return others.unreachable(b.ServerOf(agentOf(node)))
}
