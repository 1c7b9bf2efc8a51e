package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

type jobWatchInput struct{ events bool }

var jobWatch = verb[jobWatchInput]{
	use: "watch JOB", short: "Follow a job to its end, and print what came out", args: oneJob,
	prints: results,
	long: `Follow a job to its end, and print what came out, as the command that started it does. A job that is over is
printed at once.

Of Puppet runs it shows what happens while it happens, on standard error; --events=false leaves that out.

` + exitHelp,
	example:  "  tutti job watch 12\n  tutti job watch 12 -o jsonl",
	complete: completeJob(true),
	flags: func(f flagSet, in *jobWatchInput) {
		f.BoolVar(&in.events, "events", true, "show what happens in Puppet runs while it happens")
	},
	run: func(ctx context.Context, c *call, in *jobWatchInput) error {
		client, err := c.client()
		if err != nil {
			return err
		}
		job, err := api.JobShow.Call(ctx, client, api.JobRequest{Job: c.args[0]})
		if err != nil {
			return err
		}
		return watchWith(ctx, &watcher{app: c.app, client: client, job: job, events: in.events && job.Kind == "puppet"})
	},
}

type jobStopInput struct{ kill bool }

var jobStop = verb[jobStopInput]{
	use: "stop JOB", short: "Begin no more runs of a job", args: oneJob,
	long: `Begin no more runs of a job; those that run go on to their end. With --kill they are ended, too, on nodes whose
agent can do that. A job that is over stays as it is.`,
	example:  "  tutti job stop 12\n  tutti job stop 12 --kill",
	complete: completeJob(true),
	flags:    func(f flagSet, in *jobStopInput) { f.BoolVar(&in.kill, "kill", false, "end the runs that go on, too") },
	run: func(ctx context.Context, c *call, in *jobStopInput) error {
		return showAnswer(ctx, c.app, api.JobStop, api.JobStopRequest{Job: c.args[0], Kill: in.kill}, func(to print.Printer, job api.Job) error {
			return to.Linef("Job %s is %s: %s", job.ID, job.State, countsText(job.Counts))
		})
	},
}

type jobOutputInput struct{ node string }

var jobOutput = verb[jobOutputInput]{
	use: "output JOB", short: "Print what the runs of a job wrote", args: oneJob,
	prints: results,
	long: `Print what the runs of a job wrote: once for all nodes with the same result. With --node it is the output of that
node as it was, standard output and error each to its own.`,
	example:  "  tutti job output 12\n  tutti job output 12 --node web-1.example.test\n  tutti job output 12 -o jsonl",
	complete: completeJob(false),
	flags: func(f flagSet, in *jobOutputInput) {
		f.StringVar(&in.node, "node", "", "only of this node")
		f.completes("node", completeNodes)
	},
	run: func(ctx context.Context, c *call, in *jobOutputInput) error {
		client, err := c.client()
		if err != nil {
			return err
		}
		switch {
		case c.output != "table":
			return listOutput(ctx, c.app, client, c.args[0], in.node)
		case in.node != "":
			return rawOutput(ctx, c.app, client, c.args[0], in.node)
		}
		runs, err := runsOf(ctx, client, api.Job{ID: c.args[0]}, "all")
		if err != nil {
			return err
		}
		return printGroups(ctx, c.app, client, c.args[0], runs)
	},
}

// rawOutput prints the output of a node as it was.
func rawOutput(ctx context.Context, a *app, client *api.Client, job, node string) error {
	return outputOf(ctx, client, job, node, func(line api.JobLine) error {
		to := a.system.Out
		if line.Stream == "stderr" {
			to = a.system.Err
		}
		end := "\n"
		if line.More {
			end = ""
		}
		text := line.Text
		if a.system.Width > 0 {
			text = printable(text)
		}
		_, err := fmt.Fprint(to, text+end)
		return err
	})
}

