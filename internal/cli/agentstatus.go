package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/agent"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

type agentStatusInput struct {
	path string
	wait time.Duration
}

var agentStatus = verb[agentStatusInput]{
	use: "status", short: "Show how the agent of this node stands",
	long: `Show which server the agent is connected to, what it does, and which outcomes it still has to deliver. It must be asked by the
user that the agent runs as. With --wait it waits until the agent is connected; exit code 8 says that it is not by then.`,
	example: "  tutti agent status\n  tutti agent status -o json\n  tutti agent status --wait 30s",
	flags: func(f flagSet, in *agentStatusInput) {
		addAgentFlags(f, &in.path)
		f.duration(&in.wait, "wait", 0, "how long to wait until the agent is connected")
	},
	run: func(ctx context.Context, c *call, in *agentStatusInput) error {
		config, err := localAgent(c, in.path)
		if err != nil {
			return err
		}
		status, err := awaitAgent(ctx, config, in.wait)
		if err != nil {
			return err
		}
		err = print.One(c.printer(), status, print.Rows(statusRows))
		if err == nil && in.wait > 0 && !status.Connection.Connected {
			err = &fault.Error{Kind: fault.Unavailable, Detail: fmt.Sprintf("the agent is not connected after %s", print.Duration(in.wait)), Err: api.ErrUnreachable}
		}
		return err
	},
}

// awaitAgent asks until the agent is connected, or the time is over; then the last answer counts.
func awaitAgent(ctx context.Context, config agent.Config, limit time.Duration) (agent.Status, error) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	end := time.Now().Add(limit)
	for {
		status, err := agent.AskStatus(ctx, config)
		if err == nil && status.Connection.Connected || time.Now().After(end) || fault.Of(err) == fault.Denied {
			return status, err
		}
		select {
		case <-ctx.Done():
			return status, ctx.Err()
		case <-tick.C:
		}
	}
}

func statusRows(s agent.Status) [][]string {
	c, t, now := s.Connection, s.Transactions, time.Now()
	rows := [][]string{
		{"Node", s.Name},
		{"Agent", fmt.Sprintf("%s, process %d, started %s", s.Version, s.Process, print.Ago(s.Started, now))},
	}
	switch {
	case c.Connected:
		rows = append(rows, []string{"Connected", fmt.Sprintf("to %s, since %s", c.Server, print.Ago(*c.Since, now))})
	case c.Since == nil:
		rows = append(rows, []string{"Connected", "no, never; " + fault.Count(c.Attempts, "attempt")})
	default:
		rows = append(rows, []string{"Connected", fmt.Sprintf("no, since %s; %s", print.Ago(*c.Since, now), fault.Count(c.Attempts, "attempt"))})
	}
	if !c.Connected && c.Problem != "" {
		rows = append(rows, []string{"Problem", c.Problem})
	}
	rows = append(rows, []string{"Servers", joined(s.Servers)},
		[]string{"Orders", fmt.Sprintf("%d running, %d waiting, %d to be delivered, %d kept", t.Running, t.Waiting, t.Undelivered, t.Kept)})
	run := "none was ordered"
	if last := s.LastPuppetRun; last != nil {
		run = fmt.Sprintf("%s, %s (transaction %s)", last.Status, print.Ago(last.Start, now), last.Transaction)
	}
	rows = append(rows, []string{"Last Puppet run", run})
	rows = append(rows, catalogRows(s, now)...)
	for _, problem := range s.ModuleProblems {
		rows = append(rows, []string{"Module " + problem.Module, "cannot be used: " + problem.Reason})
	}
	return append(append(rows, factsRows(s.Facts, now)...), []string{"Certificate", certificateText(s.CertificateExpires, now)})
}

func certificateText(ends, now time.Time) string {
	if now.After(ends) {
		return "has expired: it ended on " + ends.Format(time.DateOnly) + "; `tutti agent doctor` says what to do"
	}
	return "good until " + ends.Format(time.DateOnly)
}

type agentDoctorInput struct{ path string }

var agentDoctor = verb[agentDoctorInput]{
	use: "doctor", short: "Look for what keeps the agent of this node from its work",
	long: `Check the certificate and its key, the revocation list, every server (it has to let this node in), the clock, the data
directory and its room, the policy, puppet, and the agent itself, and say how to mend what is broken. Nothing is changed.

Exit codes: 0 all is well, or warnings only; 1 something is broken; 8 only a server cannot be reached.`,
	example: "  tutti agent doctor\n  tutti agent doctor -o json",
	flags: func(f flagSet, in *agentDoctorInput) {
		addAgentFlags(f, &in.path)
	},
	run: func(ctx context.Context, c *call, in *agentDoctorInput) error {
		config, err := localAgent(c, in.path)
		if err != nil {
			return err
		}
		findings := agent.Doctor{Config: config, Version: api.ProgramVersion()}.Examine(ctx)
		if err := print.One(c.printer(), examined{findings}, print.Words(findingsText)); err != nil {
			return err
		}
		return verdict(findings)
	},
}

// examined is what the doctor found.
type examined struct {
	Checks []agent.Finding `json:"checks"`
}

// findingsText is a line for each finding, and below it how to mend what is not good.
func findingsText(e examined) string {
	var text strings.Builder
	for _, f := range e.Checks {
		fmt.Fprintf(&text, "%-8s %s: %s\n", f.State, f.Check, f.Found)
		if f.Mend != "" {
			fmt.Fprintf(&text, "         → %s\n", f.Mend)
		}
	}
	return text.String()
}

// verdict is the error that all findings together are.
func verdict(findings []agent.Finding) error {
	broken, reachable := 0, false
	for _, f := range findings {
		if f.State == agent.Broken {
			broken++
			reachable = reachable || !f.Unreachable
		}
	}
	switch {
	case broken == 0:
		return nil
	case reachable:
		return jobOutcome{exitFailed, fmt.Sprintf("%d of %s found something broken", broken, fault.Count(len(findings), "check"))}
	}
	return &fault.Error{
		Kind: fault.Unavailable, Detail: fmt.Sprintf("%d of %s found a server that is away", broken, fault.Count(len(findings), "check")), Err: api.ErrUnreachable,
	}
}
