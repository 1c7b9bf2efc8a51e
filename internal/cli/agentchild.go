package cli

import (
	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/internal/agent"
)

// agentChildren is what the agent runs itself as, to have a process that outlives
// it. People have no use for it.
func (a *app) agentChildren() *cobra.Command {
	children := noun("errand", "Processes that the agent starts",
		&cobra.Command{
			Use: "watch PLACE", Short: "Run the program that is ordered on standard input, and leave its outcome at a place", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return agent.Watch(cmd.Context(), args[0], a.system.In, a.system.Out)
			},
		},
		&cobra.Command{
			Use: "puppet", Short: "Do the Puppet run that is ordered on standard input", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return agent.RunPuppet(cmd.Context(), a.system.In, a.system.Out, a.system.Err)
			},
		},
	)
	children.Hidden = true
	return children
}
