package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

var commandCommand = asking{noun{use: "command", short: "Run commands on nodes", verbs: []declared{commandRun}}}

var commandRun = verb[orderFlags]{
	use: "run COMMAND", short: "Run a command on nodes", args: oneCommand,
	prints: results,
	long: `Run a command on nodes, in the shell of the user that the agent runs as (root, mostly), and print what it
writes: once for all nodes on which that is the same.

` + targetHelp + `

A command is stored with its job and seen by everybody who may read jobs, and on the node by all of its users: do
not put secrets into it. A task takes secrets as sensitive parameters.

` + exitHelp,
	example: `  tutti command run uptime --targets web-1.example.test,web-2.example.test
  tutti command run 'systemctl is-active nginx' --group 'Web servers' --concurrency 50
  tutti command run 'df -h /' --all -o json`,
	flags: addOrderFlags,
	run: func(ctx context.Context, c *call, in *orderFlags) error {
		return launch(ctx, c.app, *in, newJob{
			does: "command " + print.Shortened(print.OneLine(c.args[0]), 60),
			send: ordered(api.JobCommand, func(order api.JobOrder) api.JobCommandRequest {
				return api.JobCommandRequest{JobOrder: order, Command: c.args[0]}
			}),
		})
	},
}

func oneCommand(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 1 && args[0] != "":
		return nil
	case len(args) > 1:
		return usageError{
			fault.New(fault.Invalid, "a command is one argument, %d are given: put it in quotes, so that the shell leaves it whole; nodes are named with --targets",
				len(args)),
		}
	}
	return usageError{fault.New(fault.Invalid, "which command? usage: %s", cmd.UseLine())}
}
