package server

import (
	"sync/atomic"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/protocol/websocket"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// openBroker makes the broker and what carries its messages. access is whether they are logged.
func (p *parts) openBroker(c settings.Config, access *atomic.Bool) (err error) {
	in := inbox{jobs: p.jobs, events: p.events, register: p.register, calls: p.calls, catalogue: p.catalogue}
	p.others = openOthers(p, in)
	in.others = p.others
	p.broker, err = broker.New(broker.Config{
		Handlers:        in.handlers(),
		Controller:      current{&p.config}.isController,
		MaxConnections:  c.BrokerMaxConnections,
		NodeConnections: c.BrokerConnectionsNode,
		QueueBytes:      c.BrokerQueueBytes,
		Joined:          in.joined,
		Left:            in.left,
		Others:          in.others.config(p.store.Presence),
		AccessLog:       access.Load,
		Log:             p.log.Logger,
	})
	if err != nil {
		return err
	}
	p.sockets, err = websocket.New(websocket.Config{
		Broker:          p.broker,
		MaxMessageBytes: c.BrokerMaxMessageBytes,
		IdleTimeout:     c.BrokerIdleTimeout,
		Log:             p.log.Logger,
	})
	if err != nil {
		return err
	}
	p.metrics.brokerFigures(p.broker)
	return in.others.listen()
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
	m.counter("tutti_broker_cut_off_total", "Connections that were closed because their client read too slowly.", func() float64 {
		return float64(stats().CutOff)
	})
}
