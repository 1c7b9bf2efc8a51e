package compile

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/fleet"
)

func TestNext(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		in    situation
		n     int
		worst Priority
	}{
		{"idle", situation{slots: 4, open: true}, 4, Background},
		{"partly busy", situation{slots: 4, running: 3, open: true}, 1, Background},
		{"full", situation{slots: 4, running: 4, open: true}, 0, Background},
		{"shrunk", situation{slots: 2, running: 4, open: true}, 0, Background},
		{"paused", situation{slots: 4, open: true, paused: true}, 0, Waited},
		{"loaded but idle", situation{slots: 4}, 1, Waited},
		{"loaded and busy", situation{slots: 4, running: 1}, 0, Waited},
	} {
		if n, worst := next(tt.in); n != tt.n || n > 0 && worst != tt.worst {
			t.Errorf("%s: %d up to %d, want %d up to %d", tt.name, n, worst, tt.n, tt.worst)
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
