package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/sim"
)

// chaosJob is a job that was ordered.
type chaosJob struct {
	id, label string
	targets   []string
	recorded  bool // nodes leave a trace of its executions
}

// A real agent's execution leaves a file MARKS/LABEL.NODE.RANDOM; simulated nodes pass over
// what they do not know, and end with the same exit code.
const (
	markScript = "#!/bin/sh\nmktemp \"$CHAOS_MARKS/$2.$CHAOS_NODE.XXXXXXXX\" >/dev/null; sleep 0.3; exit $1\n"
	markTask   = "#!/bin/sh\nmktemp \"$CHAOS_MARKS/$PT_label.$CHAOS_NODE.XXXXXXXX\" >/dev/null; sleep $PT_sleep; exit $PT_exitcode\n"
	taskParams = `{"description": "leave a mark", "input_method": "both", "parameters": {
		"label": {"type": "String"}, "sleep": {"type": "Numeric"}, "exitcode": {"type": "Integer"}}}`
)

// deploy gives the server the task and the script.
func (c *chaos) deploy(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	tasks := filepath.Join(dir, "modules", "chaos", "tasks")
	if err := os.MkdirAll(tasks, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"mark.sh": markTask, "mark.json": taskParams} {
		if err := os.WriteFile(filepath.Join(tasks, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.server.tutti(t, "code", "deploy", "--no-check", "production", dir)
	uploaded, err := api.JobUpload.Send(t.Context(), c.client, strings.NewReader(markScript))
	if err != nil {
		t.Fatal(err)
	}
	c.script = uploaded.Digest
}

// simulated is the nodes that the i-th job is for: all, or every third one of them where the race
// detector makes a run cost ten times as much.
func (c *chaos) simulated(i int) []string {
	if !raceEnabled {
		return c.names
	}
	var third []string
	for n := i % 3; n < len(c.names); n += 3 {
		third = append(third, c.names[n])
	}
	return third
}

// order orders all jobs, while the server goes and comes.
func (c *chaos) order(t *testing.T) {
	t.Helper()
	for i := range chaosJobs {
		label := fmt.Sprintf("chaos-%02d", i)
		simulated := c.simulated(i)
		all := slices.Clone(simulated)
		for _, a := range c.agents {
			all = append(all, a.name)
		}
		j := chaosJob{label: label, targets: all, recorded: true}
		// The timeout is far more than anything takes: on a slow machine answers queue up, and are true all the same.
		common := api.JobOrder{Targets: api.JobTargets{Nodes: all}, WaitOffline: 120, Timeout: 300, Description: label}
		exit := i % 3
		var order func() (api.JobStarted, error)
		switch i % 5 {
		case 0:
			line := fmt.Sprintf(`mktemp "$CHAOS_MARKS/%s.$CHAOS_NODE.XXXXXXXX" >/dev/null; sleep 0.3; exit %d`, label, exit)
			order = ordering(t, c.client, api.JobCommand, api.JobCommandRequest{JobOrder: common, Command: line})
		case 1:
			params := fmt.Sprintf(`{"label": %q, "sleep": 0.5, "exitcode": %d}`, label, exit)
			order = ordering(t, c.client, api.JobTask, api.JobTaskRequest{JobOrder: common, Task: "chaos::mark", Params: json.RawMessage(params)})
		case 2:
			common.Concurrency = 60
			order = ordering(t, c.client, api.JobScript, api.JobScriptRequest{
				JobOrder: common, Name: "mark.sh", Digest: c.script, Arguments: []string{fmt.Sprint(exit), label},
			})
		case 3: // Puppet would have to be set up on the real ones
			j.targets = simulated
			common.Targets.Nodes = simulated
			order = ordering(t, c.client, api.JobPuppet, api.JobPuppetRequest{JobOrder: common})
		case 4:
			j.recorded = false
			sent := filepath.Join(c.marks, "sent")
			order = ordering(t, c.client, api.JobFile, api.JobFileRequest{JobOrder: common, Files: []api.JobFileEntry{
				{Kind: "directory", Destination: sent}, {Destination: filepath.Join(sent, label), Digest: c.script},
			}})
		}
		if j.id = c.orderOnce(t, order, label); j.id == "" {
			return
		}
		c.mu.Lock()
		c.jobs = append(c.jobs, j)
		c.mu.Unlock()
		if i == 12 { // what runs of an earlier one is killed, the rest never begins
			c.halt(t, c.jobs[i-2].id)
		}
	}
}

// ordering is an order that can be given again.
func ordering[Request any](t *testing.T, client *api.Client, op api.Op[Request, api.JobStarted], request Request) func() (api.JobStarted, error) {
	t.Helper()
	return func() (api.JobStarted, error) { return op.Call(t.Context(), client, request) }
}

// orderOnce orders a job, and when the answer is lost looks whether it is there.
func (c *chaos) orderOnce(t *testing.T, order func() (api.JobStarted, error), label string) string {
	t.Helper()
	for {
		started, err := order()
		if err == nil {
			return started.Job.ID
		}
		if !again(err) || t.Context().Err() != nil { // the story is over
			t.Errorf("order %s: %v", label, err)
			return ""
		}
		var jobs api.List[api.Job]
		c.patiently(t, func(ctx context.Context) (err error) {
			jobs, err = api.JobList.Call(ctx, c.client, api.JobListRequest{Limit: 100})
			return err
		})
		for _, job := range jobs.Items {
			if job.Description == label {
				return job.ID
			}
		}
	}
}

// halt stops a job that runs, with what it runs.
func (c *chaos) halt(t *testing.T, id string) {
	t.Helper()
	c.patiently(t, func(ctx context.Context) error {
		_, err := api.JobStop.Call(ctx, c.client, api.JobStopRequest{Job: id, Kill: true})
		return err
	})
}

// patiently asks until the server is there.
func (c *chaos) patiently(t *testing.T, ask func(context.Context) error) {
	t.Helper()
	var err error
	if !within(patience, func() bool { err = ask(t.Context()); return err == nil || !again(err) || t.Context().Err() != nil }) || err != nil {
		t.Errorf("the server is not there: %v", err)
	}
}

// again says whether an error means that the server was not there.
func again(err error) bool {
	return fault.Of(err) == fault.Unavailable && !errors.Is(err, context.Canceled)
}

// judge compares every row with what its node did.
func (c *chaos) judge(t *testing.T) {
	t.Helper()
	states := map[string]int{}
	for _, j := range c.jobs {
		job, counts := c.show(t, j.id), map[string]int{}
		left := map[string]bool{}
		for _, name := range j.targets {
			left[name] = true
		}
		for _, run := range c.runs(t, j.id) {
			counts[run.State]++
			states[run.State]++
			if !left[run.Node] {
				t.Errorf("job %s has a second row, or one too many, for %s", j.id, run.Node)
			}
			delete(left, run.Node)
			if wrong := c.wrong(j, run); wrong != "" {
				t.Errorf("job %s (%s): %s; reason: %s", j.id, j.label, wrong, run.Reason)
			}
		}
		if len(left) > 0 {
			t.Errorf("job %s: %d targets have no row", j.id, len(left))
		}
		same(t, "the counters of job "+j.id+" and its rows", counts, job.Counts)
	}
	executed, _ := c.fleet.Recorder().Totals()
	t.Logf("%d jobs, %d executions on simulated nodes, runs ended %v", len(c.jobs), executed, states)
	if len(c.jobs) != chaosJobs || states["succeeded"] < chaosNodes || states["failed"] < chaosNodes {
		t.Errorf("%d jobs with %v: the chaos has shown nothing", len(c.jobs), states)
	}
}

// wrong says what is wrong with a row; empty: nothing.
func (c *chaos) wrong(j chaosJob, run api.JobRun) string {
	did := sim.Execution{Node: run.Node, Transaction: run.Transaction}
	verdict := sim.Verdict{Execution: did, State: run.State, ExitCode: run.ExitCode}
	if run.State == "lost" && strings.HasPrefix(run.Reason, "killed by ") {
		verdict.State = "killed" // the server gives up a killed run whose node is away, and says so
	}
	switch {
	case !sim.Final(run.State):
		return run.Node + " is not over: " + run.State
	case !j.recorded:
		return ""
	case slices.Contains(c.names, run.Node):
		return sim.Judge(verdict, c.fleet.Recorder().Count(did))
	}
	marks, _ := filepath.Glob(filepath.Join(c.marks, j.label+"."+run.Node+".*"))
	count := sim.Count{Begun: len(marks)}
	if run.ExitCode != nil { // a mark does not tell how it ended
		count.ExitCode = *run.ExitCode
	}
	return sim.Judge(verdict, count)
}

// runs reads all rows of a job.
func (c *chaos) runs(t *testing.T, id string) []api.JobRun {
	t.Helper()
	var all []api.JobRun
	request := api.JobRunsRequest{Job: id, Limit: 1000}
	for {
		page, err := api.JobRuns.Call(t.Context(), c.client, request)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Items...)
		if request.After = page.Next; page.Next == "" {
			return all
		}
	}
}
