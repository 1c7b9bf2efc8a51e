package rest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/hint/bus"
	"github.com/tutti-project/tutti/internal/store/lease"
)

// two is Cluster of server a, beside which others are, or were.
type two struct {
	servers []lease.Server
	leases  []lease.Lease
	bus     bus.State
}

func (c two) Servers(context.Context) ([]lease.Server, error) { return c.servers, nil }

func (c two) Leases(context.Context) ([]lease.Lease, error) { return c.leases, nil }

func (two) Self() string { return "a" }

func (c two) Bus() bus.State { return c.bus }

func TestAServerThatWasNotSeenForLongerThanALeaseIsSilent(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	h := &servers{two{
		bus: bus.State{Kind: bus.Process, Up: true, Since: at},
		servers: []lease.Server{
			{ID: "a", Address: "https://a", Version: "1", Started: at, Seen: at, Silent: time.Hour}, // it answers: it is there
			{ID: "b", Version: "2", Started: at, Seen: at, Silent: lease.Shared().TTL + 1},
			{ID: "c", Version: "2", Started: at, Seen: at, Silent: lease.Shared().TTL},
		},
		leases: []lease.Lease{
			{Grant: lease.Grant{Name: "jobs", Holder: "a", Token: 3}, Since: at, Left: time.Second},
			{Grant: lease.Grant{Name: "releases", Holder: "b", Token: 1}, Since: at},
		},
	}}
	got, err := h.showCluster(t.Context(), api.Nothing{})
	if err != nil {
		t.Fatal(err)
	}
	want := api.Cluster{
		Answered: "a", Bus: api.ClusterBus{Kind: "none", State: "none"},
		Servers: []api.ClusterServer{
			{Server: "a", State: "running", Address: "https://a", Version: "1", StartedAt: at, SeenAt: at},
			{Server: "b", State: "silent", Version: "2", StartedAt: at, SeenAt: at},
			{Server: "c", State: "running", Version: "2", StartedAt: at, SeenAt: at},
		},
		Leases: []api.ClusterLease{
			{Lease: "jobs", State: "held", Server: "a", Token: 3, Since: at}, {Lease: "releases", State: "free", Server: "b", Token: 1, Since: at},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHowABusIsShown(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		is   bus.State
		want api.ClusterBus
	}{
		"alone": {bus.State{Kind: bus.Process, Up: true, Since: at}, api.ClusterBus{Kind: "none", State: "none"}},
		"up":    {bus.State{Kind: bus.NATS, Up: true, Since: at, Place: "n:4222"}, api.ClusterBus{Kind: "nats", State: "up", Since: &at, Place: "n:4222"}},
		"down":  {bus.State{Kind: bus.NATS, Since: at, Problem: "refused", Place: "n:4222"}, api.ClusterBus{Kind: "nats", State: "down", Since: &at, Problem: "refused"}},
	} {
		if diff := cmp.Diff(c.want, busOf(c.is)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
