package puppetdb

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// gate lets a bounded number in at once. Who finds no place within patience is told
// to come back; a Puppet Server goes on to its next server_urls.
type gate struct {
	places   chan struct{}
	patience time.Duration
}

func newGate(places int) *gate { return &gate{make(chan struct{}, places), 10 * time.Second} }

// inside is the places that one request holds.
type inside []*gate

// enter waits for a place.
func (in *inside) enter(ctx context.Context, g *gate) error {
	timer := time.NewTimer(g.patience)
	defer timer.Stop()
	select {
	case g.places <- struct{}{}:
		*in = append(*in, g)
		return nil
	case <-timer.C:
		return fault.Later(g.patience, "too many commands are on their way at once; try again later")
	case <-ctx.Done():
		return fault.Wrap(fault.Unavailable, ctx.Err(), "the caller left")
	}
}

// leave gives all places back.
func (in *inside) leave() {
	for _, g := range *in {
		<-g.places
	}
}
