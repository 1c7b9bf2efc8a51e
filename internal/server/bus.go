package server

import (
	"context"
	"strconv"

	"github.com/tutti-project/tutti/internal/hint"
	"github.com/tutti-project/tutti/internal/hint/bus"
	"github.com/tutti-project/tutti/internal/hint/natsbus"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// openBus makes what carries hints and messages to the servers that use the same records. NATS need not be there: everything is found in the
// records, too.
func openBus(p *parts, c settings.Config) error {
	if c.NATSURL == "" {
		p.bus = new(bus.Local).Join()
		return nil
	}
	carried, err := natsbus.Open(c.NATS(p.id), p.log.Logger)
	if err != nil {
		return err
	}
	p.bus = carried
	subject := c.NATSPrefix + ".hint"
	p.relay = hint.NewRelay(func(data []byte) error { return p.bus.Publish(subject, data) })
	_, err = p.bus.Subscribe(bus.Subscriber{
		Subject: subject, Gap: p.relay.Missed,
		Take: func(_ context.Context, _ string, data []byte) ([]byte, error) {
			p.relay.Heard(data)
			return nil, nil
		},
	})
	p.metrics.busFigures(p.bus)
	return err
}

// heardOfOthers is what a server does to hear of the others, and they of it.
func heardOfOthers(p *parts) stage {
	if p.relay == nil {
		return stage{}
	}
	return stage{"hints to other servers": p.relay.Run}
}

// hearCompiled has those here told who wait for compilations that other servers end.
func hearCompiled(p *parts) {
	p.compiledThere = p.relay.Join("compiled", func(id string) {
		n, _ := strconv.ParseInt(id, 10, 64) // without a number it may be any
		p.catalogs.FinishedElsewhere(n)
		p.previews.Finished(n)
	})
}

// busFigures registers what the bus can be asked for.
func (m *metrics) busFigures(b bus.Bus) {
	state := b.State
	m.gauge("tutti_bus_up", "1 if messages between servers get through, 0 if servers hear of each other by the database only.", func() float64 {
		if state().Up {
			return 1
		}
		return 0
	})
	m.counter("tutti_bus_sent_total", "Messages to other servers.", func() float64 { return float64(state().Sent) })
	m.counter("tutti_bus_received_total", "Messages from other servers.", func() float64 { return float64(state().Received) })
	m.counter("tutti_bus_refused_total", "Messages to other servers that went nowhere.", func() float64 { return float64(state().Refused) })
	m.counter("tutti_bus_lost_total", "Messages from other servers that were lost here because too many waited.", func() float64 { return float64(state().Lost) })
	m.counter("tutti_bus_gaps_total", "How often messages from other servers may have been lost.", func() float64 { return float64(state().Gaps) })
}
