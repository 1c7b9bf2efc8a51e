package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

func (a *app) jobWatch() *cobra.Command {
	events := true
	cmd := &cobra.Command{
		Use: "watch JOB", Short: "Follow a job to its end, and print what came out", Args: oneJob,
		Long: `Follow a job to its end, and print what came out, as the command that started it does. A job that is over is
printed at once.

Of Puppet runs it shows what happens while it happens, on standard error; --events=false leaves that out.

` + exitHelp,
		Example:           "  tutti job watch 12\n  tutti job watch 12 -o jsonl",
		ValidArgsFunction: completeJob(a, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.client()
			if err != nil {
				return err
			}
			job, err := api.JobShow.Call(cmd.Context(), client, api.JobRequest{Job: args[0]})
			if err != nil {
				return err
			}
			return watchWith(a, cmd.Context(), client, job, events && job.Kind == "puppet")
		},
	}
	cmd.Flags().BoolVar(&events, "events", true, "show what happens in Puppet runs while it happens")
	return cmd
}

func (a *app) jobStop() *cobra.Command {
	var kill bool
	cmd := &cobra.Command{
		Use: "stop JOB", Short: "Begin no more runs of a job", Args: oneJob,
		Long: `Begin no more runs of a job; those that run go on to their end. With --kill they are ended, too, on nodes whose
agent can do that. A job that is over stays as it is.`,
		Example:           "  tutti job stop 12\n  tutti job stop 12 --kill",
		ValidArgsFunction: completeJob(a, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			job, err := ask(cmd.Context(), a, api.JobStop, api.JobStopRequest{Job: args[0], Kill: kill})
			if err != nil {
				return err
			}
			if a.printer().AsJSON() {
				return a.printer().JSON(job)
			}
			_, err = fmt.Fprintf(a.system.Out, "Job %s is %s: %s\n", job.ID, job.State, countsText(job.Counts))
			return err
		},
	}
	cmd.Flags().BoolVar(&kill, "kill", false, "end the runs that go on, too")
	return cmd
}

func (a *app) jobOutput() *cobra.Command {
	var node string
	cmd := &cobra.Command{
		Use: "output JOB", Short: "Print what the runs of a job wrote", Args: oneJob,
		Long: `Print what the runs of a job wrote: once for all nodes with the same result. With --node it is the output of that
node as it was, standard output and error each to its own.`,
		Example:           "  tutti job output 12\n  tutti job output 12 --node web-1.example.test\n  tutti job output 12 -o jsonl",
		ValidArgsFunction: completeJob(a, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.client()
			if err != nil {
				return err
			}
			switch {
			case a.output != "table":
				return listOutput(a, cmd.Context(), client, args[0], node)
			case node != "":
				return rawOutput(a, cmd.Context(), client, args[0], node)
			}
			runs, err := runsOf(cmd.Context(), client, api.Job{ID: args[0]}, "all")
			if err != nil {
				return err
			}
			return printGroups(a, cmd.Context(), client, args[0], runs)
		},
	}
	cmd.Flags().StringVar(&node, "node", "", "only of this node")
	completes(cmd, "node", completeNodes(a))
	return cmd
}

// rawOutput prints the output of a node as it was.
func rawOutput(a *app, ctx context.Context, client *api.Client, job, node string) error {
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
func listOutput(a *app, ctx context.Context, client *api.Client, job, node string) error {
	l := print.NewListing(a.printer(), print.Table[api.JobLine]{
		Columns: []string{"node", "stream", "number", "text"},
		Row:     func(l api.JobLine) []string { return []string{l.Node, l.Stream, numberText(l.Number), l.Text} },
		Name:    func(l api.JobLine) string { return l.Node },
		Empty:   "No output.",
	})
	if err := outputOf(ctx, client, job, node, l.Add); err != nil {
		return err
	}
	return l.End()
}

func (a *app) jobRerun() *cobra.Command {
	o, p := orderFlags{}, paramFlags{}
	var all, noop bool
	cmd := &cobra.Command{
		Use: "rerun JOB [NAME=VALUE]...", Short: "Order a job once more, for the nodes on which it did not succeed",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return oneJob(cmd, args)
			}
			return oneJob(cmd, args[:1])
		},
		Long: `Order a job once more: for the nodes on which it did not succeed, or with --all for all of its nodes, as they were. What
flags and parameters say is changed. Parameters that were hidden must be given again.

` + exitHelp,
		Example:           "  tutti job rerun 12\n  tutti job rerun 12 --all --concurrency 5\n  tutti job rerun 12 --ask password --wait-offline 1h",
		ValidArgsFunction: completeJob(a, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			n, request, err := rerun(a, cmd.Context(), args[0], args[1:], p)
			if err != nil {
				return err
			}
			n.flags = o
			changed := cmd.Flags().Changed
			if all {
				request.Only = "all"
			}
			if changed("concurrency") {
				request.Concurrency = &o.concurrency
			}
			if changed("timeout") {
				request.Timeout = new(api.WholeSeconds(o.timeout))
			}
			if changed("wait-offline") {
				request.WaitOffline = new(api.WholeSeconds(o.waitOffline))
			}
			if changed("noop") {
				request.Noop = &noop
			}
			request.MaxFailures, request.Description, request.SkipDenied = o.maxFailures.limit, o.description, o.skipDenied
			n.order.SkipDenied, n.order.WaitOffline = o.skipDenied, api.WholeSeconds(o.waitOffline)
			n.send = ordered(api.JobRerun, func(order api.JobOrder) api.JobRerunRequest {
				request.DryRun, request.Expect = order.DryRun, order.Expect
				return request
			})
			return n.run(cmd.Context())
		},
	}
	addPaceFlags(a, cmd, &o)
	addStartFlags(a, cmd, &o)
	p.add(cmd)
	cmd.Flags().StringVar(&o.description, "description", "", "why, for those who look at the job later; empty: as it was")
	cmd.Flags().BoolVar(&all, "all", false, "for all of its nodes, not only those without success")
	cmd.Flags().BoolVar(&noop, "noop", false, "change nothing, only say what would be changed; --noop=false: change it")
	return cmd
}

// rerun looks at the job that is ordered again.
func rerun(a *app, ctx context.Context, id string, words []string, p paramFlags) (n newJob, request api.JobRerunRequest, err error) {
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
		return n, request, wrongTask(err)
	}
	given, err := readParams(a, words, p, t)
	if err != nil {
		return n, request, err
	}
	request.Texts = given.texts
	request.Params, err = given.json()
	return n, request, err
}
