package leasetest

import (
	"slices"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/store/lease"
)

// RunRoll holds the rolls that open returns to the port's contract. open is called once a test; it returns one of no servers.
func RunRoll(t *testing.T, open func(t *testing.T) lease.Roll) {
	t.Helper()
	tests := map[string]func(*testing.T, lease.Roll){
		"who starts is listed":          starts,
		"who is there is seen":          isSeen,
		"who stops is not listed":       stops,
		"who is to drain is told":       drains,
		"who is near its nodes says it": saysNear,
		"who was silent for long, goes": silentForLong,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func enrol(t *testing.T, r lease.Roll, id, version string) lease.Server {
	t.Helper()
	s := lease.Server{ID: id, Address: "https://" + id, Version: version, Roles: []string{"role of " + id, "other"}}
	if err := r.EnrolServer(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return s
}

// roll is all servers, whose times are looked at here.
func roll(t *testing.T, r lease.Roll) []lease.Server {
	t.Helper()
	all, err := r.Servers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.Started.IsZero() || s.Seen.Before(s.Started) || s.Silent < 0 || s.Silent > long {
			t.Errorf("the times of %+v", s)
		}
	}
	return all
}

func wantRoll(t *testing.T, r lease.Roll, want ...lease.Server) {
	t.Helper()
	same := func(a, b lease.Server) bool {
		return a.ID == b.ID && a.Address == b.Address && a.Version == b.Version && slices.Equal(a.Roles, b.Roles)
	}
	if all := roll(t, r); !slices.EqualFunc(all, want, same) {
		t.Errorf("%+v, want %+v", all, want)
	}
}

func starts(t *testing.T, r lease.Roll) {
	wantRoll(t, r)
	b, _ := enrol(t, r, "b", "1"), enrol(t, r, "a", "1")
	a := enrol(t, r, "a", "2") // again
	wantRoll(t, r, a, b)
}

func isSeen(t *testing.T, r lease.Roll) {
	a := enrol(t, r, "a", "1")
	before := roll(t, r)[0]
	for after := before; !after.Seen.After(before.Seen); after = roll(t, r)[0] {
		if _, err := r.SeeServer(t.Context(), "unknown"); !fault.Is(err, fault.NotFound) {
			t.Fatalf("one that is not enrolled: %v", err)
		}
		if s, err := r.SeeServer(t.Context(), "a"); err != nil || s.ID != "a" || s.Seen.Before(before.Seen) {
			t.Fatalf("%+v, %v", s, err)
		}
		if !after.Started.Equal(before.Started) {
			t.Fatalf("who is there has started again: %+v", after)
		}
	}
	wantRoll(t, r, a)
}

func saysNear(t *testing.T, r lease.Roll) {
	a := enrol(t, r, "a", "1")
	said := lease.Near{CutAt: time.Unix(100, 0).UTC(), Queued: 3, QueuedBytes: 4, Aside: 5, Kept: 6, Served: 7, Delivered: 8}
	if err := r.SayNear(t.Context(), "unknown", said); !fault.Is(err, fault.NotFound) {
		t.Errorf("one that is not enrolled: %v", err)
	}
	if err := r.SayNear(t.Context(), "a", said); err != nil {
		t.Fatal(err)
	}
	if all := roll(t, r); all[0].Near == nil || *all[0].Near != said {
		t.Errorf("it says %+v", all[0].Near)
	}
	wantRoll(t, r, a)
	enrol(t, r, "a", "1") // it has started again, perhaps as another one
	if all := roll(t, r); all[0].Near != nil {
		t.Errorf("after a start it says %+v", all[0].Near)
	}
}

func stops(t *testing.T, r lease.Roll) {
	enrol(t, r, "a", "1")
	b := enrol(t, r, "b", "1")
	for range 2 {
		if err := r.LeaveServer(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	wantRoll(t, r, b)
}

func drains(t *testing.T, r lease.Roll) {
	if err := r.DrainServer(t.Context(), "a", time.Minute); !fault.Is(err, fault.NotFound) {
		t.Errorf("one that is not enrolled: %v", err)
	}
	enrol(t, r, "a", "1")
	enrol(t, r, "b", "1")
	var first lease.Drain
	for _, over := range []time.Duration{time.Minute, time.Hour} { // the first one stands
		if err := r.DrainServer(t.Context(), "a", over); err != nil {
			t.Fatal(err)
		}
		s, err := r.SeeServer(t.Context(), "a")
		if err != nil || s.Draining.Over != time.Minute || s.Draining.Asked.Before(s.Started) || first.Over != 0 && !s.Draining.Asked.Equal(first.Asked) {
			t.Errorf("%+v, %v", s, err)
		}
		first = s.Draining
	}
	if all := roll(t, r); all[0].Draining.Over != time.Minute || !all[1].Draining.Asked.IsZero() {
		t.Errorf("the roll: %+v", all)
	}
	enrol(t, r, "a", "1") // it has started again
	if s, err := r.SeeServer(t.Context(), "a"); err != nil || s.Draining != (lease.Drain{}) {
		t.Errorf("%+v, %v", s, err)
	}
}

func silentForLong(t *testing.T, r lease.Roll) {
	a := enrol(t, r, "a", "1")
	if n, err := r.ForgetServers(t.Context(), time.Hour); n != 0 || err != nil {
		t.Errorf("forgot %d, %v", n, err)
	}
	wantRoll(t, r, a)
	if n, err := r.ForgetServers(t.Context(), 0); n != 1 || err != nil {
		t.Errorf("forgot %d, %v", n, err)
	}
	wantRoll(t, r)
}
