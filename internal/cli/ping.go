package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

type pingFlags struct {
	targets targetFlags
	timeout time.Duration
}

// ping answers like `mco ping`.
var ping = asking{verb[pingFlags]{
	use: "ping [NODE|@FILE|-]...", short: "Ask the agents of nodes whether they answer, and how fast", args: cobra.ArbitraryArgs,
	long: `Ask the agents of nodes whether they answer, and how fast: from the question to the answer, as seen by the server.
Without nodes, all are asked whose agent is connected. Nothing is run on a node, and nothing is stored.

` + whichNodes + `

A node that does not answer is named with the reason: its agent is away, and since when; it never had one; or it is
connected and silent. Then the exit code is 6.`,
	example: `  tutti ping
  tutti ping web-1.example.test web-2.example.test
  tutti ping --group 'Web servers' --timeout 2s
  tutti ping --all -o csv`,
	flags: func(f flagSet, in *pingFlags) {
		addTargetFlags(f, &in.targets)
		f.duration(&in.timeout, "timeout", 5*time.Second, "how long an agent has to answer, at most 1m")
	},
	complete: completeNodes,
	prints:   aList,
	run:      runPing,
}}

func runPing(ctx context.Context, c *call, in *pingFlags) error {
	if in.timeout < time.Millisecond || in.timeout > time.Minute {
		return usageError{fault.New(fault.Invalid, "--timeout is a duration of 1ms to 1m such as 5s, not %s", in.timeout)}
	}
	in.targets.names = append(in.targets.names, c.args...)
	request := api.NodePingRequest{Timeout: in.timeout.Milliseconds()}
	var err error
	if in.targets.some() {
		if request.Targets, err = readTargets(c.app, in.targets); err != nil {
			return err
		}
	} else {
		in.targets.narrow(&request.Targets)
		if request.Targets.Exclude, err = nodeNames(c.app, "exclude", in.targets.exclude, ""); err != nil {
			return err
		}
	}
	answer, err := ask(ctx, c.app, api.NodePing, request)
	if err != nil {
		return err
	}
	if err := print.List(c.printer(), answer.Items, pongTable(in.timeout)); err != nil {
		return err
	}
	text, all := pingStatistics(answer.Items)
	if !all {
		return jobOutcome{exitLate, text}
	}
	if len(answer.Items) > 0 {
		c.hint("%s", text)
	}
	if in.targets.some() {
		return nil
	}
	away, err := some(ctx, c.app, api.NodeList, api.NodeListRequest{Connected: "no"}, nextNodes, pageSize)
	away = slices.DeleteFunc(away, func(n api.Node) bool { return n.LastConnected == nil })
	if err == nil && len(away) > 0 { // who may not see nodes is told nothing
		c.hint("Not asked: %s whose agent is away (tutti ping --all asks for them, too)", fault.Count(len(away), "node"))
	}
	return nil
}

// some says whether nodes are named.
func (t targetFlags) some() bool {
	return t.all || len(t.names) > 0 || len(t.nodes) > 0 || t.group != "" || t.where != "" || t.query != "" || t.app != "" || t.filtered()
}

func pongTable(timeout time.Duration) print.Table[api.Pong] {
	now := time.Now()
	return print.Table[api.Pong]{
		Columns: []string{"node", "milliseconds", "agent", "problem"},
		Spare:   []string{"agent"},
		Row: func(p api.Pong) []any {
			agent := clientOf(api.Node{Connected: p.Connected, LastConnected: p.LastConnected})
			if p.Milliseconds == nil {
				return []any{p.Node, nil, agent, silenceText(p, timeout, now)}
			}
			return []any{p.Node, *p.Milliseconds, agent, nil}
		},
		Name:  func(p api.Pong) string { return p.Node },
		Empty: "No agent is connected. On a node: tutti agent join, then tutti agent install.",
	}
}

func millisecondsText(ms float64) string { return fmt.Sprintf("%.2f ms", ms) }

// silenceText is why a node did not answer.
func silenceText(p api.Pong, timeout time.Duration, now time.Time) string {
	switch {
	case p.Connected != nil:
		return "connected, and no answer within " + print.Duration(timeout)
	case p.LastConnected != nil:
		return "offline since " + print.Ago(p.LastConnected.Until, now)
	}
	return "no agent has ever connected"
}

// pingStatistics is what mco ping says at its end, and whether everybody answered.
func pingStatistics(pongs []api.Pong) (text string, all bool) {
	replies := fastestFirst(pongs)
	text = fmt.Sprintf("%d of %s replied", len(replies), fault.Count(len(pongs), "node"))
	if len(replies) > 0 {
		most, least, average := pingTimes(replies)
		text += fmt.Sprintf("; max: %s  min: %s  avg: %s", millisecondsText(most), millisecondsText(least), millisecondsText(average))
	}
	return text, len(replies) == len(pongs)
}

// fastestFirst is those that answered.
func fastestFirst(pongs []api.Pong) []api.Pong {
	replies := slices.DeleteFunc(slices.Clone(pongs), func(p api.Pong) bool { return p.Milliseconds == nil })
	slices.SortFunc(replies, func(a, b api.Pong) int {
		return cmp.Or(cmp.Compare(*a.Milliseconds, *b.Milliseconds), cmp.Compare(a.Node, b.Node))
	})
	return replies
}

// pingTimes are those of replies, of which there is one at least, the fastest first.
func pingTimes(replies []api.Pong) (most, least, average float64) {
	for _, p := range replies {
		average += *p.Milliseconds / float64(len(replies))
	}
	return *replies[len(replies)-1].Milliseconds, *replies[0].Milliseconds, average
}
