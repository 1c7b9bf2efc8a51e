package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

var mcoPing = verb[mcoFlags]{
	use: "ping", short: "Ask who is there, as mco ping", prints: silent,
	long: `Ask agents whether they answer, and how fast. Each that does is a line; --timeout is 5 seconds if it is not given.

` + mcoHelp,
	example: "  tutti mco ping\n  tutti mco ping -F os.family=Debian -t 2",
	flags:   addMcoFlags,
	run: func(ctx context.Context, c *call, m *mcoFlags) error {
		if m.timeout == 0 {
			m.timeout = 5 * time.Second
		}
		if m.timeout < time.Millisecond || m.timeout > time.Minute {
			return usageError{fault.New(fault.Invalid, "--timeout is 1ms to 60 seconds, not %s", m.timeout)}
		}
		conditions, err := m.conditions(c.app)
		if err != nil {
			return err
		}
		request := api.NodePingRequest{Targets: api.JobTargets{Nodes: m.nodes}, Timeout: m.timeout.Milliseconds()} // nobody is named: those that are connected
		targetFlags{filter: conditions, limit: m.most(), seed: m.seed}.narrow(&request.Targets)
		words := []string{"ping"}
		if m.changesNodes() {
			words = append(words, m.nodeWords(conditions)...)
		}
		if c.changed("timeout") {
			words = append(words, "--timeout", print.Duration(m.timeout))
		}
		c.inTutti(words...)
		answer, err := ask(ctx, c.app, api.NodePing, request)
		if err != nil {
			return err
		}
		if m.json {
			if err := c.printer().JSON(answer.Items); err != nil {
				return err
			}
		} else if err := c.printer().Text(mcoPings(answer.Items)); err != nil {
			return err
		}
		if !slices.ContainsFunc(answer.Items, func(p api.Pong) bool { return p.Milliseconds != nil }) {
			return c.ends(mcoNothing)
		}
		return nil
	},
}

// changesNodes says whether flags say which nodes are meant.
func (m *mcoFlags) changesNodes() bool {
	return m.filtered() || m.compound != "" || m.most() != "" || m.source() != ""
}

var mcoFind = verb[mcoFlags]{
	use: "find", short: "Name the nodes for which conditions hold, as mco find", prints: silent,
	long: `Name the nodes that are connected and for which all conditions hold, one a line.

` + mcoHelp,
	example: "  tutti mco find\n  tutti mco find -S 'os.family=Debian and not role::db'",
	flags:   addMcoFlags,
	run: func(ctx context.Context, c *call, m *mcoFlags) error {
		conditions, err := m.conditions(c.app)
		if err != nil {
			return err
		}
		c.inTutti(append([]string{"ping", "-o", "name"}, m.nodeWords(conditions)...)...)
		found, err := c.discover(ctx, m, conditions)
		if err != nil {
			return err
		}
		switch {
		case m.json:
			err = c.printer().JSON(append([]string{}, found.nodes...))
		case len(found.nodes) > 0:
			err = c.printer().Text(strings.Join(found.nodes, "\n") + "\n")
		}
		if err != nil {
			return err
		}
		if m.verbose {
			c.says("Discovered %s in %.2f seconds", fault.Count(len(found.nodes), "node"), found.took.Seconds())
		}
		if len(found.nodes) == 0 {
			return c.ends(mcoNobody)
		}
		return nil
	},
}

var mcoRPC = verb[mcoFlags]{
	use: "rpc AGENT ACTION [NAME=VALUE]...", short: "Call any action, as mco rpc", prints: silent,
	args: agentAndAction,
	long: `Call an action of an agent, which Tutti calls a module, on all nodes that have it. An action that only reads is asked; one that changes
something is a job, which is waited for.

` + mcoHelp,
	example:  "  tutti mco rpc rpcutil get_fact fact=os.family\n  tutti mco rpc service restart service=nginx -C role::web --batch 10",
	complete: completeAction,
	flags:    addMcoFlags,
	run: func(ctx context.Context, c *call, m *mcoFlags) error {
		given, err := readParams(c.app, c.args[2:], paramFlags{}, secretParams{})
		if err != nil {
			return err
		}
		return c.callAndPrint(ctx, m, mcoQuestion{module: c.args[0], action: c.args[1], texts: given.texts})
	},
}

// agentAndAction takes an agent, an action and pairs.
func agentAndAction(_ *cobra.Command, args []string) error {
	if len(args) < 2 {
		return usageError{
			&fault.Error{Kind: fault.Invalid, Detail: "which agent and action? usage: tutti mco rpc AGENT ACTION [NAME=VALUE]...", Hint: "tutti action list"},
		}
	}
	for _, pair := range args[2:] {
		if !strings.Contains(pair, "=") {
			return usageError{fault.New(fault.Invalid, "%.80q is no input: that is NAME=VALUE", pair)}
		}
	}
	return nil
}

// callAndPrint calls an action and prints it as mco rpc does.
func (c *call) callAndPrint(ctx context.Context, m *mcoFlags, q mcoQuestion) error {
	p, err := c.callAction(ctx, m, q)
	if err != nil {
		return err
	}
	if err := c.printAnswers(m, p, p.text); err != nil {
		return err
	}
	return c.ends(p.code())
}

// printAnswers prints answers as JSON, or as text lays them out.
func (c *call) printAnswers(m *mcoFlags, p *mcoAnswers, text func() string) error {
	if m.json {
		return c.printer().JSON(p.forPrograms())
	}
	return c.printer().Text(text())
}
