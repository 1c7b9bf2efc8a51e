package cli

import (
	"context"

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

type newestInput struct{ environment, state string }

func (l newest[Request, T]) command(a *app) *cobra.Command {
	return verb[newestInput]{
		use: "list", short: l.short, example: l.example,
		flags: func(f flagSet, in *newestInput) {
			f.StringVar(&in.environment, "environment", "", "those of this environment")
			f.StringVar(&in.state, "state", "", l.states)
		},
		run: func(ctx context.Context, c *call, in *newestInput) error {
			return list(ctx, c.app, l.op, func(after string) Request { return l.request(in.environment, in.state, after) }, l.table)
		},
	}.command(a)
}
