package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

var eventCommand = asking{noun{
	use: "event", short: "See what happens in Puppet runs and to agents, while it happens",
	verbs: []declared{eventTail, eventList},
}}

// eventChoice is the flags that say which events are wanted.
type eventChoice struct {
	api.EventStreamRequest
	since    string
	statuses []string
	types    []string
	kinds    []string
}

func (c *eventChoice) flags(f flagSet) {
	f.StringVar(&c.Node, "node", "", "only of this node")
	f.StringVar(&c.Where, "where", "", `only of nodes that a condition holds for, such as 'facts.os.family = "Debian"'`)
	f.completes("where", completeCondition)
	f.StringVar(&c.Job, "job", "", "only of the runs of this job")
	f.StringVarP(&c.Environment, "environment", "e", "", "only of runs in this environment")
	f.StringSliceVar(&c.statuses, "status", nil, "only these: success, failure, noop, audit, skipped; of runs that ended: changed, unchanged, failed, interrupted")
	f.StringSliceVar(&c.types, "type", nil, "only of resources of these types, such as File")
	f.StringSliceVar(&c.kinds, "kind", nil, "only these: begin, resource, missing, end, alarm, kept; of agents: startup, connect, shutdown, disconnect")
	f.StringVar(&c.since, "since", "", "what was stored since then: a duration such as 10m, or a time as 2026-11-22T10:00:00Z")
}

// request is what is asked for at a time.
func (c *eventChoice) request(now time.Time) (api.EventStreamRequest, error) {
	r := c.EventStreamRequest
	r.Status, r.Type, r.Kind = strings.Join(c.statuses, ","), strings.Join(typeNames(c.types), ","), strings.Join(c.kinds, ",")
	if c.since == "" {
		return r, nil
	}
	if d, err := parseDuration(c.since); err == nil && d >= 0 {
		r.Since = now.Add(-d).UTC().Format(time.RFC3339)
		return r, nil
	}
	at, err := time.Parse(time.RFC3339, c.since)
	if err != nil {
		return r, usageError{fault.New(fault.Invalid, "--since %q is neither a duration such as 10m nor a time as 2026-11-22T10:00:00Z", c.since)}
	}
	r.Since = at.UTC().Format(time.RFC3339)
	return r, nil
}

// typeNames writes types of resources as reports do: their first letter is a capital.
func typeNames(types []string) []string {
	names := make([]string, len(types))
	for i, name := range types {
		if name != "" {
			names[i] = strings.ToUpper(name[:1]) + strings.ToLower(name[1:])
		}
	}
	return names
}

type eventTailInput struct {
	choice eventChoice
	count  int
}

var eventTail = verb[eventTailInput]{
	use: "tail", short: "Follow what happens in Puppet runs and to agents",
	prints: asLines,
	long: `Follow what happens in Puppet runs and to agents, a line for each event, until Ctrl-C.

A lost connection is made again, and goes on behind the last event that was shown: none is left out, none comes twice.
With --after 0 everything that is kept comes first; the number of each event is in -o json.`,
	example: "  tutti event tail\n  tutti event tail --where 'facts.role = \"db\"' --status failure\n  tutti event tail --job 12 --since 1h -o jsonl",
	flags: func(f flagSet, in *eventTailInput) {
		in.choice.flags(f)
		f.StringVar(&in.choice.After, "after", "", "go on behind the event with this number")
		f.IntVar(&in.count, "count", 0, "end after so many events; 0: never")
	},
	run: func(ctx context.Context, c *call, in *eventTailInput) error {
		request, err := in.choice.request(time.Now())
		if err != nil {
			return err
		}
		if request.Since != "" && request.After != "" {
			return usageError{errors.New("give --since or --after, not both")}
		}
		client, err := c.client()
		if err != nil {
			return err
		}
		// A stream is connected to again and again. A server that was never there, or a question that is wrong, is said at once.
		if _, err := api.EventList.Call(ctx, client, api.EventListRequest{Limit: 1, Where: request.Where, Status: request.Status, Kind: request.Kind}); err != nil {
			return err
		}
		left := in.count
		err = client.FollowEvents(ctx, request, func(e api.Event) error {
			if err := printEvent(c.app, e); err != nil {
				return err
			}
			if left--; in.count > 0 && left == 0 {
				return errEnough
			}
			return nil
		}, func(s api.EventSpan) { c.hint("Events before number %d are not kept any more.", s.First) },
			func(err error) { c.hint("%s; trying again", explain(err)) }, func() { c.hint("connected again") })
		if errors.Is(err, errEnough) || errors.Is(err, context.Canceled) && ctx.Err() != nil {
			return nil // that is how it ends
		}
		return err
	},
}

var errEnough = errors.New("enough events")

type eventListInput struct {
	choice eventChoice
	after  string
	limit  int
}

