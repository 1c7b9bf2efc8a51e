package cli

import (
	"fmt"
	"time"

	"github.com/tutti-project/tutti/internal/agent"
	"github.com/tutti-project/tutti/internal/cli/print"
)

// catalogRows are what the status says of the node's catalog, and of when it is applied.
func catalogRows(s agent.Status, now time.Time) [][]string {
	rows := [][]string{{"Catalog", catalogText(s.Catalog, now)}}
	if s.Catalog.Problem != "" {
		rows = append(rows, []string{"Catalog problem", s.Catalog.Problem})
	}
	rows = append(rows, []string{"Scheduled runs", scheduleText(s.Runs, now)})
	if last := s.Runs.Last; last != nil {
		rows = append(rows, []string{"Last scheduled", lastRunText(*last, now)})
	}
	if s.UndeliveredReports > 0 {
		rows = append(rows, []string{"Reports", fmt.Sprintf("%d to be delivered", s.UndeliveredReports)})
	}
	return rows
}

// lastRunText is what the last run of the schedule did.
func lastRunText(r agent.ScheduledRun, now time.Time) string {
	text := r.Status
	if r.Pending > 0 {
		text += ", " + wouldChange(r.Pending)
	}
	text += ", " + print.Ago(r.End, now)
	if r.Detail != "" {
		text += ": " + r.Detail
	}
	return text
}

func catalogText(c agent.Kept, now time.Time) string {
	if c.Digest == "" {
		return "none is kept"
	}
	const digits = 12
	text := fmt.Sprintf("%s, %s", c.Digest[:min(digits, len(c.Digest))], c.Mode)
	if c.Generation > 0 {
		text += fmt.Sprintf(", generation %d", c.Generation)
	}
	text += fmt.Sprintf(", %s %s", c.Environment, c.Version[:min(digits, len(c.Version))])
	if c.Fetched != nil {
		text += ", fetched " + print.Ago(*c.Fetched, now)
	}
	return text
}

func scheduleText(r agent.Runs, now time.Time) string {
	if !r.Scheduled {
		return "off"
	}
	text := "every " + r.Interval
	if interval, err := time.ParseDuration(r.Interval); err == nil {
		text = "every " + print.Duration(interval)
	}
	if r.Noop {
		text += ", noop"
	}
	switch {
	case r.Running:
		text += ", one is running"
	case r.Next != nil:
		text += fmt.Sprintf(", next %s (%s)", dueText(*r.Next, now), r.Why)
	}
	if r.Failures > 0 {
		text += fmt.Sprintf("; %d in a row could not be done", r.Failures)
	}
	return text
}

// dueText is when something is to be done that is done by itself.
func dueText(at, now time.Time) string {
	if !at.After(now) {
		return "due now"
	}
	return "in " + print.Duration(at.Sub(now).Round(time.Second))
}
