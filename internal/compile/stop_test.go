package compile

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/fleet"
)

func TestStop(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	two := fairness{most: 1, slice: 20 * time.Second, timeout: 5 * time.Minute}
	production := []Lane{{Priority: Waited, Environment: "production"}}
	previews := []Lane{{Priority: Previewing, Environment: "production"}}
	runs := func(env fleet.Environment, seconds, turns int) held {
		return held{environment: env, ran: time.Duration(seconds) * time.Second, turns: turns}
	}
	preview := func(env fleet.Environment, seconds int) held {
		h := runs(env, seconds, 0)
		h.apart = true
		return h
	}
	for name, tt := range map[string]struct {
		running []held
		lanes   []Lane
		want    int
		share   bool
	}{
		"nobody waits":                           {[]held{runs("bad", 99, 0), runs("bad", 99, 0)}, nil, -1, false},
		"it runs for less than a slice":          {[]held{runs("bad", 19, 0), runs("bad", 19, 0)}, production, -1, false},
		"the younger one, where it is the share": {[]held{runs("bad", 99, 0), runs("bad", 20, 0)}, production, 1, true},
		"turns do not count for a share":         {[]held{runs("bad", 99, 4), runs("bad", 20, 4)}, production, 1, true},
		"its own":                                {[]held{runs("production", 99, 0), runs("production", 99, 0)}, production, -1, false},
		"who waits has as much":                  {[]held{runs("bad", 99, 0), runs("production", 1, 0)}, production, -1, false},
		"two others, each with its share":        {[]held{runs("bad", 50, 0), runs("worse", 99, 0)}, production, 1, false},
		"one that was stopped before":            {[]held{runs("bad", 79, 2), runs("worse", 99, 3)}, production, -1, false},
		"its second turn is over":                {[]held{runs("bad", 80, 2), runs("worse", 99, 3)}, production, 0, false},
		"it may end, at last":                    {[]held{runs("bad", 299, 9)}, production, -1, false},
		"previews of all, for a catalog":         {[]held{preview("a", 30), preview("production", 40)}, production, 0, true},
		"one preview, and a catalog runs":        {[]held{preview("a", 30), runs("production", 1, 0)}, production, -1, false},
		"a preview that has the only worker":     {[]held{preview("production", 30)}, production, 0, false},
		"nobody is stopped for a preview":        {[]held{runs("bad", 99, 0), runs("bad", 99, 0)}, previews, -1, false},
		"nor for what has to wait anyway": {[]held{runs("bad", 99, 0), runs("bad", 99, 0)}, []Lane{
			{Priority: Waited, Environment: "slow", Slow: Slowdown{Timeouts: slowAfter, RestsUntil: now.Add(time.Second)}},
		}, -1, false},
	} {
		if got, share := two.stop(tt.running, tt.lanes, now); got != tt.want || share != tt.share {
			t.Errorf("%s: %d is stopped (share %t), want %d (%t)", name, got, share, tt.want, tt.share)
		}
	}
}

// TestStopIsFair: whatever runs, nobody is stopped before its time nor for its own environment; and where
// an environment waits of which nothing runs, somebody is stopped if anybody had all the time that is its due.
func TestStopIsFair(t *testing.T) {
	t.Parallel()
	environments := []fleet.Environment{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(1, 6).Draw(t, "slots")
		rules := fairness{most: Share(slots, 0.5), slice: 20 * time.Second, timeout: 5 * time.Minute}
		running := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) held {
			return held{
				environment: rapid.SampledFrom(environments).Draw(t, "environment"), apart: rapid.Bool().Draw(t, "apart"),
				ran: time.Duration(rapid.IntRange(0, 299).Draw(t, "ran")) * time.Second, turns: rapid.IntRange(0, 5).Draw(t, "turns"),
			}
		}), slots, slots).Draw(t, "running")
		lane := Lane{Priority: NewCode, Environment: rapid.SampledFrom(environments).Draw(t, "waits")}
		own := kin(running, held{environment: lane.Environment})
		at, share := rules.stop(running, []Lane{lane}, time.Time{})
		if at < 0 {
			for _, h := range running {
				if own == 0 && h.ran >= rules.turn(h.turns) {
					t.Fatalf("%+v goes on while %s waits, of which nothing runs", h, lane.Environment)
				}
			}
			return
		}
		h := running[at]
		switch {
		case !h.apart && h.environment == lane.Environment:
			t.Fatalf("%+v is stopped for its own environment", h)
		case h.ran < rules.slice || !share && h.ran < rules.turn(h.turns):
			t.Fatalf("%+v is stopped before its time", h)
		case share && kin(running, h) <= rules.most:
			t.Fatalf("%+v is stopped as being over its share of %d", h, rules.most)
		case own >= rules.most:
			t.Fatalf("%+v is stopped for %s, which has its share", h, lane.Environment)
		}
	})
}

func TestSlowdownAfter(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	late := Compilation{Environment: "bad", Version: "v", Priority: Waited, State: Failed, FinishedAt: at, Err: &Error{Cause: CauseTimeout}}
	done := Compilation{Environment: "bad", Version: "v", State: Done, FinishedAt: at, Cost: Cost{Wall: time.Second}}
	wrong := late
	wrong.Err = &Error{Cause: CauseCode}
	var s Slowdown
	var pauses []time.Duration
	for range 9 {
		s = s.After(late)
		if !s.RestsUntil.IsZero() {
			pauses = append(pauses, s.RestsUntil.Sub(at))
		}
	}
	if len(pauses) != 7 || pauses[0] != 30*time.Second || pauses[1] != time.Minute || pauses[6] != 10*time.Minute || !s.Since.Equal(at) || s.Apart {
		t.Fatalf("nine that took too long make pauses %v and %+v", pauses, s)
	}
	if got := s.After(wrong); got != s {
		t.Errorf("code that is wrong makes it %+v", got)
	}
	reused := done
	reused.Cost = Cost{}
	if got := s.After(reused); got != s {
		t.Errorf("a catalog used again makes it %+v", got)
	}
	older := done
	older.Version = "before"
	if got := s.After(older); got != s {
		t.Errorf("other code that ends in time makes it %+v", got)
	}
	if got := s.After(done); got != (Slowdown{}) {
		t.Errorf("one that ends in time makes it %+v", got)
	}
	other := late
	other.Version, other.Priority = "w", Previewing
	if got := s.After(other); got.Timeouts != 1 || got.Slowed() || got.Version != "w" || !got.Apart {
		t.Errorf("other code makes it %+v", got)
	}
}
