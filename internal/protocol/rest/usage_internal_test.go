package rest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/store/usage"
)

// measured is Usages with fixed sizes.
type measured struct {
	areas []usage.Area
	at    time.Time
}

func (m measured) Usage(context.Context) ([]usage.Area, time.Time, error) { return m.areas, m.at, nil }

func (m measured) Disk() (free int64, full bool) { return 1000, false }

func TestUsageTellsUntilWhenTheDiskLasts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	since, full := now.AddDate(0, 0, -10), now.AddDate(0, 0, 10)
	areas := []usage.Area{{Name: "a", Bytes: 500, Growth: 90, Since: since}, {Name: "b", Bytes: 20, Growth: 10, Since: since}}
	h := &usages{usages: measured{areas, now}}
	got, err := h.showUsage(t.Context(), api.Nothing{})
	if err != nil {
		t.Fatal(err)
	}
	all, a, b := int64(100), int64(90), int64(10)
	want := api.Usage{
		At: now, Areas: []api.UsageArea{{Area: "a", Bytes: 500, Growth: &a}, {Area: "b", Bytes: 20, Growth: &b}}, Bytes: 520, Growth: &all, Since: &since,
		Disk: api.UsageDisk{FreeBytes: 1000, FullAt: &full},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	h.usages = measured{[]usage.Area{{Name: "a", Bytes: 500}}, now}
	if got, err = h.showUsage(t.Context(), api.Nothing{}); err != nil || got.Growth != nil || got.Disk.FullAt != nil || got.Areas[0].Growth != nil {
		t.Errorf("without samples: %+v, %v", got, err)
	}
}
