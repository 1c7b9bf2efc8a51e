package cli

import (
	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

func (a *app) commandCommand() *cobra.Command {
	return a.withAccess(noun("command", "Run commands on nodes", a.commandRun()))
}

func (a *app) commandRun() *cobra.Command {
	o := orderFlags{}
	cmd := &cobra.Command{
		Use: "run COMMAND", Short: "Run a command on nodes", Args: oneCommand,
		Long: `Run a command on nodes, in the shell of the user that the agent runs as (root, mostly), and print what it
writes: once for all nodes on which that is the same.

` + targetHelp + `

A command is stored with its job and seen by everybody who may read jobs, and on the node by all of its users: do
not put secrets into it. A task takes secrets as sensitive parameters.

` + exitHelp,
		Example: `  tutti command run uptime --targets web-1.example.test,web-2.example.test
  tutti command run 'systemctl is-active nginx' --group 'Web servers' --concurrency 50
  tutti command run 'df -h /' --all -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return launch(a, cmd, o, newJob{
				does: "command " + print.Shortened(print.OneLine(args[0]), 60),
				send: ordered(api.JobCommand, func(order api.JobOrder) api.JobCommandRequest {
					return api.JobCommandRequest{JobOrder: order, Command: args[0]}
				}),
			})
		},
	}
	addOrderFlags(a, cmd, &o)
	return cmd
}

func oneCommand(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 1 && args[0] != "":
		return nil
	case len(args) > 1:
		return usageError{fault.New(fault.Invalid, "a command is one argument, %d are given: put it in quotes, so that the shell leaves it whole", len(args))}
	}
	return usageError{fault.New(fault.Invalid, "which command? usage: %s", cmd.UseLine())}
}
