package cli

import (
	"context"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

// hintRelease says how a release stands, after something was done to it.
func hintRelease(to print.Printer, r api.Release) error {
	to.Hint("Release %s: %s", r.ID, releaseSummary(r))
	return nil
}

var releasePromote = verb[api.ReleaseRequest]{
	use: "promote RELEASE", short: "Let the next wave of a release begin", example: "  tutti release promote 7",
	into: func(in *api.ReleaseRequest, args []string) { in.Release = args[0] },
	run:  shows(api.ReleasePromote, hintRelease),
}

var releasePause = verb[api.ReleaseActRequest]{
	use: "pause RELEASE", short: "Let nothing more of a release begin; what runs goes on",
	example: "  tutti release pause 7 --why 'look at web-3 first'",
	flags: func(f flagSet, in *api.ReleaseActRequest) {
		f.StringVar(&in.Why, "why", "", "why, for those who wonder")
	},
	into: func(in *api.ReleaseActRequest, args []string) { in.Release = args[0] },
	run:  shows(api.ReleasePause, hintRelease),
}

type releaseResumeInput struct{ budget int }

var releaseResume = verb[releaseResumeInput]{
	use: "resume RELEASE", short: "Let a paused release go on",
	long: `Let a paused release go on. One that was paused because too many nodes failed needs a larger budget; nodes of its wave that were skipped
because of that have their turn then.`,
	example: "  tutti release resume 7\n  tutti release resume 7 --max-failures 5",
	flags: func(f flagSet, in *releaseResumeInput) {
		f.IntVar(&in.budget, "max-failures", 0, "how many nodes may fail in all")
	},
	run: func(ctx context.Context, c *call, in *releaseResumeInput) error {
		request := api.ReleaseResumeRequest{Release: c.args[0]}
		if c.changed("max-failures") {
			if in.budget < 0 {
				return usageError{fault.New(fault.Invalid, "--max-failures is a number of nodes, 0 or more, not %d", in.budget)}
			}
			request.MaxFailures = &in.budget
		}
		return showAnswer(ctx, c.app, api.ReleaseResume, request, hintRelease)
	},
}

type releaseAbortInput struct {
	noWait  bool
	request api.ReleaseAbortRequest
}

var releaseAbort = verb[releaseAbortInput]{
	use: "abort RELEASE", short: "End a release: nothing more begins; what runs goes on to its end, or is killed",
	long: `End a release: nothing more begins; what runs goes on to its end, or is killed. Nodes that were run keep the catalogs that they
were given, and tutti rollback --release gives them back what they had; those whose run did not begin have it again already. The command waits
until the release has ended; Ctrl-C leaves it ending.`,
	example: "  tutti release abort 7\n  tutti release abort 7 --kill --why 'wrong branch'\n  tutti release abort 7 --no-wait",
	flags: func(f flagSet, in *releaseAbortInput) {
		f.BoolVar(&in.noWait, "no-wait", false, "do not wait until it has ended")
		f.BoolVar(&in.request.Kill, "kill", false, "end what runs, too")
		f.StringVar(&in.request.Why, "why", "", "why, for those who wonder")
	},
	run: func(ctx context.Context, c *call, in *releaseAbortInput) error {
		in.request.Release = c.args[0]
		if in.noWait {
			return showAnswer(ctx, c.app, api.ReleaseAbort, in.request, hintRelease)
		}
		r, err := ask(ctx, c.app, api.ReleaseAbort, in.request)
		if err != nil {
			return err
		}
		return awaitRelease(ctx, c.app, r)
	},
}

// awaitRelease tells what happens to a release that was aborted, and returns when it has ended: it can be rolled back then. Who may abort
// it and not see it is told how it stood.
func awaitRelease(ctx context.Context, a *app, r api.Release) error {
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

var releaseApprove = verb[api.ReleaseActRequest]{
	use: "approve RELEASE", short: "Approve a release: exactly these catalogs, nodes and waves",
	long: `Approve a release that waits for it, with the roles that one has. The approval is of exactly these catalogs, nodes and waves. Nobody approves
a release of their own, unless the rule that asks for it says so.`,
	example: "  tutti release approve 7 --why 'seen with the team'",
	flags:   func(f flagSet, in *api.ReleaseActRequest) { f.StringVar(&in.Why, "why", "", "for the record") },
	into:    func(in *api.ReleaseActRequest, args []string) { in.Release = args[0] },
	run:     shows(api.ReleaseApprove, hintRelease),
}

var releaseRefresh = verb[api.ReleaseRequest]{
	use: "refresh RELEASE", short: "Preview the superseded nodes of a release again, and print the preview's number",
	example: "  tutti release refresh 7",
	into:    func(in *api.ReleaseRequest, args []string) { in.Release = args[0] },
	run: shows(api.ReleaseRefresh, func(to print.Printer, made api.ReleaseRefreshed) error {
		to.Hint("See it with: tutti preview watch %s", made.Preview)
		return to.Linef("%s", made.Preview)
	}),
}
