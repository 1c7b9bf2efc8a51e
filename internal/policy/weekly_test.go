package policy_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/policy"
)

func weekly(text, zone string) []policy.Freeze {
	return []policy.Freeze{{Name: "f", Freezing: policy.Freezing{Weekly: text, Zone: zone, Why: "w"}}}
}

func at(tb testing.TB, text string) time.Time {
	tb.Helper()
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		tb.Fatal(err)
	}
	return when
}

// TestWeeklyFreezes looks at borders and at days on which clocks are moved: in Berlin on 2026-03-29 at 02:00 to 03:00,
// and on 2026-10-25 at 03:00 back to 02:00.
func TestWeeklyFreezes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ weekly, zone, at, until string }{
		{"fri 16:00-mon 06:00", "Europe/Berlin", "2026-11-20T15:00:00Z", "2026-11-23T05:00:00Z"}, // the first instant
		{"fri 16:00-mon 06:00", "Europe/Berlin", "2026-11-20T14:59:59.999999Z", ""},
		{"fri 16:00-mon 06:00", "Europe/Berlin", "2026-11-23T04:59:59.999999Z", "2026-11-23T05:00:00Z"},
		{"fri 16:00-mon 06:00", "Europe/Berlin", "2026-11-23T05:00:00Z", ""},                     // the first free one
		{"fri 16:00-mon 06:00", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-30T04:00:00Z"}, // over the change
		{"mon-fri 18:00-06:00", "UTC", "2026-11-24T05:59:00Z", "2026-11-24T06:00:00Z"},
		{"mon-fri 18:00-06:00", "UTC", "2026-11-23T05:59:00Z", ""}, // Sunday's evening is free
		{"sat,sun 00:00-24:00", "UTC", "2026-11-21T00:00:00Z", "2026-11-23T00:00:00Z"},
		{"daily 02:15-02:45", "Europe/Berlin", "2026-03-29T01:00:00Z", ""}, // it is skipped
		{"daily 02:30-04:00", "Europe/Berlin", "2026-03-29T00:59:59Z", ""}, // begins when it has skipped
		{"daily 02:30-04:00", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"},
		{"daily 02:30-02:45", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T01:45:00Z"}, // the first half past two to the second one's end
		{"daily 02:30-02:45", "Europe/Berlin", "2026-10-25T01:10:00Z", "2026-10-25T01:45:00Z"},
		{"daily 02:30-02:45", "Europe/Berlin", "2026-10-25T01:45:00Z", ""},
		{"mon 10:00-mon 09:00", "UTC", "2026-11-23T09:30:00Z", ""},
		{"mon 10:00-mon 09:00", "UTC", "2026-11-23T08:30:00Z", "2026-11-23T09:00:00Z"},
	} {
		frozen := policy.FrozenAt(weekly(c.weekly, c.zone), "production", at(t, c.at))
		switch {
		case c.until == "" && frozen != nil:
			t.Errorf("%s in %s at %s: frozen until %s", c.weekly, c.zone, c.at, frozen.Until)
		case c.until != "" && (frozen == nil || !frozen.Until.Equal(at(t, c.until))):
			t.Errorf("%s in %s at %s: %+v, want until %s", c.weekly, c.zone, c.at, frozen, c.until)
		}
	}
}

var zones = []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "America/St_Johns", "Pacific/Apia", "Africa/Casablanca"}

// TestFrozenAgreesWithTheClock compares with a person who looks at the clock on the wall and knows nothing of zones, at times
// around which clocks are not moved; and asks of every time that Until is the first free instant.
func TestFrozenAgreesWithTheClock(t *testing.T) {
	t.Parallel()
	days := []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
	rapid.Check(t, func(t *rapid.T) {
		first, last := rapid.IntRange(0, 6).Draw(t, "first day"), rapid.IntRange(0, 6).Draw(t, "last day")
		from, to := rapid.IntRange(0, 24*60-1).Draw(t, "from"), rapid.IntRange(0, 24*60).Draw(t, "to")
		clock := func(m int) string { return time.Date(2000, 1, 1, m/60, m%60, 0, 0, time.UTC).Format("15:04") }
		end := clock(to)
		if to == 24*60 {
			end = "24:00"
		}
		zone := rapid.SampledFrom(zones).Draw(t, "zone")
		freezes := weekly(days[first]+" "+clock(from)+"-"+days[last]+" "+end, zone)
		where, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(rapid.Int64Range(1_600_000_000, 1_900_000_000).Draw(t, "at"), 0)
		frozen := policy.FrozenAt(freezes, "production", now)
		if frozen != nil {
			if !frozen.Until.After(now) || policy.FrozenAt(freezes, "production", frozen.Until.Add(-time.Nanosecond)) == nil {
				t.Errorf("%s at %s: until %s, but it ends before", freezes[0].Weekly, now, frozen.Until)
			}
			if next := policy.FrozenAt(freezes, "production", frozen.Until); next != nil && frozen.Until.Sub(now) < 400*24*time.Hour {
				t.Errorf("%s at %s: until %s, but it goes on until %s", freezes[0].Weekly, now, frozen.Until, next.Until)
			}
		}
		if _, before := now.Add(-8 * 24 * time.Hour).In(where).Zone(); !steady(now, where, before) {
			return
		}
		local := now.In(where)
		minute := int(local.Weekday())*24*60 + local.Hour()*60 + local.Minute()
		begin, length := first*24*60+from, (last-first)*24*60+to-from
		if length <= 0 {
			length += 7 * 24 * 60
		}
		since := ((minute-begin)%(7*24*60) + 7*24*60) % (7 * 24 * 60)
		if want := since < length; want != (frozen != nil) {
			t.Errorf("%s in %s at %s: frozen %v, want %v", freezes[0].Weekly, zone, local, frozen, want)
		}
	})
}

// steady says whether clocks are not moved for eight days on both sides.
func steady(now time.Time, where *time.Location, offset int) bool {
	for h := -8 * 24; h <= 8*24; h += 6 {
		if _, o := now.Add(time.Duration(h) * time.Hour).In(where).Zone(); o != offset {
			return false
		}
	}
	return true
}

func TestFreezesThatFollowEachOther(t *testing.T) {
	t.Parallel()
	freezes := append(weekly("sat,sun 00:00-24:00", "UTC"), policy.Freeze{Name: "once", Freezing: policy.Freezing{
		From: at(t, "2026-11-22T20:00:00Z"), To: at(t, "2026-11-23T12:00:00Z"), Zone: "UTC", Why: "a move",
	}})
	frozen := policy.FrozenAt(freezes, "production", at(t, "2026-11-21T12:00:00Z"))
	if frozen == nil || !frozen.Until.Equal(at(t, "2026-11-23T12:00:00Z")) || len(frozen.Freezes) != 1 {
		t.Errorf("%+v", frozen)
	}
	if always := policy.FrozenAt(weekly("daily 00:00-24:00", "UTC"), "production", at(t, "2026-11-21T12:00:00Z")); always == nil {
		t.Error("a freeze of every hour is none")
	}
	freezes[0].Environments = append(freezes[0].Environments, "testing")
	if frozen := policy.FrozenAt(freezes, "production", at(t, "2026-11-21T12:00:00Z")); frozen != nil {
		t.Errorf("another environment's freeze holds: %+v", frozen)
	}
}

func FuzzParseWeekly(f *testing.F) {
	for _, text := range []string{
		"fri 16:00-mon 06:00", "mon-fri 18:00-06:00", "daily 22:00-23:30", "sat,sun 00:00-24:00", "mon", "mon 25:00-26:00", "mon,tue 1:00-wed 2:00", "-",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w, err := policy.ParseWeekly(text)
		if err != nil {
			if fault.Of(err) != fault.Invalid || !strings.Contains(err.Error(), "field weekly") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		length := w.Ahead*24*60 + w.To - w.From
		if length <= 0 || length > 7*24*60 || w.Days == [7]bool{} {
			t.Errorf("%q: %+v is no window of a week", text, w)
		}
		now := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)
		if frozen := policy.FrozenAt(weekly(text, "Europe/Berlin"), "e", now); frozen != nil && !frozen.Until.After(now) {
			t.Errorf("%q: frozen until %s", text, frozen.Until)
		}
	})
}
