package usage

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func TestGrowthIsSinceTheOldestSampleOfAMonth(t *testing.T) {
	t.Parallel()
	day := func(n int) time.Time { return now.AddDate(0, 0, -n) }
	got := Grown(now, map[string]int64{"reports": 3000, "facts": 500, "new": 400, "blobs": 9000}, []Sample{
		{day(60), "reports", 1}, {day(10), "facts", 600}, {day(10), "reports", 1000}, {day(10), "blobs", 9000}, {day(5), "reports", 2900}, {now, "facts", 500},
	})
	want := []Area{
		{Name: "blobs", Bytes: 9000, Since: day(10)},
		{Name: "reports", Bytes: 3000, Growth: 200, Since: day(10)},
		{Name: "facts", Bytes: 500, Growth: -10, Since: day(10)},
		{Name: "new", Bytes: 400, Growth: 40, Since: day(10)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if at, want := FullAt(now, 2300, got), now.AddDate(0, 0, 10); !at.Equal(want) {
		t.Errorf("full at %s, want %s", at, want)
	}
	got[1].Elsewhere = true
	if at, want := FullAt(now, 300, got), now.AddDate(0, 0, 10); !at.Equal(want) {
		t.Errorf("without what is elsewhere, full at %s, want %s", at, want)
	}
	if at := FullAt(now, -5, got); !at.Equal(now) {
		t.Errorf("a full disk is full at %s", at)
	}
}

func TestNothingIsForetoldWithoutSamples(t *testing.T) {
	t.Parallel()
	got := Grown(now, map[string]int64{"facts": 500}, []Sample{{now.Add(-time.Hour), "facts", 1}})
	if len(got) != 1 || got[0].Known() || !FullAt(now, 100, got).IsZero() {
		t.Errorf("after an hour: %+v", got)
	}
	still := Grown(now, map[string]int64{"facts": 500}, []Sample{{now.AddDate(0, 0, -2), "facts", 500}})
	slow := Grown(now, map[string]int64{"facts": 502}, []Sample{{now.AddDate(0, 0, -2), "facts", 500}})
	if !FullAt(now, 100, still).IsZero() || !FullAt(now, 1<<50, slow).IsZero() {
		t.Error("what does not grow, or hardly, fills no disk")
	}
}
