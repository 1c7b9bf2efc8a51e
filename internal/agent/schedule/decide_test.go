package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/agent/schedule"
	"github.com/tutti-project/tutti/internal/fault"
)

var (
	noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	half = schedule.Config{Node: "web-1", Interval: 30 * time.Minute, Gap: time.Minute} // slots at :00 and :30
)

func at(minute int) time.Time { return noon.Add(time.Duration(minute) * time.Minute) }

func TestDecide(t *testing.T) {
	t.Parallel()
	ran := schedule.State{Began: at(0), Ended: at(2), Last: schedule.Outcome{Status: schedule.Changed}}
	with := func(s schedule.State, how func(*schedule.State)) schedule.State { how(&s); return s }
	for name, c := range map[string]struct {
		state schedule.State
		now   time.Time
		want  schedule.Step
	}{
		"a node that never ran":           {schedule.State{}, at(7), schedule.Step{At: at(7), Why: schedule.BySlot}},
		"one that ran waits for its slot": {ran, at(7), schedule.Step{At: at(30), Why: schedule.BySlot}},
		"a slot that came":                {ran, at(31), schedule.Step{At: at(30), Why: schedule.BySlot}},
		"many that were slept through":    {ran, at(1000), schedule.Step{At: at(30), Why: schedule.BySlot}},
		"and after the one run for them": {
			ran.Begin("r", at(1000)).End(schedule.Outcome{}, at(1001)), at(1001), schedule.Step{At: at(1020), Why: schedule.BySlot},
		},
		"nothing while one runs":       {ran.Begin("r", at(30)).Tell(at(31)), at(99), schedule.Step{}},
		"told":                         {ran.Tell(at(7)), at(8), schedule.Step{At: at(7), Why: schedule.ByOrder}},
		"told right after a run began": {with(ran, func(s *schedule.State) { s.Told = at(0) }), at(0), schedule.Step{At: at(1), Why: schedule.ByOrder}},
		"told while the run went on": {
			ran.Begin("r", at(30)).Tell(at(31)).End(schedule.Outcome{}, at(35)), at(35), schedule.Step{At: at(31), Why: schedule.ByOrder},
		},
		"told is not later than the slot": {
			with(ran, func(s *schedule.State) { s.Told, s.Failures = at(1), 9 }), at(2), schedule.Step{At: at(30), Why: schedule.ByOrder},
		},
		"one that could not be done": {
			ran.Begin("r", at(30)).End(schedule.Outcome{Status: schedule.NotDone}, at(31)), at(31), schedule.Step{At: at(32), Why: schedule.ByRetry},
		},
		"the third in a row":               {with(ran, func(s *schedule.State) { s.Failures = 3 }), at(3), schedule.Step{At: at(6), Why: schedule.ByRetry}},
		"the hundredth waits for its slot": {with(ran, func(s *schedule.State) { s.Failures = 100 }), at(3), schedule.Step{At: at(30), Why: schedule.BySlot}},
		"disabled": {
			ran.Begin("r", at(30)).End(schedule.Outcome{Status: schedule.Disabled}, at(31)), at(31), schedule.Step{At: at(60), Why: schedule.BySlot},
		},
		"failed is done": {
			ran.Begin("r", at(30)).End(schedule.Outcome{Status: schedule.Failed}, at(31)), at(31), schedule.Step{At: at(60), Why: schedule.BySlot},
		},
		"the clock was set back by a day":      {ran, at(-1440 + 7), schedule.Step{At: at(-1440 + 30), Why: schedule.BySlot}},
		"told before the clock was set back":   {with(ran, func(s *schedule.State) { s.Told = at(2) }), at(-10), schedule.Step{At: at(-9), Why: schedule.ByOrder}},
		"failed before the clock was set back": {with(ran, func(s *schedule.State) { s.Failures = 1 }), at(-10), schedule.Step{At: at(-9), Why: schedule.ByRetry}},
	} {
		if got := schedule.Decide(half, c.state, c.now); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// A fleet is spread evenly over the splay, each node at the same place in every interval.
func TestSlotsAreSpread(t *testing.T) {
	t.Parallel()
	const nodes, parts = 10_000, 10
	counts := make([]int, parts)
	for i := range nodes {
		c := schedule.Config{Node: fmt.Sprintf("node-%d.example.test", i), Interval: 30 * time.Minute, Splay: 20 * time.Minute}
		slot := schedule.Slot(c, noon.Add(-time.Nanosecond))
		if next := schedule.Slot(c, slot); next.Sub(slot) != c.Interval {
			t.Fatalf("the slots %s and %s are not an interval apart", slot, next)
		}
		into := slot.Sub(noon)
		if into < 0 || into >= c.Splay {
			t.Fatalf("the slot is %s into the interval", into)
		}
		counts[into*parts/c.Splay]++
	}
	for part, count := range counts {
		if count < nodes/parts*8/10 || count > nodes/parts*12/10 {
			t.Errorf("part %d has %d of %d nodes: %v", part, count, nodes, counts)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	if err := half.Check(); err != nil {
		t.Error(err)
	}
	for _, c := range []schedule.Config{
		{Interval: time.Millisecond},
		{Interval: time.Hour, Splay: 2 * time.Hour},
		{Interval: time.Hour, Splay: -1},
		{Interval: time.Hour, Gap: 2 * time.Hour},
		{Interval: time.Hour, Gap: -1},
	} {
		if err := c.Check(); fault.Of(err) != fault.Invalid {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Whatever happens in whatever order: no run begins while one goes on; told runs keep their gap; there is always
// something that comes next, within an interval of the last begin or of now; and a told run comes.
func TestDecideHoldsAlways(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := schedule.Config{
			Node: rapid.String().Draw(t, "node"), Interval: time.Duration(rapid.IntRange(1, 3000).Draw(t, "interval")) * time.Minute,
		}
		c.Splay = time.Duration(rapid.Int64Range(0, int64(c.Interval)).Draw(t, "splay"))
		c.Gap = time.Duration(rapid.Int64Range(0, int64(c.Interval)).Draw(t, "gap"))
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		var s schedule.State
		now := noon
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			before := s
			next := schedule.Decide(c, s, now)
			switch {
			case s.Running != "":
				if next.Why != schedule.ByNoReason || next.Due(now) {
					t.Fatalf("%+v while one runs", next)
				}
				if rapid.Bool().Draw(t, "ends") {
					s = s.End(schedule.Outcome{
						Status: rapid.SampledFrom([]schedule.Status{schedule.Changed, schedule.NotDone, schedule.Disabled, schedule.Failed}).Draw(t, "status"),
					}, now)
				}
			case next.Why == schedule.ByNoReason:
				t.Fatalf("nothing comes next: %+v", s)
			case next.At.Sub(now) > c.Interval:
				t.Fatalf("the next run is in %s, later than an interval", next.At.Sub(now))
			case next.Due(now):
				if next.Why == schedule.ByOrder && !s.Began.IsZero() && now.Sub(s.Began) < c.Gap && !s.Began.After(now) {
					t.Fatalf("told, %s after the run before", now.Sub(s.Began))
				}
				s = s.Begin("r", now)
			}
			if rapid.IntRange(0, 4).Draw(t, "told") == 0 {
				s = s.Tell(now)
				if s.Running == "" && schedule.Decide(c, s, now).At.After(schedule.Decide(c, before, now).At) && before.Running == "" && s.Began.Equal(before.Began) &&
					s.Failures == before.Failures {
					t.Fatal("telling made a run later")
				}
			}
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(2*c.Interval)).Draw(t, "passes")))
			if rapid.IntRange(0, 19).Draw(t, "set back") == 0 {
				now = now.Add(-3 * c.Interval)
			}
		}
	})
}
