package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

// report prints a job that is over: with -o json and -o yaml all that is known of it, else its
// runs, those with the same result together.
func (w *watcher) report(ctx context.Context) error {
	runs := sortedRuns(w.runs)
	switch w.output {
	case "jsonl":
		return nil // they are printed already
	case "json":
		return w.reportJSON(ctx, runs)
	case "yaml":
		return w.reportYAML(ctx, runs)
	case "csv", "name":
		return print.List(w.printer(), runs, runTable())
	}
	return printGroups(ctx, w.app, w.client, w.job.ID, runs)
}

func sortedRuns(runs map[string]api.JobRun) []api.JobRun {
	return slices.SortedFunc(maps.Values(runs), func(a, b api.JobRun) int { return cmp.Compare(a.Node, b.Node) })
}

// runTable is runs for people, without what they wrote.
func runTable() print.Table[api.JobRun] {
	return print.Table[api.JobRun]{
		Columns: []string{"node", "state", "exit code", "took", "reason"},
		Spare:   []string{"took", "exit code"},
		Row: func(r api.JobRun) []any {
			return []any{r.Node, print.State(stateText(r.State)), r.ExitCode, runTook(r), reasonOf(r)}
		},
		Name:  func(r api.JobRun) string { return r.Node },
		Empty: "No such runs.",
	}
}

func numberOf(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

// reasonOf is why a run is as it is; of a Puppet run, what it did.
func reasonOf(r api.JobRun) string {
	if r.Puppet == nil || r.State != "succeeded" {
		return r.Reason
	}
	return puppetText(*r.Puppet)
}

// showJob asks for the job: events do not have all of it.
func (w *watcher) showJob(ctx context.Context) error {
	return patiently(ctx, w.app, func() (err error) {
		w.job, err = api.JobShow.Call(ctx, w.client, api.JobRequest{Job: w.job.ID})
		return err
	})
}

// reportYAML prints what reportJSON does.
func (w *watcher) reportYAML(ctx context.Context, runs []api.JobRun) error {
	if err := w.showJob(ctx); err != nil {
		return err
	}
	if err := w.printer().Thing(map[string]api.Job{"job": w.job}); err != nil {
		return err
	}
	begin := "runs:\n"
	if len(runs) == 0 {
		begin = "runs: []\n"
	}
	if _, err := io.WriteString(w.system.Out, begin); err != nil {
		return err
	}
	for _, r := range runs {
		result, err := resultOf(ctx, w.app, w.client, w.job.ID, r)
		if err != nil {
			return err
		}
		if err := w.printer().Thing([]runResult{result}); err != nil { // a piece of the list
			return err
		}
	}
	return nil
}

// reportJSON prints the job and its runs as one object, run by run.
func (w *watcher) reportJSON(ctx context.Context, runs []api.JobRun) error {
	if err := w.showJob(ctx); err != nil {
		return err
	}
	if err := printPart(w.printer(), "{\n  \"job\": ", w.job, "  "); err != nil {
		return err
	}
	begin := ",\n  \"runs\": ["
	for _, r := range runs {
		result, err := resultOf(ctx, w.app, w.client, w.job.ID, r)
		if err != nil {
			return err
		}
		if err := printPart(w.printer(), begin+"\n    ", result, "    "); err != nil {
			return err
		}
		begin = ","
	}
	if len(runs) == 0 {
		_, _ = io.WriteString(w.system.Out, begin)
	}
	_, err := io.WriteString(w.system.Out, "\n  ]\n}\n")
	return err
}

// printPart writes a piece of a document of JSON.
func printPart(to print.Printer, before string, value any, indent string) error {
	text, err := print.Marshal(value)
	if err != nil {
		return err
	}
	b := bytes.NewBufferString(before)
	if err := json.Indent(b, text, indent, "  "); err != nil {
		return err
	}
	_, err = b.WriteTo(to.Out)
	return err
}

// sameResult is what runs must have in common to be shown as one.
type sameResult struct {
	state, status, reason, output string
	exit                          int
}

func resultKey(r api.JobRun) sameResult {
	key := sameResult{state: r.State, output: r.Output.Digest}
	key.reason = strings.ReplaceAll(r.Reason, r.Transaction, "") // agents name it; it is no two runs' the same
	if r.ExitCode != nil {
		key.exit = *r.ExitCode
	}
	if r.Puppet != nil {
		key.status = puppetText(*r.Puppet)
		if r.Puppet.Report != "" { // each run has its own
			key.reason = strings.ReplaceAll(key.reason, short(r.Puppet.Report), "")
		}
	}
	if r.State == "succeeded" {
		key.reason = ""
	}
	return key
}

// grouped puts runs with the same result together: those that succeeded first, then by
// how many they are.
func grouped(runs []api.JobRun) [][]api.JobRun {
	places := map[sameResult]int{}
	var groups [][]api.JobRun
	for _, r := range runs {
		key := resultKey(r)
		i, known := places[key]
		if !known {
			i = len(groups)
			places[key] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	slices.SortStableFunc(groups, func(a, b []api.JobRun) int {
		return cmp.Or(cmp.Compare(stateRank(a[0].State), stateRank(b[0].State)), cmp.Compare(len(b), len(a)))
	})
	return groups
}

func stateRank(state string) int { return slices.Index(stateOrder, state) }

// printGroups prints the runs, and what they wrote, once for all that wrote the same.
func printGroups(ctx context.Context, a *app, client *api.Client, job string, runs []api.JobRun) error {
	for _, group := range grouped(runs) {
		if _, err := fmt.Fprintln(a.system.Out, print.OneLine(groupHead(group))); err != nil {
			return err
		}
		if group[0].Output.Lines == 0 {
			continue
		}
		if err := printOutput(ctx, a, client, job, group[0]); err != nil {
			return err
		}
	}
	return nil
}

// headNames is how many nodes the head of a group names.
const headNames = 8

func groupHead(group []api.JobRun) string {
	if len(group) == 1 {
		return group[0].Node + ": " + runText(group[0])
	}
	names := make([]string, len(group))
	for i, r := range group {
		names[i] = r.Node
	}
	return fmt.Sprintf("same on %s: %s: %s", fault.Count(len(group), "node"), someNames(names, headNames), runText(group[0]))
}
