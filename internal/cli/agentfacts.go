package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/agent"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

type agentFactsInput struct {
	path string
	now  bool
	wait time.Duration
}

var agentFacts = verb[agentFactsInput]{
	use: "facts", short: "Show how the agent of this node submits facts, or have it done now",
	long: `Show when a server took facts of this node the last time, how many facts are watched because the node's catalog read
them, and when they are submitted next. With --now they are resolved and submitted at once; the command returns when a server
has taken them, or with exit code 8 when none has in the time of --wait. It must be asked by the user that the agent runs as.`,
	example: "  tutti agent facts\n  tutti agent facts --now\n  tutti agent facts -o json",
	flags: func(f flagSet, in *agentFactsInput) {
		addAgentFlags(f, &in.path)
		f.BoolVar(&in.now, "now", false, "submit the facts now, and wait until a server has taken them")
		f.duration(&in.wait, "wait", 5*time.Minute, "how long to wait for that")
	},
	run: func(ctx context.Context, c *call, in *agentFactsInput) error {
		config, err := localAgent(c, in.path)
		if err != nil {
			return err
		}
		status, err := agent.AskStatus(ctx, config)
		if err == nil && in.now {
			status, err = submitNow(ctx, config, in.wait)
		}
		if err != nil {
			return err
		}
		return print.One(c.printer(), status.Facts, print.Rows(func(f agent.FactsStatus) [][]string { return factsRows(f, time.Now()) }))
	},
}

// submitNow orders a submission and waits until a server has taken it.
func submitNow(ctx context.Context, config agent.Config, limit time.Duration) (agent.Status, error) {
	before, err := agent.AskFacts(ctx, config)
	if err != nil {
		return before, err
	}
	if before.Facts.Interval == "" {
		return before, fault.New(fault.Invalid, "this agent submits no facts: facts_interval is 0, or no server is set")
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			why := before.Facts.Problem
			if why == "" {
				why = "Facter has not ended yet"
			}
			return before,
				&fault.Error{Kind: fault.Unavailable, Detail: fmt.Sprintf("no server took the facts in %s: %s", print.Duration(limit), why), Err: api.ErrUnreachable}
		case <-tick.C:
		}
		status, err := agent.AskStatus(ctx, config)
		if err == nil && status.Facts.Number > before.Facts.Number {
			return status, nil
		}
		if err == nil {
			before.Facts.Problem = status.Facts.Problem
		}
	}
}

func factsRows(f agent.FactsStatus, now time.Time) [][]string {
	if f.Interval == "" {
		return [][]string{{"Facts", "are submitted with Puppet runs only"}}
	}
	text := "not submitted yet"
	if f.Accepted != nil {
		text = "submitted " + print.Ago(*f.Accepted, now)
	}
	if f.Queued {
		text += ", queued there"
	}
	if f.Waiting {
		text += "; newer ones wait for a server"
	}
	if f.Next != nil {
		text += ", next " + dueText(*f.Next, now)
	}
	watched := "none"
	if f.Watched > 0 {
		watched = fmt.Sprintf("%d that the catalog read, looked at %s", f.Watched, print.AgoOf(f.Looked, now))
	}
	rows := [][]string{{"Facts", text}, {"Watched facts", watched}}
	if f.Problem != "" {
		rows = append(rows, []string{"Facts problem", f.Problem})
	}
	return rows
}
