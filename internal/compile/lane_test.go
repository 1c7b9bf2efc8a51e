package compile

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/fleet"
)

// TestNextLaneIsFair plays a worker's slots over environments with endless work: none
// gets a second slot while another that has work has none, and with one slot none waits
// for more than one turn of each other.
func TestNextLaneIsFair(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lanes := make([]Lane, rapid.IntRange(1, 5).Draw(t, "environments"))
		for i := range lanes {
			lanes[i] = Lane{Priority: NewCode, Environment: fleet.Environment(fmt.Sprint(i)), Turn: rapid.Int64Range(0, 3).Draw(t, "turn")}
		}
		slots := rapid.IntRange(1, 6).Draw(t, "slots")
		var running []int
		since := make([]int, len(lanes)) // leases of others since its own
		for turn := range int64(40) {
			if len(running) == slots {
				i := rapid.IntRange(0, len(running)-1).Draw(t, "ends")
				lanes[running[i]].Running--
				running = append(running[:i], running[i+1:]...)
			}
			n := NextLane(lanes, Offer{})
			for _, other := range lanes {
				if other.Running < lanes[n].Running {
					t.Fatalf("environment %s has %d and gets more, %s has %d", lanes[n].Environment, lanes[n].Running, other.Environment, other.Running)
				}
			}
			for i := range since {
				since[i]++
			}
			since[n] = 0
			if slots == 1 {
				for i, n := range since {
					if n >= 2*len(lanes) {
						t.Fatalf("environment %d waits for %d leases of %d environments", i, n, len(lanes))
					}
				}
			}
			TakeTurn(lanes, lanes[n], 4+turn)
			running = append(running, n)
		}
	})
}

func TestNextLane(t *testing.T) {
	t.Parallel()
	if got := NextLane(nil, Offer{}); got != -1 {
		t.Errorf("of no lanes: %d", got)
	}
	lanes := []Lane{
		{Priority: NewCode, Environment: "a"},
		{Priority: Waited, Environment: "b", Running: 9, Turn: 9},
		{Priority: NewCode, Environment: "c", Running: 1},
	}
	if got := NextLane(lanes, Offer{}); got != 1 {
		t.Errorf("lane %d goes before the one that somebody waits for", got)
	}
}

func TestNextLaneKeepsToShares(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	slow := Slowdown{Environment: "bad", Version: "v", Timeouts: slowAfter, RestsUntil: now.Add(time.Minute)}
	over := slow
	over.RestsUntil = now
	offer := func(change ...func(*Offer)) Offer {
		o := Offer{Most: 1, Now: now}
		for _, f := range change {
			f(&o)
		}
		return o
	}
	bad := Lane{Priority: Waited, Environment: "bad"}
	here := Lane{Priority: Waited, Environment: "bad", Running: 1, Kin: 1, Here: 1}
	other := Lane{Priority: NewCode, Environment: "production"}
	preview := Lane{Priority: Previewing, Environment: "production"}
	for name, tt := range map[string]struct {
		lanes []Lane
		o     Offer
		want  int
	}{
		"less than its share":                {[]Lane{other, bad}, offer(), 1},
		"its share, and others have work":    {[]Lane{here, other}, offer(), 1},
		"its share, and nobody else":         {[]Lane{here}, offer(), 0},
		"its share, and others only preview": {[]Lane{here, preview}, offer(), 0},
		"all have their share":               {[]Lane{here, {Priority: NewCode, Environment: "production", Here: 1}}, offer(), 0},
		"no shares":                          {[]Lane{here, other}, Offer{}, 0},
		"strict, and nobody else":            {[]Lane{here}, offer(func(o *Offer) { o.Strict = []fleet.Environment{"bad"} }), -1},
		"strict, and less than its share":    {[]Lane{bad}, offer(func(o *Offer) { o.Strict = []fleet.Environment{"bad"} }), 0},
		"had its turn":                       {[]Lane{bad, other}, offer(func(o *Offer) { o.Last = []fleet.Environment{"bad"} }), 1},
		"had its turn, and nobody else":      {[]Lane{bad, preview}, offer(func(o *Offer) { o.Last = []fleet.Environment{"bad"} }), 0},
		"slowed, in its pause":               {[]Lane{{Environment: "bad", Slow: slow}}, offer(), -1},
		"slowed, after its pause":            {[]Lane{{Environment: "bad", Slow: over}}, offer(), 0},
		"slowed, and one runs elsewhere":     {[]Lane{{Environment: "bad", Slow: over, Running: 1, Kin: 1}}, offer(), -1},
		"slowed, and a preview runs":         {[]Lane{{Environment: "bad", Slow: over, Running: 1}}, offer(), 0},
		"the others are slowed":              {[]Lane{here, {Priority: NewCode, Environment: "x", Slow: slow}}, offer(), 0},
	} {
		if got := NextLane(tt.lanes, tt.o); got != tt.want {
			t.Errorf("%s: lane %d is next, want %d", name, got, tt.want)
		}
	}
}

func TestShare(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		workers int
		share   float64
		want    int
	}{{1, 0.5, 1}, {2, 0.5, 1}, {2, 1, 1}, {3, 0.5, 1}, {8, 0.5, 4}, {8, 0.01, 1}, {8, 1, 7}} {
		if got := Share(tt.workers, tt.share); got != tt.want {
			t.Errorf("a share of %g of %d workers is %d, want %d", tt.share, tt.workers, got, tt.want)
		}
	}
}

// TestSharesHold plays workers over environments with endless work of any priority: while another environment
// has catalogs to be compiled, and less than its share, none gets more than its share.
func TestSharesHold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(2, 8).Draw(t, "slots")
		o := Offer{Most: Share(slots, rapid.Float64Range(0, 1).Draw(t, "share"))}
		var lanes []Lane
		for i := range rapid.IntRange(2, 4).Draw(t, "environments") {
			for _, p := range rapid.SliceOfNDistinct(rapid.SampledFrom([]Priority{Waited, NewCode, Previewing}), 1, 3, rapid.ID).Draw(t, "priorities") {
				lanes = append(lanes, Lane{Priority: p, Environment: fleet.Environment(fmt.Sprint(i))})
			}
		}
		var running []Lane
		for turn := range int64(60) {
			if len(running) == slots {
				i := rapid.IntRange(0, slots-1).Draw(t, "ends")
				for n, l := range lanes {
					if l.Environment == running[i].Environment {
						lanes[n].Running--
						if l.Priority.Apart() == running[i].Priority.Apart() {
							lanes[n].Kin, lanes[n].Here = lanes[n].Kin-1, lanes[n].Here-1
						}
					}
				}
				running = slices.Delete(running, i, i+1)
			}
			n := NextLane(lanes, o)
			if n < 0 {
				t.Fatalf("nothing is leased of %+v", lanes)
			}
			for _, l := range lanes {
				if !l.Priority.Apart() && l.Here < o.Most && lanes[n].Here >= o.Most && l.Environment != lanes[n].Environment {
					t.Fatalf("%+v gets more than %d while %+v waits", lanes[n], o.Most, l)
				}
			}
			running = append(running, lanes[n])
			TakeTurn(lanes, lanes[n], turn)
		}
	})
}
