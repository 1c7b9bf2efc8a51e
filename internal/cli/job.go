package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

var jobCommand = asking{noun{
	use: "job", short: "See, follow and stop what nodes were ordered to do",
	verbs: []declared{jobRun, jobList, jobPlan, jobShow, jobWatch, jobOutput, jobStop, jobRerun},
}}

// oneJob wants the id of a job.
func oneJob(cmd *cobra.Command, args []string) error {
	if err := exactly(1)(cmd, args); err != nil {
		return err
	}
	if id, err := strconv.ParseInt(args[0], 10, 64); err != nil || id <= 0 {
		return usageError{fault.New(fault.Invalid, "a job's id is a number such as 12, not %.80q; see `tutti job list`", args[0])}
	}
	return nil
}

// oneJobOrNone wants the id of a job, or nothing.
func oneJobOrNone(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return oneJob(cmd, args)
}

// shownJobs is how many jobs are listed if nobody says.
const shownJobs = 50

type jobListInput struct {
	request api.JobListRequest
	limit   int
}

var jobList = verb[jobListInput]{
	use: "list", short: "List jobs, the newest first",
	prints:  aList,
	example: "  tutti job list\n  tutti job list --state active\n  tutti job list --kind task --by ann --limit 200 -o json\n  tutti job list --node web-1.example.test",
	flags: func(f flagSet, in *jobListInput) {
		f.StringVar(&in.request.State, "state", "", "only jobs that are queued, running, stopping, finished, failed or stopped; or active: that go on")
		f.StringVar(&in.request.Kind, "kind", "", "only jobs of this kind: puppet, task, action, command, script, file")
		f.StringVar(&in.request.Actor, "by", "", "only jobs that this user ordered")
		f.StringVar(&in.request.Node, "node", "", "only jobs with a run on this node")
		f.StringVar(&in.request.Task, "task", "", "only jobs of this task")
		f.IntVar(&in.limit, "limit", shownJobs, "how many")
		f.offers("state", "active", "queued", "running", "stopping", "finished", "failed", "stopped")
		f.offers("kind", "puppet", "task", "action", "command", "script", "file")
		f.completes("node", completeNodes)
	},
	run: listJobs,
}

