package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
)

// A line that a run logs over and over is shown once, with how often; --all shows each.
func TestALogSaysWhatIsRepeatedOnce(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 28, 23, 9, 12, 0, time.UTC)
	lines := []api.ReportLog{{Time: at, Level: "err", Message: "first", Source: "Puppet"}, {Time: at, Level: "info", Message: "quiet", Source: "Puppet"}}
	for i := range 16 {
		lines = append(lines, api.ReportLog{Time: at.Add(time.Duration(i) * time.Second), Level: "err", Message: "no entry", Source: "Facter"})
	}
	lines = append(lines, api.ReportLog{Time: at, Level: "err", Message: "no entry", Source: "Puppet"})
	for _, c := range []struct {
		all         bool
		rows, times int
		hidden      bool
	}{{false, 4, 1, true}, {true, 20, 0, false}} {
		var out, hints bytes.Buffer
		hint := func(format string, args ...any) { fmt.Fprintf(&hints, format, args...) }
		if err := printLog(print.Printer{Out: &out, Hint: hint}, lines, c.all); err != nil {
			t.Fatal(err)
		}
		text := strings.TrimSpace(out.String())
		if got := len(strings.Split(text, "\n")); got != c.rows || strings.Count(text, "(16 times)") != c.times ||
			strings.Contains(hints.String(), "has 1 line more") != c.hidden {
			t.Errorf("all %t: %d lines\n%s%s", c.all, got, text, hints.String())
		}
	}
}