var eventList = verb[eventListInput]{
	use: "list", short: "List what happened in Puppet runs and to agents, newest first",
	prints:  aList,
	example: "  tutti event list --status failure --since 24h\n  tutti event list --node web-1.example.test --type Service",
	flags: func(f flagSet, in *eventListInput) {
		in.choice.flags(f)
		f.IntVar(&in.limit, "limit", 50, "at most this many, 1 to 1000")
		f.StringVar(&in.after, "after", "", "go on where the page before ended")
	},
	run: func(ctx context.Context, c *call, in *eventListInput) error {
		r, err := in.choice.request(time.Now())
		if err != nil {
			return err
		}
		events, err := ask(ctx, c.app, api.EventList, api.EventListRequest{
			After: in.after, Limit: in.limit, Since: r.Since, Node: r.Node, Where: r.Where, Job: r.Job, Environment: r.Environment,
			Kind: r.Kind, Status: r.Status, Type: r.Type,
		})
		if err != nil {
			return err
		}
		err = print.List(c.printer(), events.Items, print.Table[api.Event]{
			Columns: []string{"number", "time", "node", "status", "what"},
			Spare:   []string{"number"},
			Row: func(e api.Event) []any {
				return []any{e.Number, e.Time, e.Node, print.State(eventStatus(e)), eventText(e)}
			},
			Name:  func(e api.Event) string { return fmt.Sprint(e.Number) },
			Empty: "No events.",
		})
		if err == nil && events.Next != "" {
			c.hint("There are more: --after %s", events.Next)
		}
		return err
	},
}

// printEvent prints an event as it comes.
func printEvent(a *app, e api.Event) error {
	switch a.output {
	case "json", "jsonl":
		return print.Line(a.system.Out, e)
	case "name":
		return a.printer().Linef("%d", e.Number)
	}
	return a.printer().Text(colouredEvent(eventLine(e), e, a.coloured(a.system.Width > 0)) + "\n")
}

// eventLine is one line about an event.
func eventLine(e api.Event) string {
	return e.Time.Local().Format("15:04:05.000") + "  " + e.Node + "  " + eventStatus(e) + "  " + eventText(e)
}

// kindsOfTheirOwn are events that have no status: their kind is the word.
var kindsOfTheirOwn = []string{"begin", "missing", "alarm", "kept", "startup", "connect", "shutdown", "disconnect"}

// eventStatus is the word for what became of it.
func eventStatus(e api.Event) string {
	switch {
	case slices.Contains(kindsOfTheirOwn, e.Kind):
		return e.Kind
	case e.Corrective && e.Status == "success":
		return "corrective"
	}
	return e.Status
}

// eventText says what happened.
func eventText(e api.Event) string {
	switch e.Kind {
	case "begin":
		text := "run begins"
		if e.Job != "" {
			text += " for job " + e.Job
		}
		if e.Noop {
			text += ", noop"
		}
		return text + " (" + e.Environment + ")"
	case "end":
		text := "run ends"
		switch {
		case e.Pending > 0:
			text += ", " + wouldChange(e.Pending)
		case e.Noop:
			text += ", noop"
		}
		return text + " (" + e.Environment + ")"
	case "alarm":
		return "ALARM: " + print.OneLine(e.Message)
	case "kept":
		return print.OneLine(e.Message)
	case "startup", "connect", "shutdown", "disconnect":
		return agentText(e)
	case "missing":
		return fault.Are(e.Missing, "event") + " missing: the node had no room"
	}
	text := e.Type + "[" + e.Title + "]"
	if e.Property != "" {
		text += "/" + e.Property
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return print.OneLine(text)
}

// agentText says what happened to an agent.
func agentText(e api.Event) string {
	text := map[string]string{"startup": "agent started", "connect": "agent connected", "shutdown": "agent stops", "disconnect": "agent disconnected"}[e.Kind]
	if e.Message != "" {
		text += ": " + print.OneLine(e.Message)
	}
	if e.Missing > 0 {
		text += fmt.Sprintf(" (%s before this are not listed)", fault.Count(e.Missing, "event"))
	}
	return text
}

// colouredEvent shows failures red, changes green or, when they put right what somebody else changed, yellow.
func colouredEvent(line string, e api.Event, colours bool) string {
	colour := ""
	switch status := eventStatus(e); status {
	case "failure", "failed", "interrupted", "missing", "alarm":
		colour = "31"
	case "success", "changed":
		colour = "32"
	case "corrective":
		colour = "33"
	case "noop", "audit":
		colour = "36"
	case "skipped", "unchanged", "begin", "startup", "connect", "shutdown", "disconnect":
		colour = "2"
	}
	if e.Pending > 0 && colour == "2" {
		colour = "36"
	}
	if !colours || colour == "" {
		return line
	}
	return "\x1b[" + colour + "m" + line + "\x1b[0m"
}
