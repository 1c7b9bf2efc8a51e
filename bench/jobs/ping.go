package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/bench/internal/simfleet"
	"github.com/tutti-project/tutti/bench/rivals/measure"
	"github.com/tutti-project/tutti/internal/agent/connection"
	"github.com/tutti-project/tutti/internal/sim"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

func pingCase(targets int) string { return fmt.Sprintf("ping of %d", targets) }

// ping orders over the broker, as a controller: the action ping of the module ping, which agents
// answer at once. It takes from the first request to the last answer.
func (b *bench) ping(targets int) func(context.Context) (measure.Row, error) {
	return func(ctx context.Context) (measure.Row, error) {
		c, err := b.controller(ctx)
		if err != nil {
			return measure.Row{}, err
		}
		defer c.close()
		return b.watched(ctx, pingCase(targets), targets*b.Rounds, func() (map[string]float64, error) {
			var took []time.Duration
			for range b.Rounds {
				one, err := c.ping(ctx, b.names[:targets])
				if err != nil {
					return nil, err
				}
				took = append(took, one)
			}
			latency := measure.Summarize(took)
			return map[string]float64{"p50_s": latency.P50.Seconds(), "max_s": latency.Max.Seconds()}, nil
		})
	}
}

// controller is a client that may order agents.
type controller struct {
	link    *connection.Link
	answers chan wire.Message
	stop    context.CancelFunc
	ended   chan error
}

func (b *bench) controller(ctx context.Context) (*controller, error) {
	identity, err := b.ca.Client(controllerName)
	if err != nil {
		return nil, err
	}
	c := &controller{answers: make(chan wire.Message, b.Agents), ended: make(chan error, 1)}
	connected := make(chan struct{}, 1)
	c.link, err = connection.New(connection.Config{
		URLs: []string{simfleet.Broker(b.tutti)}, URI: wire.NewURI(controllerName, "controller"), TLS: sim.Fixed(identity), Log: slog.New(slog.DiscardHandler),
		Receive: func(m wire.Message) { c.answers <- m }, Connected: func() { connected <- struct{}{} }, FirstPause: time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	living, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	go func() { c.ended <- c.link.Run(living) }()
	select {
	case <-connected:
		return c, nil
	case <-ctx.Done():
		c.close()
		return nil, ctx.Err()
	}
}

func (c *controller) close() {
	c.stop()
	<-c.ended //nolint:errcheck // a link that was stopped has none
}

// ping is the time until all have answered, each once.
func (c *controller) ping(ctx context.Context, names []string) (time.Duration, error) {
	start, sent := time.Now(), make(chan error, 1)
	go func() { sent <- c.askAll(names) }()
	seen := map[wire.URI]bool{}
	for len(seen) < len(names) {
		select {
		case m := <-c.answers:
			if m.Type != wire.BlockingResponse || seen[m.Sender] {
				return 0, fmt.Errorf("an unexpected %s from %s: %s", m.Type, m.Sender, m.Data)
			}
			seen[m.Sender] = true
		case <-ctx.Done():
			return 0, fmt.Errorf("after %d of %d answers: %w", len(seen), len(names), ctx.Err())
		}
	}
	return time.Since(start), <-sent
}

func (c *controller) askAll(names []string) error {
	for _, name := range names {
		request := pxp.Request{Transaction: uuid.NewString(), Module: pxp.Ping, Action: pxp.Ping}
		if err := c.link.Send(wire.Message{Type: wire.BlockingRequest, Target: wire.NewURI(name, "agent"), Data: pxp.Data(request)}); err != nil {
			return err
		}
	}
	return nil
}
