package cli

import (
	"context"
	"encoding/json"
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
	result, err := resultOf(ctx, s.app, s.client, s.job, r)
	if err != nil {
		return err
	}
	return print.Line(s.system.Out, result)
}

// resultOf reads what a run wrote. A server that is away for a while is asked again, as
// for the job's events.
func resultOf(ctx context.Context, a *app, client *api.Client, job string, r api.JobRun) (result runResult, err error) {
	if r.Output.Lines == 0 {
		return runResult{JobRun: r}, nil
	}
	err = patiently(ctx, a, func() (err error) {
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

// patiently tries again what failed because the server is not there, and says so once.
func patiently(ctx context.Context, a *app, try func() error) error {
	for n := 0; ; n++ {
		err := try()
		if err == nil || fault.Of(err) != fault.Unavailable || n == retries {
			return err
		}
		if n == 0 {
			_, _ = fmt.Fprintln(a.system.Err, print.OneLine(explain(err)+"; the job goes on, trying again"))
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
	return api.All(ctx, client, api.JobOutput, func(after string) api.JobOutputRequest {
		return api.JobOutputRequest{Job: job, Node: node, After: after, Limit: pageSize}
	}, each)
}

// printOutput prints what a run wrote, set in. An object of JSON, as tasks write it, is
// shown as its members.
func printOutput(ctx context.Context, a *app, client *api.Client, job string, r api.JobRun) error {
	if r.Output.Bytes < maxObject {
		result, err := resultOf(ctx, a, client, job, r)
		if err != nil {
			return err
		}
		if members, ok := membersOf(result.Stdout); ok {
			result.Stdout = members
		}
		return a.printer().Text(setIn("  ", result.Stdout) + setIn("  stderr: ", unsaid(result.Stderr, runText(r))) + cutNote(r))
	}
	err := outputOf(ctx, client, job, r.Node, func(line api.JobLine) error {
		prefix := "  "
		if line.Stream == "stderr" {
			prefix = "  stderr: "
		}
		return a.printer().Text(setIn(prefix, line.Text))
	})
	if err == nil {
		_, err = io.WriteString(a.system.Out, cutNote(r))
	}
	return err
}

// unsaid is what Puppet wrote without the errors that stand above it, behind "Puppet says: ": agents put the first few there, each whole, in the order of
// the text.
func unsaid(text, above string) string {
	_, rest, _ := strings.Cut(above, "Puppet says: ")
	told := map[string]bool{}
	var b strings.Builder
	for line := range strings.Lines(text) {
		said, isError := strings.CutPrefix(strings.TrimSpace(line), "Error: ")
		if after, next := strings.CutPrefix(rest, said); isError && next && (after == "" || strings.HasPrefix(after, "; ")) {
			told[said], rest = true, strings.TrimPrefix(after, "; ")
		}
		if !isError || !told[said] {
			b.WriteString(line)
		}
	}
	return b.String()
}

func cutNote(r api.JobRun) string {
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
