package server

import (
	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/websocket"
	"github.com/tutti-project/tutti/internal/wire"
)

// agents are those that are connected to this server. Who asks for them is made before the broker, so it is looked up each time;
// while there is none, nobody is connected.
type agents struct{ broker func() *broker.Broker }

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

// names are the nodes whose agents are connected, in order. Controllers are of another type.
func (a agents) names() []fleet.Certname {
	b := a.broker()
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
