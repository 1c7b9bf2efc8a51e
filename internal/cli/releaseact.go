package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
)

// actOnRelease does something to a release and says how it stands then.
func actOnRelease[Request any](a *app, cmd *cobra.Command, op api.Op[Request, api.Release], request Request) error {
	r, err := ask(cmd.Context(), a, op, request)
	if err != nil {
		return err
	}
	if a.printer().AsJSON() {
		return a.printer().JSON(r)
	}
	a.hint("Release %s: %s", r.ID, releaseSummary(r))
	return nil
}

func (a *app) releasePromote() *cobra.Command {
	return &cobra.Command{
		Use: "promote RELEASE", Short: "Let the next wave of a release begin", Args: exactly(1), Example: "  tutti release promote 7",
		RunE: func(cmd *cobra.Command, args []string) error {
			return actOnRelease(a, cmd, api.ReleasePromote, api.ReleaseRequest{Release: args[0]})
		},
	}
}

func (a *app) releasePause() *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use: "pause RELEASE", Short: "Let nothing more of a release begin; what runs goes on", Args: exactly(1), Example: "  tutti release pause 7 --why 'look at web-3 first'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return actOnRelease(a, cmd, api.ReleasePause, api.ReleaseActRequest{Release: args[0], Why: why})
		},
	}
	cmd.Flags().StringVar(&why, "why", "", "why, for those who wonder")
	return cmd
}

func (a *app) releaseResume() *cobra.Command {
	var budget int
	cmd := &cobra.Command{
		Use: "resume RELEASE", Short: "Let a paused release go on", Args: exactly(1),
		Long: `Let a paused release go on. One that was paused because too many nodes failed needs a larger budget; nodes of its wave that were skipped
because of that have their turn then.`,
		Example: "  tutti release resume 7\n  tutti release resume 7 --max-failures 5",
		RunE: func(cmd *cobra.Command, args []string) error {
			request := api.ReleaseResumeRequest{Release: args[0]}
			if cmd.Flags().Changed("max-failures") {
				if budget < 0 {
					return usageError{fault.New(fault.Invalid, "--max-failures is a number of nodes, 0 or more, not %d", budget)}
				}
				request.MaxFailures = &budget
			}
			return actOnRelease(a, cmd, api.ReleaseResume, request)
		},
	}
	cmd.Flags().IntVar(&budget, "max-failures", 0, "how many nodes may fail in all")
	return cmd
}

func (a *app) releaseAbort() *cobra.Command {
	var noWait bool
	request := api.ReleaseAbortRequest{}
	cmd := &cobra.Command{
		Use: "abort RELEASE", Short: "End a release: nothing more begins; what runs goes on to its end, or is killed", Args: exactly(1),
		Long: `End a release: nothing more begins; what runs goes on to its end, or is killed. Nodes that were run keep the catalogs that they
were given, and tutti rollback --release gives them back what they had; those whose run did not begin have it again already. The command waits
until the release has ended; Ctrl-C leaves it ending.`,
		Example: "  tutti release abort 7\n  tutti release abort 7 --kill --why 'wrong branch'\n  tutti release abort 7 --no-wait",
		RunE: func(cmd *cobra.Command, args []string) error {
			request.Release = args[0]
			if noWait {
				return actOnRelease(a, cmd, api.ReleaseAbort, request)
			}
			r, err := ask(cmd.Context(), a, api.ReleaseAbort, request)
			if err != nil {
				return err
			}
			return awaitRelease(a, cmd.Context(), r)
		},
	}
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "do not wait until it has ended")
	cmd.Flags().BoolVar(&request.Kill, "kill", false, "end what runs, too")
	cmd.Flags().StringVar(&request.Why, "why", "", "why, for those who wonder")
	return cmd
}

// awaitRelease tells what happens to a release that was aborted, and returns when it has ended: it can be rolled back then. Who may abort
// it and not see it is told how it stood.
func awaitRelease(a *app, ctx context.Context, r api.Release) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	w := watcherOfRelease(a, client, r.ID)
	w.seen, w.told = r.Revision, fromNow
	ended, err := w.followed(ctx)
	if fault.Is(err, fault.Denied) {
		a.hint("Release %s: %s", r.ID, releaseSummary(r))
		return nil // it is aborted, which is what was asked for
	}
	if err != nil {
		return err
	}
	return w.conclude(ended)
}

func (a *app) releaseApprove() *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use: "approve RELEASE", Short: "Approve a release: exactly these catalogs, nodes and waves", Args: exactly(1),
		Long: `Approve a release that waits for it, with the roles that one has. The approval is of exactly these catalogs, nodes and waves. Nobody approves
a release of their own, unless the rule that asks for it says so.`,
		Example: "  tutti release approve 7 --why 'seen with the team'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return actOnRelease(a, cmd, api.ReleaseApprove, api.ReleaseActRequest{Release: args[0], Why: why})
		},
	}
	cmd.Flags().StringVar(&why, "why", "", "for the record")
	return cmd
}

func (a *app) releaseRefresh() *cobra.Command {
	return &cobra.Command{
		Use: "refresh RELEASE", Short: "Preview the superseded nodes of a release again, and print the preview's number", Args: exactly(1),
		Example: "  tutti release refresh 7",
		RunE: func(cmd *cobra.Command, args []string) error {
			made, err := ask(cmd.Context(), a, api.ReleaseRefresh, api.ReleaseRequest{Release: args[0]})
			if err != nil {
				return err
			}
			if a.printer().AsJSON() {
				return a.printer().JSON(made)
			}
			a.hint("See it with: tutti preview watch %s", made.Preview)
			return a.sayf("%s", made.Preview)
		},
	}
}
