package rest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/hint/bus"
	"github.com/tutti-project/tutti/internal/store/lease"
)

// Cluster is the servers that use the same records, and their leases.
type Cluster interface {
	// Servers is all that are known, by ID.
	Servers(ctx context.Context) ([]lease.Server, error)
	// Leases is all that were ever held, by name.
	Leases(ctx context.Context) ([]lease.Lease, error)
	// Drain asks a server to leave its work to others, and to close its connections in a time; NotFound.
	Drain(ctx context.Context, id string, over time.Duration) error
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
		answer(api.ClusterDrain, h.drain),
	}
}

// The bounds of the time in which a server closes its connections.
const (
	drainOver    = time.Minute
	maxDrainOver = time.Hour
)

// drain leaves the only server of a fleet alone: nobody would go on with its work.
func (h *servers) drain(ctx context.Context, r api.ClusterDrainRequest) (api.Nothing, error) {
	if r.OverSeconds < 0 || r.OverSeconds > int(maxDrainOver/time.Second) {
		return api.Nothing{}, fault.New(fault.Invalid, "connections are closed within %s at most", maxDrainOver)
	}
	over := cmp.Or(time.Duration(r.OverSeconds)*time.Second, drainOver)
	known, err := h.cluster.Servers(ctx)
	if err != nil {
		return api.Nothing{}, err
	}
	others := slices.DeleteFunc(slices.Clone(known), func(s lease.Server) bool {
		return s.ID == r.Server || !s.Draining.Asked.IsZero() || !s.There()
	})
	if len(others) == 0 && slices.ContainsFunc(known, func(s lease.Server) bool { return s.ID == r.Server }) {
		return api.Nothing{}, fault.New(fault.Conflict, "no other server runs that could go on with the work of %s", r.Server)
	}
	var names []string
	for _, s := range known {
		names = append(names, s.ID)
	}
	err = h.cluster.Drain(ctx, r.Server, over)
	if fault.Is(err, fault.NotFound) {
		err = &fault.Error{
			Kind: fault.NotFound, Detail: fault.Detail(err), Hint: cmp.Or(fault.DidYouMean(r.Server, names), "`tutti cluster status` names those that there are"),
			Err: err,
		}
	}
	return api.Nothing{}, err
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
			Roles: append([]string{}, s.Roles...), DrainAt: s.Draining.Asked,
		}
		if s.Near != nil {
			one.Near = nearOf(*s.Near)
		}
		if !s.Draining.Asked.IsZero() {
			one.State = api.ServerDraining
		}
		switch {
		case s.ID == told.Answered: // it is there now, whenever it said so last
			one.SeenAt = s.Seen.Add(s.Silent)
		case !s.There():
			one.State = api.ServerSilent // also when it was draining: its leases are over
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

func nearOf(n lease.Near) *api.ClusterNear {
	return &api.ClusterNear{
		CutAt: n.CutAt, BackAt: n.BackAt, Queued: n.Queued, QueuedBytes: n.QueuedBytes, SetAside: n.Aside, Kept: n.Kept, Served: n.Served, Delivered: n.Delivered,
	}
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
