package rest

import (
	"context"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/hint/bus"
	"github.com/tutti-project/tutti/internal/store/lease"
)

// Cluster is the servers that use the same records, and their leases.
type Cluster interface {
	// Servers is all that are known, by ID.
	Servers(ctx context.Context) ([]lease.Server, error)
	// Leases is all that were ever held, by name.
	Leases(ctx context.Context) ([]lease.Lease, error)
	// Self is the ID of this server.
	Self() string
	// Bus is what carries messages to the others.
	Bus() bus.State
}

// servers says which servers there are.
type servers struct {
	cluster Cluster
}

func (h *servers) bindings() []binding {
	return []binding{
		answer(api.ClusterStatus, h.showCluster),
	}
}

func (h *servers) showCluster(ctx context.Context, _ api.Nothing) (api.Cluster, error) {
	told := api.Cluster{Answered: h.cluster.Self(), Servers: []api.ClusterServer{}, Leases: []api.ClusterLease{}, Bus: busOf(h.cluster.Bus())}
	known, err := h.cluster.Servers(ctx)
	if err != nil {
		return told, err
	}
	for _, s := range known {
		one := api.ClusterServer{
			Server: s.ID, State: api.ServerRunning, Address: s.Address, Version: s.Version, StartedAt: s.Started, SeenAt: s.Seen,
		}
		if s.ID != told.Answered && s.Silent > lease.Shared().TTL {
			one.State = api.ServerSilent
		}
		told.Servers = append(told.Servers, one)
	}
	leases, err := h.cluster.Leases(ctx)
	for _, l := range leases {
		one := api.ClusterLease{Lease: l.Name, State: api.LeaseHeld, Server: l.Holder, Token: l.Token, Since: l.Since}
		if l.Free() {
			one.State = api.LeaseFree
		}
		told.Leases = append(told.Leases, one)
	}
	return told, err
}

// busOf shows a bus. One within the process reaches nobody else.
func busOf(s bus.State) api.ClusterBus {
	switch {
	case s.Kind != bus.NATS:
		return api.ClusterBus{Kind: api.BusNone, State: api.BusNone}
	case s.Up:
		return api.ClusterBus{Kind: s.Kind, State: api.BusUp, Place: s.Place, Since: &s.Since}
	}
	return api.ClusterBus{Kind: s.Kind, State: api.BusDown, Since: &s.Since, Problem: s.Problem}
}
