package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
)

// What could not be tried is told with the reason, when it is tried again, and where to see more.
func TestTroublesAreShown(t *testing.T) {
	t.Parallel()
	next := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var out, hints bytes.Buffer
	a := &app{system: System{Out: &out, Err: &hints}}
	err := showQueue(a.printer(), api.CompileQueueStatus{Resting: 3, Wanted: 1, Troubles: []api.CompileTrouble{
		{Trouble: "the content store does not answer", Waiting: 3, Next: &next}, {Trouble: "the disk is full", Waiting: 1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"3 compilations to be tried again at 2026-03-01T12:00:00Z: the content store does not answer. See: tutti compile queue --state resting\n",
		"1 compilation to be tried again as soon as a worker is free: the disk is full. See: tutti compile queue --state wanted\n",
		"1 wanted, 0 running, 3 resting after trouble\n",
	} {
		if !strings.Contains(hints.String(), want) {
			t.Errorf("%q lacks %q", hints.String(), want)
		}
	}
}

// What is slowed stands in its lanes, and in words with when it goes on and what ends it.
func TestSlowedEnvironmentsAreShown(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := api.CompileSlowed{Environment: "bad", Version: "0123456789abcdef", Timeouts: 4, Since: now.Add(-time.Hour), RestsUntil: now.Add(time.Minute)}
	lanes := laneTable([]api.CompileSlowed{s})
	for lane, want := range map[api.CompileLane]string{
		{Priority: "waited", Environment: "bad"}:     "4 took too long",
		{Priority: "previewing", Environment: "bad"}: "",
		{Priority: "waited", Environment: "good"}:    "",
	} {
		if row := lanes.Row(lane); row[len(row)-1] != want || lanes.Columns[len(row)-1] != "slowed" {
			t.Errorf("the lane %+v is shown as %q", lane, row)
		}
	}
	text := slowedText(s, now)
	for _, want := range []string{
		"Catalogs of bad are compiled one at a time and with pauses since 2026-03-01T11:00:00Z: 4 in a row of version 0123456789ab",
		"The next one may run at 2026-03-01T12:01:00Z.", "One that ends in time, or other code, ends this.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	s.Previews = true
	if text := slowedText(s, now.Add(time.Hour)); !strings.HasPrefix(text, "Previews of bad") || strings.Contains(text, "next one") {
		t.Errorf("previews that may run: %q", text)
	}
	var out bytes.Buffer
	a := &app{system: System{Out: &out, Err: &out}}
	err := printCodeStatus(a.printer(), api.CodeStatus{Environment: "bad", Slowed: &s}, false)
	if err != nil || !strings.Contains(out.String(), "Previews of bad are compiled one at a time") {
		t.Errorf("code status: %v, %s", err, out.String())
	}
}