// listOutput prints lines of output for programs.
func listOutput(ctx context.Context, a *app, client *api.Client, job, node string) error {
	l, err := print.NewListing(a.printer(), print.Table[api.JobLine]{
		Columns: []string{"node", "stream", "number", "text"},
		Row:     func(l api.JobLine) []any { return []any{l.Node, l.Stream, numberText(l.Number), l.Text} },
		Name:    func(l api.JobLine) string { return l.Node },
		Empty:   "No output.",
	})
	if err != nil {
		return err
	}
	if err := outputOf(ctx, client, job, node, l.Add); err != nil {
		return err
	}
	return l.End()
}

// jobAndWords is a job, and any words behind it.
func jobAndWords(cmd *cobra.Command, args []string) error {
	return oneJob(cmd, args[:min(1, len(args))])
}

type jobRerunInput struct {
	o         orderFlags
	p         paramFlags
	all, noop bool
}

var jobRerun = verb[jobRerunInput]{
	use: "rerun JOB [NAME=VALUE]...", short: "Order a job once more, for the nodes on which it did not succeed",
	prints: results,
	args:   jobAndWords,
	long: `Order a job once more: for the nodes on which it did not succeed, or with --all for all of its nodes, as they were. What
flags and parameters say is changed. Parameters that were hidden must be given again.

` + exitHelp,
	example:  "  tutti job rerun 12\n  tutti job rerun 12 --all --concurrency 5\n  tutti job rerun 12 --ask password --wait-offline 1h",
	complete: completeJob(false),
	flags: func(f flagSet, in *jobRerunInput) {
		addPaceFlags(f, &in.o)
		addStartFlags(f, &in.o)
		in.p.add(f)
		f.StringVar(&in.o.description, "description", "", "why, for those who look at the job later; empty: as it was")
		f.BoolVar(&in.all, "all", false, "for all of its nodes, not only those without success")
		f.BoolVar(&in.noop, "noop", false, "change nothing, only say what would be changed; --noop=false: change it")
	},
	run: func(ctx context.Context, c *call, in *jobRerunInput) error {
		if err := in.o.check(); err != nil {
			return err
		}
		n, request, err := rerun(ctx, c.app, c.args[0], c.args[1:], in.p)
		if err != nil {
			return err
		}
		n.flags = in.o
		changed := c.changed
		if in.all {
			request.Only = "all"
		}
		if changed("concurrency") {
			request.Concurrency = &in.o.concurrency
		}
		if changed("timeout") {
			request.Timeout = new(api.WholeSeconds(in.o.timeout))
		}
		if changed("wait-offline") {
			request.WaitOffline = new(api.WholeSeconds(in.o.waitOffline))
		}
		if changed("noop") {
			request.Noop = &in.noop
		}
		request.MaxFailures, request.Description, request.SkipDenied = in.o.maxFailures.limit, in.o.description, in.o.skipDenied
		n.order.SkipDenied, n.order.WaitOffline = in.o.skipDenied, api.WholeSeconds(in.o.waitOffline)
		n.send = ordered(api.JobRerun, func(order api.JobOrder) api.JobRerunRequest {
			request.DryRun, request.Expect = order.DryRun, order.Expect
			return request
		})
		return n.run(ctx)
	},
}

// rerun looks at the job that is ordered again.
func rerun(ctx context.Context, a *app, id string, words []string, p paramFlags) (n newJob, request api.JobRerunRequest, err error) {
	n = newJob{app: a}
	request.Job = id
	if n.client, err = a.client(); err != nil {
		return n, request, err
	}
	job, err := api.JobShow.Call(ctx, n.client, api.JobRequest{Job: id})
	if err != nil {
		return n, request, err
	}
	n.does = jobText(job)
	if len(words)+len(p.params)+len(p.env)+len(p.ask) == 0 {
		return n, request, nil
	}
	if job.Kind != "task" {
		return n, request, usageError{fault.New(fault.Invalid, "job %s is no task and has no parameters", id)}
	}
	t, err := api.TaskShow.Call(ctx, n.client, api.TaskRequest{Environment: job.Environment, Task: job.Title})
	if err != nil {
		return n, request, err
	}
	given, err := readParams(a, words, p, secretsOfTask(t))
	if err != nil {
		return n, request, err
	}
	request.Texts = given.texts
	request.Params, err = given.json()
	return n, request, err
}
