package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

// The layouts of puppet job and puppet task, under their names. Columns and the order of lines are documented; the words are ours
// where nobody wrote them down.

// theirJobTable is the list of jobs.
func theirJobTable() print.Table[api.Job] {
	return print.Table[api.Job]{
		Columns: []string{"id", "status", "job type", "timestamp", "target"},
		Row: func(j api.Job) []any {
			return []any{j.ID, j.State, theirType(j), j.CreatedAt.Local().Format(theirTime), shortened(targetsText(j.Targets), 24)}
		},
		Name:  func(j api.Job) string { return j.ID },
		Empty: "No jobs.",
	}
}

const theirTime = "01/02/2006 03:04:05 PM"

func shortened(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}

// theirType is what a job is.
func theirType(j api.Job) string {
	switch j.Kind {
	case "puppet":
		return "puppet run"
	case "task":
		return j.Title
	}
	return jobText(j)
}

// theirJobText is a job with its nodes.
func theirJobText(j api.Job, runs []api.JobRun) string {
	var text strings.Builder
	rows := [][2]string{
		{"Status", j.State},
		{"Job type", theirType(j)},
		{"Description", j.Description},
		{"Start", j.CreatedAt.Local().Format(theirTime)},
	}
	if j.FinishedAt != nil {
		rows = append(rows, [2]string{"Finished", j.FinishedAt.Local().Format(theirTime)}, [2]string{"Duration", theirDuration(j.FinishedAt.Sub(j.CreatedAt))})
	}
	rows = append(rows, [][2]string{
		{"User", j.Actor},
		{"Environment", j.Environment},
		{"Noop", map[bool]string{true: "true"}[j.Noop]},
		{"Nodes", fmt.Sprint(j.Nodes)},
		{"Target", targetsText(j.Targets)},
	}...)
	for _, row := range rows {
		if row[1] != "" {
			fmt.Fprintf(&text, "%-13s%s\n", row[0]+":", print.OneLine(row[1]))
		}
	}
	text.WriteString("\n")
	for _, r := range runs {
		text.WriteString(theirRun(j, r))
	}
	return text.String()
}

func theirDuration(d time.Duration) string {
	return fmt.Sprintf("%d sec", int(d.Round(time.Second)/time.Second))
}

// theirRun is one node of a job.
func theirRun(j api.Job, r api.JobRun) string {
	if j.Kind != "puppet" {
		if r.State == "succeeded" {
			return "Finished on node " + r.Node + "\n"
		}
		if !final(r.State) {
			return "Started on " + r.Node + " ...\n"
		}
		return "Failed on node " + r.Node + "\n  Error: " + print.OneLine(reasonOf(r)) + "\n"
	}
	switch {
	case !final(r.State):
		return "Started puppet run on " + r.Node + " ...\n"
	case r.State == "skipped":
		return "Skipped puppet run on " + r.Node + ": " + print.OneLine(r.Reason) + "\n"
	case r.State == "succeeded" || r.Puppet != nil:
		word := "Success!"
		if r.State != "succeeded" {
			word = "Failed!"
		}
		text := "Finished puppet run on " + r.Node + " - " + word + "\n"
		if r.Puppet != nil {
			text += theirReport(*r.Puppet)
		}
		return text
	}
	return "Error running puppet on " + r.Node + ": " + print.OneLine(reasonOf(r)) + "\n"
}

// theirReport is what a Puppet run did.
func theirReport(p api.JobRunPuppet) (text string) {
	if p.Environment != "" {
		text += "    Applied in environment " + p.Environment + "\n"
	}
	if len(p.Metrics) > 0 {
		m := p.Metrics
		unchanged := m["total"] - m["changed"] - m["failed"] - m["skipped"] - p.Pending
		text += fmt.Sprintf("    Resource events: %d failed  %d changed  %d unchanged  %d skipped  %d noop\n", m["failed"], m["changed"], max(0, unchanged),
			m["skipped"], p.Pending)
	}
	if p.Message != "" {
		text += "    Error: " + print.OneLine(p.Message) + "\n"
	}
	if p.Report != "" {
		text += "    Report: " + p.Report + " (tutti report show " + p.Report + ")\n"
	}
	return text
}

