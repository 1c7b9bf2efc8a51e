package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
)

var mcoPlugin = verb[api.Nothing]{
	use: "plugin doc [AGENT]", short: "Tell what an agent can do, as mco plugin doc", prints: silent, args: pluginDoc,
	long: `Tell what an agent, which Tutti calls a module, can do: its actions, what they take and what they give. Without a name, list those that nodes
have. mco plugin package has no place here: modules are part of the code, and tutti action new writes one.`,
	example: "  tutti mco plugin doc\n  tutti mco plugin doc service",
	run: func(ctx context.Context, c *call, _ *api.Nothing) error {
		if len(c.args) == 1 {
			c.inTutti("action", "list")
			return actionList.run(ctx, c, &actionListInput{})
		}
		name := agentName(c.args[1])
		c.inTutti("action", "show", name)
		return actionShow.run(ctx, c, &actionShowInput{module: name})
	},
}

// pluginDoc takes doc, and perhaps the name of an agent.
func pluginDoc(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 || args[0] != "doc":
		return usageError{&fault.Error{
			Kind: fault.Invalid, Detail: "of mco plugin there is doc alone; usage: " + cmd.UseLine(),
			Hint: "a module is written by `tutti action new`, and translated by `tutti action import`",
		}}
	case len(args) > 2:
		return oneTooMany(cmd, args[2])
	}
	return nil
}

// agentName is the name of an agent that mco may call agent/NAME.
func agentName(word string) string {
	if name, ok := strings.CutPrefix(word, "agent/"); ok {
		return name
	}
	return word
}

var mcoHelpVerb = verb[api.Nothing]{
	use: "help [COMMAND]", short: "Say what mco's commands do, as mco help", prints: silent, args: atMostOne,
	example: "  tutti mco help\n  tutti mco help rpc",
	run: func(_ context.Context, c *call, _ *api.Nothing) error {
		mco := c.cmd.Parent()
		about, rest, err := mco.Find(c.args)
		if err != nil {
			return err
		}
		if err := noVerb(about, rest); err != nil {
			return err
		}
		return about.Help()
	},
}
