package cli

import (
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
)

func TestHowLongADiskLasts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.Local)
	growth, full := int64(-5), now.AddDate(0, 0, 41)
	for want, u := range map[string]api.Usage{
		"5.0 GB are free on the disk of the data directory; how long they last is known when it was measured on another day": {},
		"5.0 GB are free on the disk of the data directory; at this rate it does not fill up":                                {Growth: &growth},
		"5.0 GB are free on the disk of the data directory; at this rate they last 41 days, until 2027-01-04": {
			Growth: &growth, Disk: api.UsageDisk{FullAt: &full},
		},
		"5.0 GB are free on the disk of the data directory: it is full, and the server stores nothing until there is room": {
			Disk: api.UsageDisk{ReadOnly: true},
		},
	} {
		u.Disk.FreeBytes = 5e9
		if got := diskText(u, now); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
