package deliver_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
)

func TestBrake(t *testing.T) {
	t.Parallel()
	usual := deliver.Limits{Hold: 0, Warn: 50}
	for name, c := range map[string]struct {
		was, left int
		limits    deliver.Limits
		want      deliver.Ruling
		lost      string
	}{
		"a first catalog":                  {0, 0, usual, deliver.Give, ""},
		"a first one with resources":       {0, 38, usual, deliver.Give, ""},
		"all is left":                      {38, 38, usual, deliver.Give, ""},
		"more than before":                 {38, 40, usual, deliver.Give, ""},
		"all is lost":                      {38, 0, usual, deliver.Hold, deliver.LostAll},
		"the only one is lost":             {1, 0, usual, deliver.Hold, deliver.LostAll},
		"one is left":                      {38, 1, usual, deliver.Warn, deliver.LostMost},
		"one less than half":               {38, 18, usual, deliver.Warn, deliver.LostMost},
		"half is left":                     {38, 19, usual, deliver.Give, ""},
		"half of an odd number":            {5, 2, usual, deliver.Warn, deliver.LostMost},
		"one of two":                       {2, 1, usual, deliver.Give, ""},
		"the brake is off":                 {38, 0, deliver.Limits{Hold: deliver.Off, Warn: 50}, deliver.Warn, deliver.LostAll},
		"both are off":                     {38, 0, deliver.Limits{Hold: deliver.Off, Warn: deliver.Off}, deliver.Give, deliver.LostAll},
		"warnings are off":                 {38, 1, deliver.Limits{Hold: 0, Warn: deliver.Off}, deliver.Give, ""},
		"held below a tenth":               {38, 3, deliver.Limits{Hold: 10, Warn: 50}, deliver.Hold, deliver.LostMost},
		"not held at a tenth":              {30, 3, deliver.Limits{Hold: 10, Warn: 50}, deliver.Warn, deliver.LostMost},
		"held whatever is lost":            {38, 37, deliver.Limits{Hold: 100, Warn: 50}, deliver.Hold, deliver.LostMost},
		"held below more than warned":      {38, 20, deliver.Limits{Hold: 80, Warn: 50}, deliver.Hold, deliver.LostMost},
		"warned of nothing but lost all":   {38, 0, deliver.Limits{Hold: deliver.Off, Warn: 0}, deliver.Warn, deliver.LostAll},
		"not warned while one is left":     {38, 1, deliver.Limits{Hold: deliver.Off, Warn: 0}, deliver.Give, ""},
		"a node that had nothing loses it": {0, 0, deliver.Limits{Hold: 100, Warn: 100}, deliver.Give, ""},
	} {
		if got := deliver.Brake(c.was, c.left, c.limits); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if got := deliver.Lost(c.was, c.left, c.limits); got != c.lost {
			t.Errorf("%s: finding %q, want %q", name, got, c.lost)
		}
	}
}

// TestBrakeProperties: what is lost decides, and less left is never ruled milder.
func TestBrakeProperties(t *testing.T) {
	t.Parallel()
	rank := map[deliver.Ruling]int{deliver.Give: 0, deliver.Warn: 1, deliver.Hold: 2}
	rapid.Check(t, func(t *rapid.T) {
		floor := rapid.IntRange(-1, 100)
		l := deliver.Limits{Hold: deliver.Floor(floor.Draw(t, "hold")), Warn: deliver.Floor(floor.Draw(t, "warn"))}
		was, left := rapid.IntRange(0, 5000).Draw(t, "was"), rapid.IntRange(0, 5000).Draw(t, "left")
		got := deliver.Brake(was, left, l)
		switch {
		case got != deliver.Give && (was == 0 || left >= was):
			t.Fatalf("%d of %d: %s though nothing is lost", left, was, got)
		case was > 0 && left == 0 && l.Hold != deliver.Off && got != deliver.Hold:
			t.Fatalf("all of %d lost: %s, want it held", was, got)
		case l.Hold == deliver.Off && got == deliver.Hold:
			t.Fatal("held though the brake is off")
		case l.Warn == deliver.Off && got == deliver.Warn:
			t.Fatal("warned though warnings are off")
		case got == deliver.Hold && left > 0 && left*100 >= was*int(l.Hold):
			t.Fatalf("%d of %d is held below %s", left, was, l.Hold)
		}
		if left > 0 {
			if less := deliver.Brake(was, left-1, l); rank[less] < rank[got] {
				t.Fatalf("%d of %d: %s, with one less %s", left, was, got, less)
			}
		}
		if lost := deliver.Lost(was, left, l); (got != deliver.Give) && lost == "" || (lost == deliver.LostAll) != (was > 0 && left == 0) {
			t.Fatalf("%d of %d: %s but finding %q", left, was, got, lost)
		}
	})
}

func TestParseFloor(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"off", "0%", "7%", "50%", "100%"} {
		got, err := deliver.ParseFloor(text)
		if err != nil || got.String() != text {
			t.Errorf("%q is read as %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "%", "50", "-1%", "101%", "1.5%", "OFF", "0x1%", "300%", " 5%"} {
		if got, err := deliver.ParseFloor(text); err == nil || fault.Of(err) != fault.Invalid {
			t.Errorf("%q is read as %s, %v; want it refused", text, got, err)
		}
	}
}
