package compile

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/fleet"
)

func TestNext(t *testing.T) {
	t.Parallel()
	const better = Background - 1
	for _, tt := range []struct {
		name string
		in   situation
		want []pick
	}{
		{"idle", situation{slots: 8, room: Idle}, []pick{{8, better}, {2, Background}}},
		{"idle with few slots", situation{slots: 2, room: Idle}, []pick{{2, better}, {1, Background}}},
		{"background runs", situation{slots: 8, running: 1, background: 1, room: Idle}, []pick{{7, better}, {1, Background}}},
		{"enough background runs", situation{slots: 8, running: 2, background: 2, room: Idle}, []pick{{6, better}}},
		{"something better runs", situation{slots: 8, running: 2, background: 1, room: Idle}, []pick{{6, better}}},
		{"some room", situation{slots: 4, room: Some}, []pick{{4, better}}},
		{"partly busy", situation{slots: 4, running: 3, room: Some}, []pick{{1, better}}},
		{"all slots run", situation{slots: 4, running: 4, room: Idle}, nil},
		{"shrunk", situation{slots: 2, running: 4, room: Idle}, nil},
		{"full but nothing runs", situation{slots: 4}, []pick{{1, better}}},
		{"full", situation{slots: 4, running: 1}, nil},
	} {
		if got := next(tt.in); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestStandsFor(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	failed := Compilation{Order: "o", FinishedAt: now.Add(-time.Minute), Err: &Error{Cause: CauseCode}}
	for name, tt := range map[string]struct {
		order    fleet.Digest
		priority Priority
		change   func(*Compilation)
		want     bool
	}{
		"new code":          {"o", NewCode, func(*Compilation) {}, true},
		"background":        {"o", Background, func(*Compilation) {}, true},
		"somebody waits":    {"o", Waited, func(*Compilation) {}, false},
		"new exports":       {"o", NewExports, func(*Compilation) {}, false},
		"another order":     {"p", NewCode, func(*Compilation) {}, false},
		"a crash":           {"o", NewCode, func(c *Compilation) { c.Err = &Error{Cause: CauseCrash} }, false},
		"a while ago":       {"o", NewCode, func(c *Compilation) { c.FinishedAt = now.Add(-failureStands) }, false},
		"without its error": {"o", NewCode, func(c *Compilation) { c.Err = nil }, false},
	} {
		c := failed
		tt.change(&c)
		if got := standsFor(tt.order, tt.priority, c, now); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		in       load
		from, to time.Duration
	}{
		{"nothing known", load{}, time.Second, 3 * time.Second},
		{"one slow catalog", load{leased: 1, wall: 8 * time.Second}, 4 * time.Second, 12 * time.Second},
		{"forty in two workers", load{wanted: 38, leased: 2, wall: time.Second}, 10 * time.Second, 30 * time.Second},
		{"a thousand", load{wanted: 1000, leased: 2, wall: time.Second}, 15 * time.Second, 30 * time.Second},
		{"stands still", load{wanted: 1, oldest: time.Hour, wall: time.Second}, 15 * time.Second, 30 * time.Second},
	} {
		if from, to := retryAfter(tt.in, 0), retryAfter(tt.in, 1); from != tt.from || to != tt.to {
			t.Errorf("%s: %s to %s, want %s to %s", tt.name, from, to, tt.from, tt.to)
		}
	}
}

func TestRetryAfterIsBoundedAndSpread(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := load{
			wanted: rapid.IntRange(0, 1<<20).Draw(t, "wanted"), leased: rapid.IntRange(0, 1<<10).Draw(t, "leased"),
			oldest: time.Duration(rapid.Int64Range(0, int64(1000*time.Hour)).Draw(t, "oldest")),
			wall:   time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "wall")),
		}
		roll := rapid.Float64Range(0, 1).Draw(t, "roll")
		got := retryAfter(l, roll)
		if got < soonest || got > latest || got%time.Second != 0 {
			t.Errorf("%s", got)
		}
		if from, to := retryAfter(l, 0), retryAfter(l, 1); to < from+2*time.Second || got < from || got > to {
			t.Errorf("%s is not between %s and %s", got, from, to)
		}
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]time.Duration{
		-1: time.Second, 0: time.Second, 1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 7: time.Minute, 1 << 40: time.Minute,
	} {
		if got := backoff(n); got != want {
			t.Errorf("backoff(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestShouldWarm(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(d time.Duration) target { return target{asked: now.Add(d)} }
	for _, tt := range []struct {
		name string
		in   map[fleet.Environment]target
		env  fleet.Environment
		wait time.Duration
	}{
		{"nothing", nil, "", 0},
		{"first come", map[fleet.Environment]target{"a": at(-1), "b": at(-2)}, "b", 0},
		{"by name", map[fleet.Environment]target{"b": at(-1), "a": at(-1), "c": at(-1)}, "a", 0},
		{"not yet", map[fleet.Environment]target{"a": at(time.Minute), "b": at(time.Second)}, "", time.Second},
		{"one due", map[fleet.Environment]target{"a": at(time.Minute), "b": at(0)}, "b", 0},
	} {
		env, due, wait := shouldWarm(tt.in, now)
		if env != tt.env || due != (tt.env != "") || wait != tt.wait {
			t.Errorf("%s: %q, %t, %s", tt.name, env, due, wait)
		}
	}
}
