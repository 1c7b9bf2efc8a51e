package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/diff"
	"github.com/tutti-project/tutti/internal/fault"
)

type jobPlanInput struct {
	o orderFlags
	p puppetFlags
}

var jobPlan = verb[jobPlanInput]{
	use: "plan [NODE|@FILE|-]...", short: "Show what an ordered Puppet run would do, and run nothing", args: cobra.ArbitraryArgs,
	long: `Show in which order Puppet would run on nodes: level by level, with the components that each node carries, for whom it
waits, whether it is connected, what is known of its next run from its newest catalog and its latest report, and, like a preview, what leads
from the catalogs that nodes applied last to those that they have now. Nothing runs.

` + whichNodes,
	example:  "  tutti job plan --app 'Shop[eu]'\n  tutti job plan --all -o json\n  tutti job plan web-1.example.test db-1.example.test",
	complete: completeNodes,
	flags: func(f flagSet, in *jobPlanInput) {
		addTargetFlags(f, &in.o.targetFlags)
		addPaceFlags(f, &in.o)
		in.p.add(f.FlagSet)
	},
	run: func(ctx context.Context, c *call, in *jobPlanInput) (err error) {
		in.o.names = append(in.o.names, c.args...)
		if in.p.noop && in.p.noNoop {
			return usageError{fault.New(fault.Invalid, "--noop and --no-noop say the opposite: give one of them")}
		}
		in.o.ordered, in.o.dryRun = true, true
		n := newJob{app: c.app, flags: in.o, send: ordered(api.JobPuppet, in.p.make)}
		if n.order, err = readOrder(c.app, in.o); err != nil {
			return err
		}
		if n.client, err = c.client(); err != nil {
			return err
		}
		return n.showOrder(ctx, in.p.request.Environment)
	},
}

// showOrder prints what the job would do.
func (n *newJob) showOrder(ctx context.Context, environment string) error {
	plan, err := n.plan(ctx)
	if err != nil {
		return err
	}
	if n.printer().ForPrograms() {
		return n.printer().Thing(plan)
	}
	apps, err := api.AppList.Call(ctx, n.client, api.AppListRequest{})
	if err != nil {
		return err
	}
	limit := "none"
	if n.order.Concurrency > 0 {
		limit = fmt.Sprint(n.order.Concurrency)
	}
	err = n.printer().Linef("Environment: %s  Target: %s\nConcurrency limit: %s  Nodes: %d, %d of them not connected",
		first(environment, "each node's own"), targetsText(n.order.Targets), limit, plan.Nodes, len(plan.Offline))
	if err != nil {
		return err
	}
	if denied := deniedText(plan); denied != "" {
		n.hint("You may not touch: %s", denied)
	}
	if _, err = io.WriteString(n.system.Out, print.Wrapped(planText(plan, apps.Items), n.system.Width)); err == nil {
		err = n.showChanges(plan)
	}
	n.hint("Nothing was started: `tutti run --ordered` with the same nodes does.")
	return err
}

// showChanges prints what nodes with a new catalog have to change.
func (n *newJob) showChanges(plan api.JobPlan) error {
	if plan.Changes != nil {
		if err := n.printer().Linef("\nChanges since what nodes applied last"); err != nil {
			return err
		}
		if err := diff.WriteFleetText(n.system.Out, *plan.Changes, false); err != nil {
			return err
		}
	}
	if plan.Uncompared > 0 {
		n.hint("What changes on %s with a new catalog cannot be shown: what was applied there is not known or not stored any more, you may not read catalogs, or there are more than can be compared.",
			fault.Count(plan.Uncompared, "node"))
	}
	return nil
}

// planText is the nodes of a plan by level, and what is missing of their applications.
func planText(plan api.JobPlan, apps []api.App) string {
	levels := map[int][]api.JobTarget{}
	here := map[string]bool{}
	for _, t := range plan.Targets {
		levels[t.Layer] = append(levels[t.Layer], t)
		here[t.Node] = true
	}
	carried := map[string][]string{}
	var missing []string
	for _, p := range apps {
		left := slices.DeleteFunc(slices.Clone(p.Nodes), func(node string) bool { return here[node] })
		for _, c := range p.Components {
			carried[c.Node] = append(carried[c.Node], p.Name+" - "+c.Name)
		}
		if len(left) > 0 && len(left) < len(p.Nodes) {
			missing = append(missing, fmt.Sprintf("! %s is not complete without %s\n", p.Name, someNames(left, shownNames)))
		}
	}
	var text strings.Builder
	for _, level := range slices.Sorted(maps.Keys(levels)) {
		fmt.Fprintf(&text, "\nLevel %d\n", level)
		for _, t := range levels[level] {
			text.WriteString(targetLine(plan, t))
			for _, component := range carried[t.Node] {
				fmt.Fprintf(&text, "      %s\n", component)
			}
		}
	}
	return text.String() + strings.Join(missing, "")
}

func targetLine(plan api.JobPlan, t api.JobTarget) string {
	words := []string{t.Expected}
	if t.Connected == nil {
		words = append(words, awayText(plan, t.Node))
	}
	if len(t.WaitsFor) > 0 {
		words = append(words, "waits for "+someNames(t.WaitsFor, shownNames))
	}
	return fmt.Sprintf("  %s  (%s)\n", t.Node, strings.Join(words, "; "))
}