func listJobs(ctx context.Context, c *call, in *jobListInput) error {
	if in.limit < 1 {
		return usageError{fault.New(fault.Invalid, "--limit is a number of jobs, 1 or more, not %d", in.limit)}
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	table := jobTable()
	if c.tools.name != "" {
		table = theirJobTable()
	}
	l, err := print.NewListing(c.printer(), table)
	if err != nil {
		return err
	}
	left := in.limit
	for after := ""; left > 0; {
		page := in.request
		page.After, page.Limit = after, min(left, pageSize)
		jobs, err := api.JobList.Call(ctx, client, page)
		if err != nil {
			return err
		}
		for _, job := range jobs.Items {
			if err := l.Add(job); err != nil {
				return err
			}
		}
		if left -= len(jobs.Items); jobs.Next == "" {
			break
		}
		after = jobs.Next
	}
	return l.End()
}

func jobTable() print.Table[api.Job] {
	return print.Table[api.Job]{
		Columns: []string{"id", "state", "what", "nodes", "succeeded", "created", "by", "description"},
		Spare:   []string{"description", "by", "created", "succeeded"},
		Row: func(j api.Job) []any {
			return []any{j.ID, print.State(j.State), jobText(j), j.Nodes, j.Counts["succeeded"], j.CreatedAt, j.Actor, j.Description}
		},
		Name:  func(j api.Job) string { return j.ID },
		Empty: "No such jobs. `tutti run`, `tutti task run` and `tutti command run` make one.",
	}
}

// jobText is what a job does.
func jobText(j api.Job) string {
	text := j.Kind
	if j.Title != "" {
		text += " " + j.Title
	}
	if j.Noop {
		text += " (noop)"
	}
	return text
}

// manyRuns is from how many runs on only those are listed that did not succeed.
const manyRuns = 50

type jobShowInput struct{ state string }

var jobShow = verb[jobShowInput]{
	use: "show [JOB]", short: "Show a job and its runs; without one, list jobs", args: oneJobOrNone,
	prints: aList,
	long: `Show a job and its runs, or list the newest 50 jobs if none is named. Of a job with more than 50 runs, those are shown that are not over
or did not succeed. --runs chooses
others: a state, final, failing (over, without success) or all.`,
	example:  "  tutti job show 12\n  tutti job show 12 --runs failing\n  tutti job show 12 -o json",
	complete: completeJob(false),
	flags: func(f flagSet, in *jobShowInput) {
		f.StringVar(&in.state, "runs", "", "which runs to list: all, final, failing, or a state such as offline")
		f.offers("runs", append([]string{"all", "final", "failing"}, stateOrder...)...)
	},
	run: func(ctx context.Context, c *call, in *jobShowInput) error {
		if len(c.args) == 0 {
			return listJobs(ctx, c, &jobListInput{limit: shownJobs})
		}
		client, err := c.client()
		if err != nil {
			return err
		}
		job, err := api.JobShow.Call(ctx, client, api.JobRequest{Job: c.args[0]})
		if err != nil {
			return err
		}
		if c.printer().ForPrograms() && in.state == "" {
			return c.printer().Thing(job)
		}
		runs, err := runsOf(ctx, client, job, in.state)
		if err != nil {
			return err
		}
		if c.tools.name != "" && c.output == "table" {
			return c.printer().Text(theirJobText(job, runs))
		}
		if c.output == "table" {
			if err := printJob(c.printer(), job); err != nil {
				return err
			}
		}
		return print.List(c.printer(), runs, runTable())
	},
}

// runsOf reads runs of a job; without a state, those that matter.
func runsOf(ctx context.Context, client *api.Client, job api.Job, state string) (runs []api.JobRun, err error) {
	states := []string{state}
	switch {
	case state == "all" || state == "" && job.Nodes <= manyRuns:
		states = []string{""}
	case state == "":
		states = []string{"waiting", "sent", "running", "failing"}
	}
	for _, s := range states {
		err = api.All(ctx, client, api.JobRuns, func(after string) api.JobRunsRequest {
			return api.JobRunsRequest{Job: job.ID, State: s, After: after, Limit: pageSize}
		}, func(r api.JobRun) error {
			runs = append(runs, r)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(runs, func(a, b api.JobRun) int { return strings.Compare(a.Node, b.Node) })
	return runs, nil
}

func printJob(to print.Printer, j api.Job) error {
	now := time.Now()
	rows := [][]string{
		{"Job", j.ID + ", " + jobText(j)},
		{"State", strings.TrimSuffix(j.State+": "+j.Reason, ": ")},
		{"Ordered", print.Ago(j.CreatedAt, now) + " by " + j.Actor},
		{"Nodes", fmt.Sprintf("%d: %s", j.Nodes, countsText(j.Counts))},
		{"Targets", targetsText(j.Targets)},
	}
	for _, more := range [][]string{
		{"Description", j.Description},
		{"Environment", j.Environment},
		{"Version", short(j.Version)},
		{"Order", orderedText(string(j.Order))},
		{"Rerun of", j.RerunOf},
		{"Order of runs", orderText(j.Ordered)},
		{"Concurrency", numberText(j.Concurrency)},
		{"Max failures", numberOf(j.MaxFailures)},
		{"Timeout", secondsText(j.Timeout)},
		{"Wait offline", secondsText(j.WaitOffline)},
	} {
		if more[1] != "" {
			rows = append(rows, more)
		}
	}
	if j.FinishedAt != nil {
		rows = append(rows, []string{"Ended", print.AgoOf(j.FinishedAt, now) + ", after " + print.Duration(j.FinishedAt.Sub(j.CreatedAt))})
	}
	if err := to.Rows(nil, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(to.Out)
	return err
}

func numberText(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func secondsText(n int64) string {
	if n == 0 {
		return ""
	}
	return print.Duration(time.Duration(n) * time.Second)
}

func orderText(ordered bool) string {
	if ordered {
		return "each node waits for those that it needs"
	}
	return ""
}

// orderedText is what an order has besides its kind; empty if that is nothing.
func orderedText(order string) string {
	if order == "{}" {
		return ""
	}
	return order
}

// targetsText is which nodes were asked for.
func targetsText(t api.JobTargets) string {
	var words []string
	if t.All {
		words = append(words, "all nodes")
	}
	if len(t.Nodes) > 0 {
		words = append(words, someNames(t.Nodes, shownNames))
	}
	for _, named := range []struct{ what, name string }{{"group", t.Group}, {"query", t.Query}, {"application", t.App}} {
		if named.name != "" {
			words = append(words, named.what+" "+named.name)
		}
	}
	text := strings.Join(words, "; ")
	if len(t.Exclude) > 0 {
		text += "; not " + someNames(t.Exclude, shownNames)
	}
	if t.Filter != nil {
		text += filterText(*t.Filter)
	}
	if t.Limit != "" {
		text += "; at most " + t.Limit
	}
	return text
}

// filterText is conditions as the flags that gave them.
func filterText(f api.NodeFilter) string {
	text, selected := "", []string(nil)
	if f.Select != "" {
		selected = []string{f.Select}
	}
	for _, flag := range []struct {
		name   string
		values []string
	}{{"fact", f.Facts}, {"class", f.Classes}, {"module", f.Modules}, {"name", f.Names}, {"with", f.Words}, {"select", selected}} {
		for _, value := range flag.values {
			text += "; --" + flag.name + " " + value
		}
	}
	return text
}
