package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/internal/process"
	"github.com/tutti-project/tutti/internal/puppetrun"
)

// errandCommand is what the agent runs itself as, to have a process that outlives
// it. People have no use for it.
func (a *app) errandCommand() *cobra.Command {
	errand := noun("errand", "Processes that the agent starts",
		&cobra.Command{
			Use: "watch PLACE", Short: "Run the program that is ordered on standard input, and leave its outcome at a place", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return process.Watch(cmd.Context(), args[0], a.system.In, a.system.Out)
			},
		},
		&cobra.Command{
			Use: "puppet", Short: "Do the Puppet run that is ordered on standard input", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				if puppetrun.Main(cmd.Context(), a.system.In, a.system.Out, a.system.Err) != 0 {
					return errors.New("the Puppet run failed; its results say why")
				}
				return nil
			},
		},
	)
	errand.Hidden = true
	return errand
}
