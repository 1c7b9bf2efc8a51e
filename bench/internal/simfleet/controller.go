package simfleet

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/bench/internal/authority"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/internal/agent/connection"
	"github.com/tutti-project/tutti/internal/sim"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// ControllerName is the certname of controllers: a server lets it order agents by --broker-controllers.
const ControllerName = "controller"

// Controller is a client that may order agents over the broker of one server.
type Controller struct {
	link    *connection.Link
	answers chan wire.Message
	stop    context.CancelFunc
	ended   chan error
}

// NewController connects one, which may ask as many as agents at once.
func NewController(ctx context.Context, tutti *rivals.Tutti, ca *authority.Authority, agents int) (*Controller, error) {
	identity, err := ca.Client(ControllerName)
	if err != nil {
		return nil, err
	}
	c := &Controller{answers: make(chan wire.Message, agents), ended: make(chan error, 1)}
	connected := make(chan struct{}, 1)
	c.link, err = connection.New(connection.Config{
		URLs: []string{Broker(tutti)}, URI: wire.NewURI(ControllerName, "controller"), TLS: sim.Fixed(identity), Log: slog.New(slog.DiscardHandler),
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
		c.Close()
		return nil, ctx.Err()
	}
}

// Close disconnects it.
func (c *Controller) Close() {
	c.stop()
	<-c.ended //nolint:errcheck // a link that was stopped has none
}

// Ping orders the action ping of the module ping, which agents answer at once. It is the time until all have answered, each once.
func (c *Controller) Ping(ctx context.Context, names []string) (time.Duration, error) {
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

func (c *Controller) askAll(names []string) error {
	for _, name := range names {
		request := pxp.Request{Transaction: uuid.NewString(), Module: pxp.Ping, Action: pxp.Ping}
		if err := c.link.Send(wire.Message{Type: wire.BlockingRequest, Target: wire.NewURI(name, "agent"), Data: pxp.Data(request)}); err != nil {
			return err
		}
	}
	return nil
}
