package cli

import "github.com/spf13/cobra"

// otherName is a command that another one has replaced: it goes on to work, and help does not show it.
type otherName struct{ declared }

func (o otherName) command(a *app) *cobra.Command {
	cmd := o.declared.command(a)
	cmd.Hidden = true
	return cmd
}
