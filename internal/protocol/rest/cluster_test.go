package rest_test

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/hint/bus"
	"github.com/tutti-project/tutti/internal/store/lease"
)

// alone is rest.Cluster of a server that has just started.
type alone struct{}

func (alone) Servers(context.Context) ([]lease.Server, error) {
	return []lease.Server{{ID: "here/1", Address: "https://here:8140", Version: "1.0.0", Started: time.Unix(1, 0).UTC(), Seen: time.Unix(1, 0).UTC()}}, nil
}

func (alone) Leases(context.Context) ([]lease.Lease, error) {
	return []lease.Lease{{Grant: lease.Grant{Name: "jobs", Holder: "here/1", Token: 1}, Since: time.Unix(1, 0).UTC(), Left: time.Second}}, nil
}

func (alone) Drain(context.Context, string, time.Duration) error { return nil }

func (alone) Self() string { return "here/1" }

func (alone) Bus() bus.State {
	return bus.State{Kind: bus.NATS, Up: true, Since: time.Unix(1, 0).UTC(), Place: "nats.example.test:4222"}
}
