package cli

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

var reportCommand = asking{noun{use: "report", short: "See what runs did", verbs: []declared{reportList, reportShow}}}

var reportList = verb[api.ReportListRequest]{
	use: "list", short: "List runs, newest first",
	prints:  aList,
	example: "  tutti report list --status failed\n  tutti report list --node web-1.example.test --limit 5",
	flags: func(f flagSet, in *api.ReportListRequest) {
		f.StringVar(&in.Name, "node", "", "only runs of this node")
		f.StringVar(&in.Status, "status", "", "only failed, changed or unchanged runs")
		f.IntVar(&in.Limit, "limit", 20, "at most this many, 1 to 1000")
		f.StringVar(&in.After, "after", "", "go on where the page before ended")
	},
	run: func(ctx context.Context, c *call, in *api.ReportListRequest) error {
		reports, err := ask(ctx, c.app, api.ReportList, *in)
		if err != nil {
			return err
		}
		err = print.List(c.printer(), reports.Items, print.Table[api.Report]{
			Columns: []string{"report", "node", "environment", "status", "when", "took", "changed", "failed", "skipped", "total"},
			Spare:   []string{"total", "skipped", "environment", "took"},
			Row: func(r api.Report) []any {
				return []any{
					print.ID(r.ID), r.Name, r.Environment, print.State(reportStatus(r)), r.StartedAt, print.Took(r.Seconds * float64(time.Second)),
					r.Counts.Changed, r.Counts.Failed, r.Counts.Skipped, r.Counts.Resources,
				}
			},
			Name:  func(r api.Report) string { return r.ID },
			Empty: "No reports.",
		})
		if err == nil && reports.Next != "" {
			c.hint("There are more: --after %s", reports.Next)
		}
		return err
	},
}

// reportStatus is the word for what a run did.
func reportStatus(r api.Report) string {
	switch {
	case r.CachedCatalog == "on_failure":
		return r.Status + ", with the cached catalog: it was given no other"
	case r.NoopPending:
		return r.Status + ", " + wouldChange(r.Counts.Noop)
	case r.Noop:
		return r.Status + ", noop"
	case r.Corrective:
		return r.Status + ", corrective"
	}
	return r.Status
}

func seconds(s float64) string { return fmt.Sprintf("%.1fs", s) }

type reportShowInput struct{ all bool }

var reportShow = verb[reportShowInput]{
	use: "show REPORT", short: "Show one run: what changed, what failed, and the log",
	long:    "Show one run. REPORT is an id from `tutti report list`, or its first digits (at least six).",
	example: "  tutti report show 3f9c2a\n  tutti report show 3f9c2a --all -o json",
	flags: func(f flagSet, in *reportShowInput) {
		f.BoolVar(&in.all, "all", false, "also show resources that did not change, and the whole log instead of warnings and errors")
	},
	run: func(ctx context.Context, c *call, in *reportShowInput) error {
		return showAnswer(ctx, c.app, api.ReportShow, api.ReportRequest{ID: c.args[0]}, func(to print.Printer, report api.Report) error {
			return printReport(to, report, in.all)
		})
	},
}

func printReport(to print.Printer, r api.Report, all bool) error {
	counts := r.Counts
	if err := to.Rows(nil, [][]string{
		{"Report", r.ID},
		{"Node", r.Name},
		{"Environment", r.Environment},
		{"Status", reportStatus(r)},
		{"Started", r.StartedAt.UTC().Format(time.RFC3339) + ", took " + seconds(r.Seconds)},
		{"Version", short(r.Version)},
		{"Puppet", r.PuppetVersion},
		{"Resources", fmt.Sprintf("%d: %d changed, %d failed, %d skipped, %d unchanged, %d noop",
			counts.Resources, counts.Changed, counts.Failed, counts.Skipped, counts.Unchanged, counts.Noop)},
	}); err != nil {
		return err
	}
	if r.Short {
		to.Line("Kept in short: its log and resources are past report_detail_retention.")
		return nil
	}
	var rows [][]string
	for _, resource := range r.Resources {
		if all || resource.Status != "unchanged" {
			rows = append(rows, []string{resource.Status, resource.Type + "[" + resource.Title + "]", firstMessage(resource), fleet.Place(resource.File, resource.Line)})
		}
	}
	if len(rows) > 0 {
		to.Line("")
		if err := to.Rows([]string{"status", "resource", "what happened", "where"}, rows); err != nil {
			return err
		}
	}
	return printLog(to, r.Logs, all)
}

// printLog prints warnings and errors, or every line.
func printLog(to print.Printer, lines []api.ReportLog, all bool) error {
	var rows [][]string
	var again []int
	shown := 0
	for _, line := range lines {
		if all || !slices.Contains([]string{"debug", "info", "notice"}, line.Level) {
			row := []string{line.Time.UTC().Format(time.TimeOnly), line.Level, line.Message, line.Source}
			shown++
			if last := len(rows) - 1; last >= 0 && !all && slices.Equal(rows[last][1:], row[1:]) {
				again[last]++ // Facter can say the same line dozens of times
				continue
			}
			rows, again = append(rows, row), append(again, 1)
		}
	}
	for i, times := range again {
		if times > 1 {
			rows[i][2] += "  (" + fault.Count(times, "time") + ")"
		}
	}
	if hidden := len(lines) - shown; hidden > 0 {
		to.Hint("The log has %s more; --all shows everything", fault.Count(hidden, "line"))
	}
	if len(rows) == 0 {
		return nil
	}
	to.Line("")
	return to.Rows([]string{"time", "level", "message", "source"}, rows)
}

func firstMessage(r api.ReportResource) string {
	for _, event := range r.Events {
		if event.Message != "" {
			return shortDigests(event.Message)
		}
	}
	return ""
}

var longDigest = regexp.MustCompile(`(\{[a-z0-9]+\}[0-9a-f]{12})[0-9a-f]{20,}`)

// shortDigests keeps only the beginning of checksums: people compare no more.
func shortDigests(text string) string { return longDigest.ReplaceAllString(text, "$1…") }
