package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/agent"
)

// agentChildren is what the agent runs itself as, to have a process that outlives
// it. People have no use for it.
var agentChildren = noun{
	use: "errand", short: "Processes that the agent starts", hidden: true,
	verbs: []declared{
		verb[api.Nothing]{
			prints: silent,
			use:    "watch PLACE", short: "Run the program that is ordered on standard input, and leave its outcome at a place",
			args: cobra.ExactArgs(1),
			run: func(ctx context.Context, c *call, _ *api.Nothing) error {
				return agent.Watch(ctx, c.args[0], c.system.In, c.system.Out)
			},
		},
		verb[api.Nothing]{
			prints: silent,
			use:    "choria", short: "Run the program of a module by Choria's contract, as standard input says", args: cobra.NoArgs,
			run: func(_ context.Context, c *call, _ *api.Nothing) error {
				return agent.RunChoria(c.system.In, c.system.Out)
			},
		},
		verb[api.Nothing]{
			prints: silent,
			use:    "puppet", short: "Do the Puppet run that is ordered on standard input", args: cobra.NoArgs,
			run: func(ctx context.Context, c *call, _ *api.Nothing) error {
				return agent.RunPuppet(ctx, c.system.In, c.system.Out, c.system.Err)
			},
		},
		verb[actionChild]{
			prints: silent,
			use:    "action MODULE ACTION", short: "Do the action of a built-in module whose input is on standard input",
			flags: func(f flagSet, in *actionChild) {
				f.StringVar(&in.puppet, "puppet", "", "path of puppet; empty: looked for")
				f.StringVar(&in.settings, "settings", "", "file that keeps what puppet said of its settings; empty: it is asked")
			},
			run: func(ctx context.Context, c *call, in *actionChild) error {
				if !agent.RunAction(ctx, in.puppet, in.settings, c.args[0], c.args[1], c.system.In, c.system.Out, c.system.Err) {
					return errSaid
				}
				return nil
			},
		},
	},
}

// actionChild is how an agent asks for one action.
type actionChild struct{ puppet, settings string }
