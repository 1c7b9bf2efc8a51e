package natsbus

import (
	"github.com/nats-io/nats.go"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/hint/bus"
)

// Probed is what a look at NATS has found.
type Probed struct {
	Place      string // the server that answered
	MaxPayload int64  // the largest message that it takes
}

// Enough says whether it takes all that servers send.
func (p Probed) Enough() bool { return p.MaxPayload >= bus.MaxBytes }

// Probe connects once. Unavailable: it cannot, and why.
func Probe(config Config) (Probed, error) {
	options, err := config.options()
	if err != nil {
		return Probed{}, err
	}
	conn, err := nats.Connect(config.URL, append(options, nats.Name(config.Name), nats.Timeout(dialMay))...)
	if err != nil {
		return Probed{}, fault.Wrap(fault.Unavailable, err, "NATS cannot be used (%v)", err)
	}
	defer conn.Close()
	return Probed{conn.ConnectedAddr(), conn.MaxPayload()}, nil
}
