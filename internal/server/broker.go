package server

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/protocol/websocket"
	"github.com/tutti-project/tutti/internal/wire"
)

// inbox takes what the broker brings from agents.
type inbox struct {
	jobs   *job.Service
	events *event.Service
}

// handlers is what becomes of messages that agents send to this server, by their
// type. What is not in here is answered with an error.
func (i inbox) handlers() map[string]broker.Handler {
	return map[string]broker.Handler{
		wire.ProvisionalResponse: i.accepted,
		wire.NonBlockingResponse: i.response(job.Response),
		wire.BlockingResponse:    i.response(job.Reply),
		wire.RPCError:            i.failure,
		wire.RunEvents:           i.happened,
	}
}

// openBroker makes the broker and what carries its messages. access is whether they are logged.
func (p *parts) openBroker(c Config, access *atomic.Bool) (err error) {
	in := inbox{jobs: p.jobs, events: p.events}
	p.broker, err = broker.New(broker.Config{
		Handlers: in.handlers(), Controller: current{&p.config}.isController, MaxConnections: c.BrokerMaxConnections, NodeConnections: c.BrokerConnectionsNode,
		QueueBytes: c.BrokerQueueBytes, Joined: in.joined, Left: in.left, AccessLog: access.Load, Log: p.log.Logger,
	})
	if err != nil {
		return err
	}
	p.sockets, err = websocket.New(websocket.Config{
		Broker: p.broker, MaxMessageBytes: c.BrokerMaxMessageBytes, IdleTimeout: c.BrokerIdleTimeout, Log: p.log.Logger,
	})
	if err != nil {
		return err
	}
	p.metrics.brokerFigures(p.broker)
	return nil
}

// presences tells the API which agents are connected.
type presences struct{ *parts }

// Presence is inventory.Presences.
func (p presences) Presence(node fleet.Certname) (inventory.Presence, bool) {
	who, there := p.broker.Presence(wire.NewURI(string(node), websocket.DefaultType))
	if !there {
		return inventory.Presence{}, false
	}
	return inventory.Presence{
		Server: serverName(), Since: who.Since, Agent: who.Agent, Protocol: fmt.Sprintf("PCP %d", who.Version), Shared: who.Shared(time.Now()),
	}, true
}

// brokerFigures registers what the broker can be asked for.
func (m *metrics) brokerFigures(b *broker.Broker) {
	stats := b.Stats
	m.gauge("tutti_broker_connections", "Agents and controllers that are connected.", func() float64 { return float64(stats().Connected) })
	m.gauge("tutti_broker_queued_bytes", "Messages that their targets have not read yet.", func() float64 { return float64(stats().QueuedBytes) })
	m.counter("tutti_broker_received_total", "Messages that came in.", func() float64 { return float64(stats().Received) })
	m.counter("tutti_broker_delivered_total", "Messages that were queued for a client.", func() float64 { return float64(stats().Delivered) })
	m.counter("tutti_broker_refused_total", "Messages that were answered with an error.", func() float64 { return float64(stats().Refused) })
	m.counter("tutti_broker_superseded_total", "Connections that a later one of the same client replaced.", func() float64 { return float64(stats().Superseded) })
	m.counter("tutti_broker_cut_off_total", "Connections that were closed because their client read too slowly.", func() float64 { return float64(stats().CutOff) })
}
