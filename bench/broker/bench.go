package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
	"github.com/tutti-project/tutti/internal/wire"
)

// bench takes one server through the cases.
type bench struct {
	settings
	tutti *rivals.Tutti
	fleet *fleet
	base  measure.Usage // before the first agent came
}

// empty is the server with nobody connected.
func (b *bench) empty(ctx context.Context) (measure.Row, error) {
	if err := measure.Settle(ctx, b.Settle); err != nil {
		return measure.Row{}, err
	}
	usage, err := b.tutti.Usage()
	b.base = usage
	return measure.Ours("nobody", map[string]float64{"rss_mb": float64(usage.RSSBytes) / 1e6, "pss_mb": float64(usage.PSSBytes) / 1e6}), err
}

// connect is all agents coming at once.
func (b *bench) connect(ctx context.Context) (measure.Row, error) {
	return b.coming(ctx, "connect")
}

func (b *bench) coming(ctx context.Context, name string) (measure.Row, error) {
	watch, err := measure.Start(ctx, b.tutti.Usage)
	if err != nil {
		return measure.Row{}, err
	}
	span, err := watch.Stop(b.fleet.connect(ctx))
	if err != nil {
		return measure.Row{}, err
	}
	return measure.Ours(name, map[string]float64{
		"connections": float64(b.Agents), "per_s": float64(b.Agents) / span.Wall.Seconds(),
		"server_cpu_ms_each": float64(span.Server.Microseconds()) / 1e3 / float64(b.Agents),
		"server_cores":       span.Cores(span.Server), "client_cores": span.Cores(span.Clients), "others_cores": span.Cores(span.Others),
	}), nil
}

// idle is what they cost when they are silent.
func (b *bench) idle(ctx context.Context) (measure.Row, error) { return b.memory(ctx, "idle") }

func (b *bench) afterwards(ctx context.Context) (measure.Row, error) {
	return b.memory(ctx, "idle after orders")
}

func (b *bench) afterStorm(ctx context.Context) (measure.Row, error) {
	return b.memory(ctx, "idle after storm")
}

func (b *bench) memory(ctx context.Context, name string) (measure.Row, error) {
	if err := measure.Settle(ctx, b.Settle); err != nil {
		return measure.Row{}, err
	}
	usage, err := b.tutti.Usage()
	return measure.Ours(name, map[string]float64{
		"connections": float64(b.Agents), "rss_mb": float64(usage.RSSBytes) / 1e6, "pss_mb": float64(usage.PSSBytes) / 1e6,
		"kb_each": float64(usage.RSSBytes-b.base.RSSBytes) / 1024 / float64(b.Agents),
	}), err
}

// storm is all agents lost at once, and coming again.
func (b *bench) storm(ctx context.Context) (measure.Row, error) {
	b.fleet.close()
	return b.coming(ctx, "reconnect storm")
}

// connectWith is other agents coming, who have keys of one kind.
func (b *bench) connectWith(kind string) func(context.Context) (measure.Row, error) {
	return func(ctx context.Context) (measure.Row, error) {
		b.fleet.close()
		b.Agents, b.fleet.Agents = b.ByKey, b.ByKey
		fleet, err := newFleetOf(kind, b.fleet.ca, b.fleet.address, b.fleet.settings)
		if err != nil {
			return measure.Row{}, err
		}
		b.fleet = fleet
		return b.coming(ctx, "connect "+kind)
	}
}

// orders sends to all targets, and waits for all answers, several times.
func (b *bench) orders(ctx context.Context) (measure.Row, error) {
	socket, err := b.fleet.dial(ctx, "/pcp2/controller", 0, b.fleet.controller)
	if err != nil {
		return measure.Row{}, err
	}
	defer func() { _ = socket.conn.Close() }()
	watch, err := measure.Start(ctx, b.tutti.Usage)
	if err != nil {
		return measure.Row{}, err
	}
	var took []time.Duration
	for range b.Rounds {
		var one time.Duration
		if one, err = b.order(socket); err != nil {
			break
		}
		took = append(took, one)
	}
	span, err := watch.Stop(err)
	if err != nil {
		return measure.Row{}, err
	}
	latency := measure.Summarize(took)
	return measure.Ours(fmt.Sprintf("order to %d", b.Targets), map[string]float64{
		"connections": float64(b.Agents), "per_s": float64(b.Targets*b.Rounds) / span.Wall.Seconds(),
		"orders_p50_ms": latency.P50.Seconds() * 1e3, "orders_max_ms": latency.Max.Seconds() * 1e3,
		"server_cpu_ms_each": float64(span.Server.Microseconds()) / 1e3 / float64(b.Targets*b.Rounds),
		"server_cores":       span.Cores(span.Server), "client_cores": span.Cores(span.Clients), "others_cores": span.Cores(span.Others),
	}), nil
}

// order is the time from the first message to the last answer.
func (b *bench) order(s *socket) (time.Duration, error) {
	start := time.Now()
	if err := s.conn.SetDeadline(start.Add(time.Minute)); err != nil {
		return 0, err
	}
	sent := make(chan error, 1)
	go func() {
		for _, name := range b.fleet.names[:b.Targets] {
			if err := s.send(wire.Message{
				ID: uuid.NewString(), Type: wire.BlockingRequest, Target: wire.NewURI(name, "agent"),
				Data: jsontext.Value(`{"transaction_id":"1","module":"ping","action":"ping","params":{}}`),
			}); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	seen := map[wire.URI]bool{}
	for len(seen) < b.Targets {
		m, err := s.receive()
		if err != nil {
			return 0, fmt.Errorf("after %d answers: %w", len(seen), err)
		}
		if m.Type != wire.BlockingResponse || seen[m.Sender] {
			return 0, fmt.Errorf("an unexpected %s from %s: %s", m.Type, m.Sender, m.Data)
		}
		seen[m.Sender] = true
	}
	return time.Since(start), <-sent
}
