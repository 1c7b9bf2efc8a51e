package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/diff"
	"github.com/tutti-project/tutti/internal/fault"
)

type rollbackCommandInput struct {
	waves              waveFlags
	request            api.RollbackRequest
	of                 string
	noWait, yes, order bool
}

var rollbackCommand = asking{verb[rollbackCommandInput]{
	use: "rollback --release RELEASE | NODE... [--to GENERATION]", short: "Give nodes back the catalogs that they had before, in waves",
	args: cobra.ArbitraryArgs,
	long: `Give nodes back the catalogs that they had before: those of a release what they had before it, or nodes that are named an earlier generation
(tutti catalog generations). Nothing is compiled, so it starts at once, in the same waves as a release.

What changes is shown first. A catalog cannot undo everything: resources that are in what nodes have now and not in what they get vanish from the
catalog, but stay on the node as they are. They are counted.

` + releaseExits,
	example: `  tutti rollback --release 7
  tutti rollback --release 7 --dry-run
  tutti rollback web-1.example.test --to 41`,
	complete: completeNodes,
	flags: func(f flagSet, in *rollbackCommandInput) {
		f.StringVar(&in.of, "release", "", "take back this release: nodes that have its catalogs get what they had before it")
		f.Int64Var(&in.request.To, "to", 0, "the generation that the nodes get; without it the one before")
		f.StringVar(&in.request.Description, "description", "", "what it is about, for people")
		f.BoolVar(&in.request.DryRun, "dry-run", false, "show what would change, and change nothing")
		f.BoolVar(&in.order, "order", false, "show what differs in order only, too")
		f.BoolVar(&in.noWait, "no-wait", false, "print the release's number and do not watch it")
		f.BoolVarP(&in.yes, "yes", "y", false, "do not ask, however many nodes there are")
		in.waves.add(f)
	},
	run: func(ctx context.Context, c *call, in *rollbackCommandInput) (err error) {
		in.request.Nodes = c.args
		if (in.of == "") == (len(c.args) == 0) {
			return usageError{fault.New(fault.Invalid, "name what is taken back: --release N for a whole release, or the nodes")}
		}
		if len(c.args) > 0 && strings.Trim(c.args[0], "0123456789") == "" {
			return usageError{fault.New(fault.Invalid, "%s is no name of a node; a release is given with --release %s", c.args[0], c.args[0])}
		}
		if in.of != "" {
			if in.request.Release, err = strconv.ParseInt(in.of, 10, 64); err != nil || in.request.Release < 1 {
				return usageError{fault.New(fault.Invalid, "--release is a number that `tutti release list` shows, not %.40q", in.of)}
			}
		}
		if in.request.ReleaseOptions, err = in.waves.options(); err != nil {
			return err
		}
		dry := in.request.DryRun
		in.request.DryRun = true
		client, plan, err := planRelease(ctx, c.app, api.ReleaseRollback, in.request)
		if err != nil {
			return err
		}
		if dry && c.printer().ForPrograms() {
			return c.printer().Thing(plan)
		}
		if err := printWayBack(c.app, plan, dry, in.order); err != nil {
			return err
		}
		if dry {
			return printPlan(plan, c.printer().Linef)
		}
		in.request.DryRun = false
		return makeRelease(ctx, c.app, client, api.ReleaseRollback, in.request, plan, in.noWait, in.yes)
	},
}}

// printWayBack prints what a roll back changes, and warns of what it cannot undo.
func printWayBack(a *app, p api.ReleaseReport, dry, order bool) error {
	out := a.system.Err
	if dry {
		out = a.system.Out
	}
	if p.Difference != nil && !a.quiet {
		if err := diff.WriteFleetText(out, *p.Difference, order); err != nil {
			return err
		}
	}
	if v := p.Vanishing; v != nil && v.Resources > 0 {
		a.hint("Warning: %s on %s vanish from the catalog but stay on disk (%d different ones)", fault.Count(v.Resources, "resource"),
			fault.Count(v.Nodes, "node"), v.Distinct)
	}
	return nil
}
