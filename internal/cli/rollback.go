package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/diff"
	"github.com/tutti-project/tutti/internal/fault"
)

func (a *app) rollbackCommand() *cobra.Command {
	var waves waveFlags
	var request api.RollbackRequest
	var of string
	var noWait, yes, order bool
	cmd := &cobra.Command{
		Use: "rollback --release RELEASE | NODE... [--to GENERATION]", Short: "Give nodes back the catalogs that they had before, in waves",
		Long: `Give nodes back the catalogs that they had before: those of a release what they had before it, or nodes that are named an earlier generation
(tutti catalog generations). Nothing is compiled, so it starts at once, in the same waves as a release.

What changes is shown first. A catalog cannot undo everything: resources that are in what nodes have now and not in what they get vanish from the
catalog, but stay on the node as they are. They are counted.

` + releaseExits,
		Example: `  tutti rollback --release 7
  tutti rollback --release 7 --dry-run
  tutti rollback web-1.example.test --to 41`,
		ValidArgsFunction: completeNodes(a),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			request.Nodes = args
			if (of == "") == (len(args) == 0) {
				return usageError{fault.New(fault.Invalid, "name what is taken back: --release N for a whole release, or the nodes")}
			}
			if of != "" {
				if request.Release, err = strconv.ParseInt(of, 10, 64); err != nil || request.Release < 1 {
					return usageError{fault.New(fault.Invalid, "--release is a number that `tutti release list` shows, not %.40q", of)}
				}
			}
			if request.ReleaseOptions, err = waves.options(); err != nil {
				return err
			}
			dry := request.DryRun
			request.DryRun = true
			client, plan, err := planRelease(cmd.Context(), a, api.ReleaseRollback, request)
			if err != nil {
				return err
			}
			if dry && a.printer().AsJSON() {
				return a.printer().JSON(plan)
			}
			if err := printWayBack(a, plan, dry, order); err != nil {
				return err
			}
			if dry {
				return printPlan(a, plan, a.sayf)
			}
			request.DryRun = false
			return makeRelease(cmd.Context(), a, client, api.ReleaseRollback, request, plan, noWait, yes)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&of, "release", "", "take back this release: nodes that have its catalogs get what they had before it")
	flags.Int64Var(&request.To, "to", 0, "the generation that the nodes get; without it the one before")
	flags.StringVar(&request.Description, "description", "", "what it is about, for people")
	flags.BoolVar(&request.DryRun, "dry-run", false, "show what would change, and change nothing")
	flags.BoolVar(&order, "order", false, "show what differs in order only, too")
	flags.BoolVar(&noWait, "no-wait", false, "print the release's number and do not watch it")
	flags.BoolVarP(&yes, "yes", "y", false, "do not ask, however many nodes there are")
	waves.add(a, cmd)
	return a.withAccess(cmd)
}

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
		a.hint("Warning: %s on %s vanish from the catalog but stay on disk (%d different ones)", count(v.Resources, "resource"), count(v.Nodes, "node"), v.Distinct)
	}
	return nil
}
