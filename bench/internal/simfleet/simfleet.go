// Package simfleet is a fleet of simulated agents in a benchmark's own process, beside the server that is measured.
//
// A Fleet is for one goroutine; the agents of it run in others. Errors are those of the fleet (internal/sim).
package simfleet

import (
	"context"
	"crypto/tls"
	"strings"
	"time"

	"github.com/tutti-project/tutti/bench/internal/authority"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/internal/sim"
)

// connectTimeout is what an agent may need for a connection when all come at once.
const connectTimeout = 2 * time.Minute

// Fleet is agents that connect together and are stopped together.
type Fleet struct {
	*sim.Fleet
	stop  context.CancelFunc
	ended chan error
}

// New makes the fleet of a configuration that says what the agents are; how they reach the server, or one of several, and as whom, is
// added. They prefer the first server. Nobody is connected yet.
func New(servers []*rivals.Tutti, ca *authority.Authority, c sim.Config) *Fleet {
	for _, tutti := range servers {
		c.URLs = append(c.URLs, Broker(tutti))
	}
	c.Dial, c.ConnectTimeout = sim.FromManyAddresses(), connectTimeout
	c.Identity = func(_ context.Context, name string) (*tls.Config, error) { return ca.Client(name) }
	return &Fleet{Fleet: sim.New(c)}
}

// Broker is where agents connect to.
func Broker(tutti *rivals.Tutti) string {
	return "wss" + strings.TrimPrefix(tutti.LocalhostURL(), "https")
}

// Connect is all agents coming at once; it returns when all are there.
func (f *Fleet) Connect(ctx context.Context) error {
	living, stop := context.WithCancel(context.WithoutCancel(ctx))
	f.stop, f.ended = stop, make(chan error, 1)
	go func() { f.ended <- f.Run(living) }()
	return f.AwaitConnected(ctx, time.Time{})
}

// Close stops the agents, and waits for them.
func (f *Fleet) Close() error {
	if f.stop == nil {
		return nil
	}
	f.stop()
	return <-f.ended
}
