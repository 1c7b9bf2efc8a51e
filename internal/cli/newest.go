package cli

import (
	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
)

// newest is a list of what was made in environments: the newest first.
type newest[Request, T any] struct {
	op             api.Op[Request, api.List[T]]
	request        func(environment, state, after string) Request // for a page
	short, example string
	states         string // in which one can be, for people
	table          print.Table[T]
}

// newestList is the command that prints it.
func newestList[Request, T any](a *app, l newest[Request, T]) *cobra.Command {
	var environment, state string
	cmd := &cobra.Command{
		Use: "list", Short: l.short, Args: exactly(0), Example: l.example,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return list(cmd.Context(), a, l.op, func(after string) Request { return l.request(environment, state, after) }, l.table)
		},
	}
	cmd.Flags().StringVar(&environment, "environment", "", "those of this environment")
	cmd.Flags().StringVar(&state, "state", "", l.states)
	return cmd
}
