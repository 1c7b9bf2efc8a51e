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
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
)

// runResult is a run with what it wrote, for programs.
type runResult struct {
	api.JobRun
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"`
}

// runStream prints each run as one line of JSON.
type runStream struct {
	*app
	client *api.Client
	job    string
}

func (s *runStream) print(ctx context.Context, r api.JobRun) error {
	result, err := resultOf(ctx, s.client, s.job, r)
	if err != nil {
		return err
	}
	return encodeJSON(s.system.Out, result)
}

// resultOf reads what a run wrote. A server that is away for a while is asked again, as
// for the job's events.
func resultOf(ctx context.Context, client *api.Client, job string, r api.JobRun) (result runResult, err error) {
	if r.Output.Lines == 0 {
		return runResult{JobRun: r}, nil
	}
	err = patiently(ctx, func() (err error) {
		result, err = readResult(ctx, client, job, r)
		return err
	})
	return result, err
}

// The patience with a server that is away.
const (
	retryPause = 500 * time.Millisecond
	retries    = 240
)

// patiently tries again what failed because the server is not there.
func patiently(ctx context.Context, try func() error) error {
	for n := 0; ; n++ {
		err := try()
		if err == nil || fault.Of(err) != fault.Unavailable || n == retries {
			return err
		}
		pause := time.NewTimer(retryPause)
		select {
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		case <-pause.C:
		}
	}
}

func readResult(ctx context.Context, client *api.Client, job string, r api.JobRun) (runResult, error) {
	result := runResult{JobRun: r}
	var texts [2]strings.Builder
	err := outputOf(ctx, client, job, r.Node, func(line api.JobLine) error {
		to := &texts[0]
		if line.Stream == "stderr" {
			to = &texts[1]
		}
		to.WriteString(line.Text)
		if !line.More {
			to.WriteByte('\n')
		}
		return nil
	})
	result.Stdout, result.Stderr = texts[0].String(), texts[1].String()
	return result, err
}

// outputOf hands over the lines of a run; those of all runs for an empty node.
func outputOf(ctx context.Context, client *api.Client, job, node string, each func(api.JobLine) error) error {
	return api.All(ctx, client, api.JobOutput, func(after string) any {
		return api.JobOutputRequest{Job: job, Node: node, After: after, Limit: 1000}
	}, each)
}

// report prints a job that is over: with -o json all that is known of it, else its runs,
// those with the same result together.
func (w *watcher) report(ctx context.Context) error {
	runs := sortedRuns(w.runs)
	switch w.output {
	case "jsonl":
		return nil // they are printed already
	case "json":
		return w.reportJSON(ctx, runs)
	case "csv", "name":
		return printList(w.app, runs, runTable())
	}
	return w.printGroups(ctx, w.client, w.job.ID, runs)
}

func sortedRuns(runs map[string]api.JobRun) []api.JobRun {
	return slices.SortedFunc(maps.Values(runs), func(a, b api.JobRun) int { return cmp.Compare(a.Node, b.Node) })
}

