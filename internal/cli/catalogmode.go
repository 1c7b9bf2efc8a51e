package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

type catalogModeInput struct{ group string }

var catalogMode = verb[catalogModeInput]{
	use: "mode [NODE] [live|released|unset]", short: "Show or set how nodes come to their catalogs", args: nodeAndMode,
	prints: results,
	long: `Show or set how nodes come to their catalogs:

  live      the newest catalog is the node's the moment it is there
  released  the node has what was released to it, whatever is compiled: see ` + "`tutti catalog release`" + `

The mode is the node's own, else that of the deepest group that has one and that the node is in, else the
server's setting delivery_mode. unset takes one away. When a node comes into released mode the catalog that it
has becomes a generation: nothing changes for it.

Without NODE and --group the modes that are set are listed.`,
	example: `  tutti catalog mode
  tutti catalog mode web-1.example.test
  tutti catalog mode web-1.example.test released
  tutti catalog mode --group 'Web servers' released
  tutti catalog mode web-1.example.test unset`,
	flags: func(f flagSet, in *catalogModeInput) {
		f.StringVar(&in.group, "group", "", "of the nodes of this group (name or id)")
		f.completes("group", completeGroup)
	},
	run: func(ctx context.Context, c *call, in *catalogModeInput) error {
		switch {
		case in.group == "" && len(c.args) == 0, in.group != "" && len(c.args) == 0:
			return listModes(ctx, c.app, in.group)
		case in.group != "":
			return setMode(ctx, c.app, api.GroupModeSet, api.GroupModeRequest{Group: in.group, Mode: unset(c.args[0])}, c.args[0])
		case len(c.args) == 1 && slices.Contains(modeWords, c.args[0]):
			return usageError{&fault.Error{
				Kind: fault.Invalid, Detail: "whose mode? " + c.args[0] + " is a mode, and no node is named",
				Hint: fmt.Sprintf("of a node: tutti catalog mode NODE %s; of all: tutti catalog mode --group 'All Nodes' %s", c.args[0], c.args[0]),
			}}
		case len(c.args) == 1:
			return showMode(ctx, c.app, c.args[0])
		}
		return setMode(ctx, c.app, api.NodeModeSet, api.NodeModeRequest{Name: c.args[0], Mode: unset(c.args[1])}, c.args[1])
	},
}

// modeWords are the modes as people write them.
var modeWords = []string{"live", "released", "unset"}

// nodeAndMode is at most a node and a mode, or with --group a mode.
func nodeAndMode(cmd *cobra.Command, args []string) error {
	most := 2
	if group, _ := cmd.Flags().GetString("group"); group != "" {
		most = 1
	}
	if len(args) > most {
		return oneTooMany(cmd, args[most])
	}
	return nil
}

// unset is a mode as requests have it.
func unset(word string) string {
	if word == "unset" {
		return ""
	}
	return word
}

func setMode[Request any](ctx context.Context, a *app, op api.Op[Request, api.ModeSwitched], request Request, word string) error {
	return showAnswer(ctx, a, op, request, print.Advice(func(m api.ModeSwitched) string {
		set := "set to " + word
		if word == "unset" {
			set = "taken away"
		}
		return fmt.Sprintf("The mode is %s; %s in another mode than before", set, fault.Are(m.Switched, "node"))
	}))
}

func showMode(ctx context.Context, a *app, node string) error {
	return showAnswer(ctx, a, api.NodeDelivery, api.NameRequest{Name: node}, func(to print.Printer, d api.Delivery) error {
		to.Hint("%s: %s", d.Name, modeFrom(d.ModeFrom, d.ModeGroup))
		return to.Linef("%s", d.Mode)
	})
}

// modeFrom says what a mode comes from.
func modeFrom(from, group string) string {
	switch from {
	case "node":
		return "set for the node itself"
	case "group":
		return "from the group " + group
	}
	return "the server's setting delivery_mode"
}

// listModes lists what is set; of one group, if that is given.
func listModes(ctx context.Context, a *app, group string) error {
	answer, err := ask(ctx, a, api.ModeList, api.Nothing{})
	if err != nil {
		return err
	}
	var items []api.ModeSet
	for _, m := range answer.Items {
		if group == "" || m.Group == group {
			items = append(items, m)
		}
	}
	return print.List(a.printer(), items, print.Table[api.ModeSet]{
		Columns: []string{"of", "name", "mode", "set", "by"},
		Row: func(m api.ModeSet) []any {
			if m.Group != "" {
				return []any{"group", m.Group, m.Mode, m.At, m.By}
			}
			return []any{"node", m.Node, m.Mode, m.At, m.By}
		},
		Name:  func(m api.ModeSet) string { return first(m.Group, m.Node) },
		Empty: "No mode is set: all nodes have that of the server's setting delivery_mode.",
	})
}
