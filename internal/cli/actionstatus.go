package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

// actionStatusInput selects calls.
type actionStatusInput struct {
	by, kind string
	limit    int
}

// pastAction is a call of an action as people and programs see it, whether it was asked or ordered as a job.
type pastAction struct {
	ID     string         `json:"id"`
	Kind   string         `json:"kind"` // call: it only read; job
	Action string         `json:"action"`
	Actor  string         `json:"actor"`
	State  string         `json:"state"` // ended, left: who asked left before its end; or a job's
	Nodes  int            `json:"nodes"`
	Counts map[string]int `json:"counts"` // of nodes, by state
	Began  time.Time      `json:"began_at"`
	Ended  *time.Time     `json:"ended_at,omitempty"`
}

var actionStatus = verb[actionStatusInput]{
	use: "status [CALL]", short: "Show which actions were called, by whom, and how that ended", args: callOrNone,
	prints: aList,
	long: `Show which actions were called, the newest first: calls that only read, which are recorded in short when they have ended (ids such as
c12), and jobs, of actions that change something (ids such as 12). With an id, one of them: which nodes were meant, what was given,
and how many nodes ended in which state. What nodes answered to a call is not kept; "tutti job show" has what a job's runs gave.`,
	example: "  tutti action status\n  tutti action status --by ann --limit 10 -o json\n  tutti action status c12",
	flags: func(f flagSet, in *actionStatusInput) {
		f.StringVar(&in.by, "by", "", "only calls of this user")
		f.StringVar(&in.kind, "kind", "", "call: only those that read; job: only those that change something")
		f.IntVar(&in.limit, "limit", 50, "how many")
		f.offers("kind", "call", "job")
	},
	run: func(ctx context.Context, c *call, in *actionStatusInput) error {
		switch {
		case len(c.args) == 0:
			return listPastActions(ctx, c, in)
		case isCall(c.args[0]):
			err := showAnswer(ctx, c.app, api.ActionCallShow, api.ActionCallRequest{Call: c.args[0]}, printCall)
			if fault.Is(err, fault.NotFound) { // "action list" lists modules
				return hinted(err, "see `tutti action status`; old records are dropped")
			}
			return err
		}
		j, err := ask(ctx, c.app, api.JobShow, api.JobRequest{Job: c.args[0]})
		if err != nil {
			return err
		}
		c.hint("What its runs gave: tutti job show %s", j.ID)
		return print.One(c.printer(), j, printJob)
	},
}

// isCall tells the id of a call from that of a job.
func isCall(id string) bool { return strings.HasPrefix(id, "c") }

// callOrNone takes the id of a call or a job, or nothing.
func callOrNone(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case len(args) == 1 && isCall(args[0]):
		return nil // the server says what is wrong with it
	}
	return oneJob(cmd, args)
}

func listPastActions(ctx context.Context, c *call, in *actionStatusInput) error {
	if in.limit < 1 {
		return usageError{fault.New(fault.Invalid, "--limit is a number of calls, 1 or more, not %d", in.limit)}
	}
	if !slices.Contains([]string{"", "call", "job"}, in.kind) {
		return usageError{fault.New(fault.Invalid, "--kind is call or job, not %.40q", in.kind)}
	}
	var all []pastAction
	if in.kind != "job" {
		calls, err := some(ctx, c.app, api.ActionCalls, api.ActionCallsRequest{Actor: in.by}, func(r *api.ActionCallsRequest, after string, limit int) {
			r.After, r.Limit = after, limit
		}, in.limit)
		if err != nil {
			return err
		}
		for _, one := range calls {
			all = append(all, pastCall(one))
		}
	}
	if in.kind != "call" {
		jobs, err := some(ctx, c.app, api.JobList, api.JobListRequest{Actor: in.by, Kind: "action"}, func(r *api.JobListRequest, after string, limit int) {
			r.After, r.Limit = after, limit
		}, in.limit)
		if err != nil {
			return err
		}
		for _, j := range jobs {
			all = append(all, pastAction{
				ID: j.ID, Kind: "job", Action: j.Title, Actor: j.Actor, State: j.State, Nodes: j.Nodes, Counts: j.Counts, Began: j.CreatedAt, Ended: j.FinishedAt,
			})
		}
	}
	slices.SortStableFunc(all, func(a, b pastAction) int { return b.Began.Compare(a.Began) })
	return print.List(c.printer(), all[:min(len(all), in.limit)], print.Table[pastAction]{
		Columns: []string{"id", "action", "state", "nodes", "answers", "began", "by"},
		Spare:   []string{"by", "began", "state"},
		Row: func(p pastAction) []any {
			answers := countsText(p.Counts)
			if p.Kind == "call" {
				answers = answersText(p.Counts)
			}
			return []any{p.ID, p.Action, p.State, p.Nodes, answers, p.Began, p.Actor}
		},
		Name:  func(p pastAction) string { return p.ID },
		Empty: "No such calls. `tutti action run` makes one.",
	})
}

func pastCall(one api.ActionCall) pastAction {
	return pastAction{
		ID: one.ID, Kind: "call", Action: one.Module + " " + one.Action, Actor: one.Actor, State: callState(one), Nodes: one.Nodes, Counts: one.Counts,
		Began: one.Began, Ended: &one.Ended,
	}
}

func callState(one api.ActionCall) string {
	if one.Left {
		return "left"
	}
	return "ended"
}

// answersText is how many nodes ended in which state, in the order of the codes.
func answersText(counts map[string]int) string {
	var words []string
	for code := action.Done; code <= action.Unasked; code++ {
		if n := counts[code.String()]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, code))
		}
	}
	return strings.Join(words, ", ")
}

func printCall(to print.Printer, one api.ActionCall) error {
	ended := print.Ago(one.Began, time.Now()) + ", after " + print.Duration(one.Ended.Sub(one.Began).Round(time.Millisecond))
	if one.Left {
		ended += "; who asked left before all had answered"
	}
	return to.Rows(nil, [][]string{
		{"Call", one.ID + ", " + one.Module + " " + one.Action},
		{"Asked by", one.Actor},
		{"Asked", ended},
		{"Targets", one.Targets},
		{"Input", cmp.Or(one.Input, "none")},
		{"Nodes", fmt.Sprintf("%d: %s", one.Nodes, answersText(one.Counts))},
	})
}