// runTable is runs for people, without what they wrote.
func runTable() table[api.JobRun] {
	return table[api.JobRun]{
		columns: []string{"node", "state", "exit code", "took", "reason"},
		row: func(r api.JobRun) []string {
			return []string{r.Node, stateText(r.State), numberOf(r.ExitCode), strings.Trim(tookText(r), " ()"), reasonOf(r)}
		},
		name:  func(r api.JobRun) string { return r.Node },
		empty: "No such runs.",
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
	return r.Puppet.Status
}

// reportJSON prints the job and its runs as one object, run by run.
func (w *watcher) reportJSON(ctx context.Context, runs []api.JobRun) error {
	err := patiently(ctx, func() error { // events do not have all of it
		return w.client.Call(ctx, api.JobShow, api.JobRequest{Job: w.job.ID}, &w.job)
	})
	if err != nil {
		return err
	}
	if err := w.part("{\n  \"job\": ", w.job, "  "); err != nil {
		return err
	}
	begin := ",\n  \"runs\": ["
	for _, r := range runs {
		result, err := resultOf(ctx, w.client, w.job.ID, r)
		if err != nil {
			return err
		}
		if err := w.part(begin+"\n    ", result, "    "); err != nil {
			return err
		}
		begin = ","
	}
	if len(runs) == 0 {
		_, _ = io.WriteString(w.system.Out, begin)
	}
	_, err = io.WriteString(w.system.Out, "\n  ]\n}\n")
	return err
}

// part writes a piece of a document of JSON.
func (a *app) part(before string, value any, indent string) error {
	text, err := marshal(value)
	if err != nil {
		return err
	}
	b := bytes.NewBufferString(before)
	if err := json.Indent(b, text, indent, "  "); err != nil {
		return err
	}
	_, err = b.WriteTo(a.system.Out)
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
		key.status = r.Puppet.Status
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
func (a *app) printGroups(ctx context.Context, client *api.Client, job string, runs []api.JobRun) error {
	for _, group := range grouped(runs) {
		if _, err := fmt.Fprintln(a.system.Out, oneLine(groupHead(group))); err != nil {
			return err
		}
		if group[0].Output.Lines == 0 {
			continue
		}
		if err := a.printOutput(ctx, client, job, group[0]); err != nil {
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
	return fmt.Sprintf("same on %d nodes: %s: %s", len(group), someNames(names, headNames), runText(group[0]))
}

// printOutput prints what a run wrote, set in. An object of JSON, as tasks write it, is
// shown as its members.
func (a *app) printOutput(ctx context.Context, client *api.Client, job string, r api.JobRun) error {
	if r.Output.Bytes < maxObject {
		result, err := resultOf(ctx, client, job, r)
		if err != nil {
			return err
		}
		if members, ok := membersOf(result.Stdout); ok {
			result.Stdout = members
		}
		_, err = io.WriteString(a.system.Out, setIn("  ", result.Stdout)+setIn("  stderr: ", result.Stderr)+cutNote(r, job))
		return err
	}
	err := outputOf(ctx, client, job, r.Node, func(line api.JobLine) error {
		prefix := "  "
		if line.Stream == "stderr" {
			prefix = "  stderr: "
		}
		_, err := io.WriteString(a.system.Out, setIn(prefix, line.Text))
		return err
	})
	if err == nil {
		_, err = io.WriteString(a.system.Out, cutNote(r, job))
	}
	return err
}

func cutNote(r api.JobRun, _ string) string {
	if !r.Output.Cut {
		return ""
	}
	return "  (there was more, which is not kept)\n"
}

// maxObject is how much output is looked at for an object of JSON, in bytes.
const maxObject = 64 << 10

// membersOf is an object of JSON as "name: value" lines.
func membersOf(text string) (string, bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &members) != nil || members == nil {
		return "", false
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(members)) {
		var plain string
		switch {
		case json.Unmarshal(members[name], &plain) != nil:
			plain = string(members[name])
		case name == "_output":
			b.WriteString(strings.TrimSuffix(plain, "\n") + "\n")
			continue
		}
		b.WriteString(name + ": " + plain + "\n")
	}
	return b.String(), true
}

// setIn puts prefix before each line, and keeps what is no text from the terminal.
func setIn(prefix, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(prefix + printable(strings.TrimRight(line, "\r\n")) + "\n")
	}
	return b.String()
}

// printable leaves out control characters, which come from nodes; tabs stay.
func printable(line string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && (r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0) {
			return -1
		}
		return r
	}, line)
}

// jobOutcome is a job that did not go well on all of its nodes.
type jobOutcome struct {
	code int
	text string
}

func (o jobOutcome) Error() string { return o.text }

// verdict is nil for a job that succeeded everywhere.
func (w *watcher) verdict() error {
	counts := w.standing().counts
	took := ""
	if w.job.FinishedAt != nil {
		took = " after " + durationText(w.job.FinishedAt.Sub(w.job.CreatedAt).Abs().Round(time.Millisecond))
	}
	summary := fmt.Sprintf("job %s %s%s: %s", w.job.ID, w.job.State, took, countsText(counts))
	code := outcomeCode(w.job.State, counts)
	if code == exitDone {
		w.hint("%s", strings.ToUpper(summary[:1])+summary[1:])
		return nil
	}
	if w.job.Reason != "" {
		summary += "; " + w.job.Reason
	}
	return jobOutcome{code, summary + "; once more for those that did not succeed: tutti job rerun " + w.job.ID}
}

// outcomeCode is the exit code of a job that is over. Failures go before nodes that said
// no, and those before nodes that did not answer in time.
func outcomeCode(state string, counts map[string]int) int {
	late := counts["timed_out"] + counts["offline"]
	refused := counts["refused"]
	failed := counts["failed"] + counts["errored"] + counts["lost"] + counts["killed"]
	switch {
	case failed > 0:
		return exitSomeFailed
	case refused > 0 && late == 0:
		return exitRefused
	case late > 0 && refused == 0:
		return exitLate
	case refused+late+counts["skipped"] > 0 || state != "finished":
		return exitSomeFailed
	}
	return exitDone
}