// theirProgress prints each run as it ends.
type theirProgress struct {
	out io.Writer
	job api.Job
}

func (p *theirProgress) ended(r api.JobRun) {
	if p.job.Kind == "puppet" {
		_, _ = io.WriteString(p.out, theirRun(p.job, r))
	}
}
func (*theirProgress) happened(api.Event)   {}
func (*theirProgress) note(string)          {}
func (p *theirProgress) draw(s jobStanding) { p.job = s.job }
func (*theirProgress) pause() time.Duration { return time.Minute }
func (*theirProgress) close(bool)           {}

// theirWatcher follows a job as puppet job run and puppet task run do.
func (n *newJob) theirWatcher(job api.Job) *watcher {
	begins := "Starting job ..."
	if job.Kind == "puppet" {
		begins = "Starting deployment ..."
	}
	_, _ = fmt.Fprintf(n.system.Out, "%s\nNew job ID: %s\nNodes: %d\n\n", begins, job.ID, job.Nodes)
	return &watcher{app: n.app, client: n.client, job: job, receive: theirOutput}
}

// theirOutput prints what the runs of a task wrote; Puppet runs were printed as they ended.
func theirOutput(ctx context.Context, w *watcher) error {
	if w.job.Kind == "puppet" {
		return nil
	}
	for _, r := range slices.SortedFunc(maps.Values(w.runs), func(a, b api.JobRun) int { return strings.Compare(a.Node, b.Node) }) {
		if _, err := io.WriteString(w.system.Out, theirRun(w.job, r)); err != nil {
			return err
		}
		if r.Output.Lines == 0 {
			continue
		}
		if err := printOutput(ctx, w.app, w.client, w.job.ID, r); err != nil {
			return err
		}
	}
	return nil
}

// theirVerdict ends a job with the lines that say how it went.
func (w *watcher) theirVerdict(code int) error {
	good, all := w.standing().counts["succeeded"], w.job.Nodes
	var text string
	switch {
	case w.job.Kind == "puppet":
		word := "Success!"
		if code != exitDone {
			word = "Failed!"
		}
		text = fmt.Sprintf("\n%s %s succeeded.\n", word, ofAll(good, all, "runs"))
	case code == exitDone:
		text = fmt.Sprintf("\nJob completed. %s succeeded.\n", ofAll(good, all, "nodes"))
	default:
		text = fmt.Sprintf("\nJob failed. %s failed, %s succeeded.\n", fault.Count(all-good, "node"), fault.Count(good, "node"))
	}
	if w.job.FinishedAt != nil {
		text += "Duration: " + theirDuration(w.job.FinishedAt.Sub(w.job.CreatedAt)) + "\n"
	}
	_, _ = io.WriteString(w.system.Out, text)
	if code == exitDone {
		return nil
	}
	return fmt.Errorf("%w: %w", errSaid, jobOutcome{code: code})
}

// printTheirTask is a task as puppet task show shows it.
func printTheirTask(to print.Printer, t api.Task) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s - %s\n\nUSAGE:\n$ puppet task run %s", t.Name, first(t.Description, "(no description)"), t.Name)
	if t.SupportsNoop {
		text.WriteString(" [--noop]")
	}
	for _, p := range t.Parameters {
		word := p.Name + "=<" + first(p.Type, "value") + ">"
		if !p.Required {
			word = "[" + word + "]"
		}
		text.WriteString(" " + word)
	}
	text.WriteString(" <[--nodes, -n <node-names>] | [--query, -q <'query'>]>\n")
	if len(t.Parameters) > 0 {
		text.WriteString("\nPARAMETERS:\n")
	}
	for _, p := range t.Parameters {
		fmt.Fprintf(&text, "- %s : %s\n", p.Name, first(p.Type, "Any"))
		if p.Description != "" {
			fmt.Fprintf(&text, "    %s\n", print.OneLine(p.Description))
		}
	}
	return to.Text(text.String())
}

// ofAll is a part and the whole as the tools write it, which is in the plural always.
func ofAll(part, all int, what string) string { return fmt.Sprintf("%d/%d ", part, all) + what }
