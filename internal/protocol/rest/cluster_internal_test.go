package rest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/hint/bus"
	"github.com/tutti-project/tutti/internal/store/lease"
)

// two is Cluster of server a, beside which others are, or were.
type two struct {
	servers []lease.Server
	leases  []lease.Lease
	drained *string
	bus     bus.State
}

func (c two) Drain(_ context.Context, id string, over time.Duration) error {
	if !slices.ContainsFunc(c.servers, func(s lease.Server) bool { return s.ID == id }) {
		return fault.New(fault.NotFound, "there is no server %s", id)
	}
	*c.drained = id + " over " + over.String()
	return nil
}

func (c two) Servers(context.Context) ([]lease.Server, error) { return c.servers, nil }

func (c two) Leases(context.Context) ([]lease.Lease, error) { return c.leases, nil }

func (two) Self() string { return "a" }

func (c two) Bus() bus.State { return c.bus }

func TestAServerThatWasNotSeenForALeaseIsSilent(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	drain := lease.Drain{Asked: at, Over: time.Minute}
	h := &servers{two{
		bus: bus.State{Kind: bus.Process, Up: true, Since: at},
		servers: []lease.Server{
			{ID: "a", Address: "https://a", Version: "1", Started: at, Seen: at, Silent: time.Hour}, // it answers: it is there
			{ID: "b", Version: "2", Started: at, Seen: at, Silent: lease.Shared().TTL},
			{ID: "c", Version: "2", Started: at, Seen: at, Silent: lease.Shared().TTL - 1, Roles: []string{"compiler"}},
			{ID: "d", Version: "2", Started: at, Seen: at, Draining: drain},
			{ID: "e", Version: "2", Started: at, Seen: at, Draining: drain, Silent: time.Hour},
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
			{Server: "a", State: "running", Address: "https://a", Version: "1", Roles: []string{}, StartedAt: at, SeenAt: at.Add(time.Hour)},
			{Server: "b", State: "silent", Version: "2", Roles: []string{}, StartedAt: at, SeenAt: at},
			{Server: "c", State: "running", Version: "2", Roles: []string{"compiler"}, StartedAt: at, SeenAt: at},
			{Server: "d", State: "draining", Version: "2", Roles: []string{}, StartedAt: at, SeenAt: at, DrainAt: at},
			{Server: "e", State: "silent", Version: "2", Roles: []string{}, StartedAt: at, SeenAt: at, DrainAt: at},
		},
		Leases: []api.ClusterLease{
			{Lease: "jobs", State: "held", Server: "a", Token: 3, Since: at}, {Lease: "releases", State: "free", Server: "b", Token: 1, Since: at},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Somebody must be there to go on with what a drained server did.
func TestTheLastServerIsNotDrained(t *testing.T) {
	t.Parallel()
	asked := lease.Drain{Asked: time.Now(), Over: time.Minute}
	for name, c := range map[string]struct {
		servers []lease.Server
		server  string
		over    int
		want    fault.Kind
		drained string
	}{
		"one of two":          {[]lease.Server{{ID: "a"}, {ID: "b"}}, "b", 0, 0, "b over 1m0s"},
		"itself":              {[]lease.Server{{ID: "a"}, {ID: "b"}}, "a", 300, 0, "a over 5m0s"},
		"the only one":        {[]lease.Server{{ID: "a"}}, "a", 0, fault.Conflict, ""},
		"the other is dead":   {[]lease.Server{{ID: "a"}, {ID: "b", Silent: time.Hour}}, "a", 0, fault.Conflict, ""},
		"the other drains":    {[]lease.Server{{ID: "a"}, {ID: "b", Draining: asked}}, "a", 0, fault.Conflict, ""},
		"an unknown one":      {[]lease.Server{{ID: "a"}, {ID: "b"}}, "c", 0, fault.NotFound, ""},
		"over a day":          {[]lease.Server{{ID: "a"}, {ID: "b"}}, "b", 86_400, fault.Invalid, ""},
		"over centuries":      {[]lease.Server{{ID: "a"}, {ID: "b"}}, "b", 18_446_744_074, fault.Invalid, ""}, // in nanoseconds it overflows to 0.3 s
		"over less than none": {[]lease.Server{{ID: "a"}, {ID: "b"}}, "b", -1, fault.Invalid, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var drained string
			h := &servers{two{servers: c.servers, drained: &drained}}
			_, err := h.drain(t.Context(), api.ClusterDrainRequest{Server: c.server, OverSeconds: c.over})
			if (err == nil) != (c.want == 0) || err != nil && fault.Of(err) != c.want || drained != c.drained {
				t.Errorf("%v, drained %q; want %v, %q", err, drained, c.want, c.drained)
			}
		})
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
		"down": {
			bus.State{Kind: bus.NATS, Since: at, Problem: "refused", Place: "n:4222"}, api.ClusterBus{Kind: "nats", State: "down", Since: &at, Problem: "refused"},
		},
	} {
		if diff := cmp.Diff(c.want, busOf(c.is)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
