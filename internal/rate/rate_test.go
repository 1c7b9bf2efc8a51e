package rate

import (
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

func TestBurstsAndIntervals(t *testing.T) {
	t.Parallel()
	l, now := New(3, time.Second, 10), time.Now()
	for i := range 3 {
		if wait := l.Take("a", now); wait != 0 {
			t.Fatalf("%d: %s", i, wait)
		}
	}
	for key, test := range map[string]struct {
		at   time.Time
		want time.Duration
	}{"a": {now, time.Second}, "b": {now, 0}} {
		if wait := l.Take(key, test.at); wait != test.want {
			t.Errorf("%s waits %s, want %s", key, wait, test.want)
		}
	}
	if wait := l.Take("a", now.Add(time.Second)); wait != 0 {
		t.Errorf("a second later: %s", wait)
	}
	if wait := l.Take("a", now.Add(time.Second)); wait == 0 {
		t.Error("a second later, twice")
	}
}

func TestKeysAreForgottenAndBounded(t *testing.T) {
	t.Parallel()
	const keys = 1000
	l, now := New(3, time.Second, keys), time.Now()
	name := func(i int) string { return string(rune('a'+i%26)) + strings.Repeat("x", i/26) }
	for i := range keys {
		if wait := l.Take(name(i), now); wait != 0 {
			t.Fatal(wait)
		}
	}
	if wait := l.Take("one more", now); wait == 0 {
		t.Error("a flood of keys is remembered")
	}
	if wait := l.Take("one more", now.Add(5*time.Second)); wait != 0 || len(l.full) != 1 {
		t.Errorf("later: %s, %d keys", wait, len(l.full))
	}
}

func TestRulesNameTheirLimit(t *testing.T) {
	t.Parallel()
	var none *Rule
	if Per(time.Minute, 0, "%s") != none || none.Allow("web-1", time.Now()) != nil {
		t.Error("no limit limits")
	}
	r, now := Per(24*time.Hour, 2, "%s renews its certificate more than 2 times a day (setting renewals_per_day)"), time.Now()
	for range 2 {
		if err := r.Allow("web-1", now); err != nil {
			t.Fatal(err)
		}
	}
	err := r.Allow("web-1", now)
	want := "web-1 renews its certificate more than 2 times a day (setting renewals_per_day); come back in 12h"
	if fault.Of(err) != fault.Unavailable || !fault.IsTooOften(err) || fault.Detail(err) != want || fault.RetryAfter(err) != 12*time.Hour {
		t.Errorf("%v, back in %s", err, fault.RetryAfter(err))
	}
	if err := r.Allow("web-2", now); err != nil {
		t.Errorf("another: %v", err)
	}
}
