package cli

import (
	"context"
	"slices"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

// newJob is a job that is about to be ordered.
type newJob struct {
	*app
	client  *api.Client
	flags   orderFlags
	does    string                      // what it does, to go on with "on 3 nodes"
	send    ordering                    // with what changes between plan and start
	prepare func(context.Context) error // before the start; may be nil
	order   api.JobOrder
	receive func(context.Context, *watcher) error // takes what runs wrote when the job is over, instead of printing it; may be nil
}

// ordering sends an order: once for its plan, and once to start it.
type ordering func(ctx context.Context, client *api.Client, order api.JobOrder) (api.JobStarted, error)

// ordered sends what request makes of an order.
func ordered[Request any](op api.Op[Request, api.JobStarted], request func(api.JobOrder) Request) ordering {
	return func(ctx context.Context, client *api.Client, order api.JobOrder) (api.JobStarted, error) {
		return op.Call(ctx, client, request(order))
	}
}

// run shows which nodes are meant, asks if they are many, starts the job and follows it.
func (n *newJob) run(ctx context.Context) error {
	plan, err := n.plan(ctx)
	if err != nil {
		return err
	}
	if n.flags.dryRun {
		return n.printPlan(plan)
	}
	if deniedText(plan) == "" || n.flags.skipDenied { // otherwise the server says no, and why
		n.showPlan(plan)
		if err := n.confirm(plan); err != nil {
			return err
		}
	}
	if n.prepare != nil {
		if err := n.prepare(ctx); err != nil {
			return err
		}
	}
	job, err := n.start(ctx)
	if err != nil {
		return err
	}
	if n.flags.noWait {
		return n.printStarted(job)
	}
	if n.tools.follows() && n.output == "table" {
		return watchWith(ctx, n.theirWatcher(job))
	}
	n.hint("Job %s: %s on %s", job.ID, n.does, fault.Count(job.Nodes, "node"))
	return watchWith(ctx, &watcher{app: n.app, client: n.client, job: job, receive: n.receive})
}

// plan asks what the job would do.
func (n *newJob) plan(ctx context.Context) (api.JobPlan, error) {
	asked := n.order
	asked.DryRun = true
	answer, err := n.send(ctx, n.client, asked)
	return answer.Plan, err
}

func (n *newJob) start(ctx context.Context) (api.Job, error) {
	answer, err := n.send(ctx, n.client, n.order)
	if err != nil {
		return api.Job{}, err
	}
	if answer.Job == nil {
		return api.Job{}, fault.New(fault.Internal, "the server started no job and gave no reason")
	}
	return *answer.Job, nil
}

// shownNames is how many nodes are named before a job starts.
const shownNames = 10

// showPlan says which nodes are meant, before anything is done with them.
func (n *newJob) showPlan(plan api.JobPlan) {
	names := make([]string, len(plan.Targets))
	for i, t := range plan.Targets {
		names[i] = t.Node
	}
	if plan.Nodes > 0 {
		n.hint("%s: %s", fault.Count(plan.Nodes, "node"), someNames(names, shownNames))
	}
	if denied := deniedText(plan); denied != "" {
		n.hint("Left out, because you may not touch them: %s", denied)
	}
	if len(plan.Offline) == 0 {
		return
	}
	fate := "they end as offline; --wait-offline 10m waits for them"
	if n.order.WaitOffline > 0 {
		fate = "they have " + n.flags.waitText() + " to connect"
	}
	n.hint("Not connected, %s: %s", fate, someNames(plan.Offline, shownNames))
	if len(plan.NeverConnected) > 0 {
		n.hint("Of these, no tutti agent or pxp-agent has ever connected from (on each: `tutti agent join`, then `tutti agent install`): %s",
			someNames(plan.NeverConnected, shownNames))
	}
}

// awayText is how a node of a plan is not connected.
func awayText(plan api.JobPlan, node string) string {
	if slices.Contains(plan.NeverConnected, node) {
		return "never connected"
	}
	return "not connected"
}

// waitText is how long offline nodes are waited for.
func (o orderFlags) waitText() string { return print.Duration(o.waitOffline) }

// confirm lets somebody at a terminal think again before many nodes are touched. What
// was confirmed is what starts.
func (n *newJob) confirm(plan api.JobPlan) error {
	asked, err := n.confirmed("does "+n.does, plan.Nodes, n.flags.yes)
	if asked && err == nil {
		n.order.Expect = plan.Digest
	}
	return err
}

func (n *newJob) printPlan(plan api.JobPlan) error {
	if n.printer().ForPrograms() {
		return n.printer().Thing(plan)
	}
	if denied := deniedText(plan); denied != "" {
		n.hint("You may not touch: %s", denied)
	}
	n.hint("%s, %d of them not connected. Nothing was started.", fault.Count(plan.Nodes, "node"), len(plan.Offline))
	return print.List(n.printer(), plan.Targets, print.Table[api.JobTarget]{
		Columns: []string{"node", "agent"},
		Row: func(t api.JobTarget) []any {
			if t.Connected == nil {
				return []any{t.Node, awayText(plan, t.Node)}
			}
			return []any{t.Node, first(t.Connected.Agent, "connected")}
		},
		Name:  func(t api.JobTarget) string { return t.Node },
		Empty: "No nodes.",
	})
}

// printStarted prints what is needed to find the job again.
func (n *newJob) printStarted(job api.Job) error {
	n.hint("Follow it: tutti job watch %s", job.ID)
	if n.printer().ForPrograms() {
		return n.printer().Thing(job)
	}
	return n.printer().Text(job.ID + "\n")
}
