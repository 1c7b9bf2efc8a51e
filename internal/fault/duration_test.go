package fault

import (
	"testing"
	"time"
)

// A sentence says times as people write them, whoever makes it.
func TestSentencesHaveTimesAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	const want = "at most 1m, not 2h30m"
	for name, err := range map[string]error{
		"New": New(Invalid, "at most %s, not %v", time.Minute, 150*time.Minute), "Wrap": Wrap(Invalid, nil, "at most %s, not %v", time.Minute, 150*time.Minute),
		"Later":    Later(time.Second, "at most %s, not %v", time.Minute, 150*time.Minute),
		"TooOften": TooOften(time.Second, "at most %s, not %v", time.Minute, 150*time.Minute),
	} {
		if got := Detail(err); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestDurations(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 350 * time.Millisecond: "350ms", 4200 * time.Millisecond: "4.2s", 185 * time.Second: "3m5s", 10 * time.Minute: "10m",
		24 * time.Hour: "24h", 36 * time.Hour: "36h", 48 * time.Hour: "2d", 7 * 24 * time.Hour: "7d", 14 * 24 * time.Hour: "2w", 75 * time.Hour: "3d3h",
		-10 * time.Minute: "-10m",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}
