package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Operations on the events of Puppet runs.
var (
	EventStream = stream[EventStreamRequest, Event](Operation{
		Name: "event.stream", Method: http.MethodGet, Path: "/events", Permission: fleet.ReportRead, Kind: Question,
		Summary: "Stream what happens in Puppet runs, as server-sent events",
	})
	EventList = op[EventListRequest, List[Event]](Operation{
		Name: "event.list", Method: http.MethodGet, Path: "/events/history", Permission: fleet.ReportRead, Kind: Question,
		Summary: "List what happened in Puppet runs, newest first",
	})
)

// eventOperations is the operations of this file, in the order of the reference.
func eventOperations() []Operation { return listed(EventStream, EventList) }

// The stream of event.stream is server-sent events: "id" is the number of the event, "data" an Event. A position comes
// every EventHeartbeat when there is nothing else: its id is the number up to which nothing was left out.
const (
	EventHeartbeat = 15 * time.Second
	EventHappened  = "event"
	EventPosition  = "position"
	EventsPruned   = "pruned" // what was asked for is not kept any more; its data is an EventSpan
)

// EventStreamRequest asks for a stream. A header Last-Event-ID wins over After. Lists are separated by commas.
type EventStreamRequest struct {
	After       string `query:"after"` // the number of the last event that is known; empty: from now on; 0: all that are kept
	Since       string `query:"since"` // instead of after: stored at this time (RFC 3339) or later
	Node        string `query:"node"`
	Where       string `query:"where"` // a condition on nodes
	Job         string `query:"job"`
	Environment string `query:"environment"`
	Kind        string `query:"kind"`   // begin, resource, missing, end, alarm, startup, connect, shutdown, disconnect
	Status      string `query:"status"` // success, failure, noop, audit, skipped; of runs that ended: changed, unchanged, failed, interrupted
	Type        string `query:"type"`   // of the resource
}

// EventListRequest asks for a page of what happened. After is Next of the page before.
type EventListRequest struct {
	After       string `query:"after"`
	Limit       int    `query:"limit"`
	Since       string `query:"since"` // stored at this time (RFC 3339) or later
	Node        string `query:"node"`
	Where       string `query:"where"`
	Job         string `query:"job"`
	Environment string `query:"environment"`
	Kind        string `query:"kind"`
	Status      string `query:"status"`
	Type        string `query:"type"`
}

// Event is one thing that happened in a Puppet run, or to a node's agent; that belongs to no run.
type Event struct {
	Number      int64           `json:"number"` // grows over all runs
	Node        string          `json:"node"`
	Run         string          `json:"run"`           // the transaction_uuid of its report
	Job         string          `json:"job,omitempty"` // that ordered the run
	N           int             `json:"n"`             // its number in the run
	Kind        string          `json:"kind"`          // begin, resource, missing, end, alarm, startup, connect, shutdown, disconnect
	Time        time.Time       `json:"time"`
	StoredAt    time.Time       `json:"stored_at"`
	Environment string          `json:"environment,omitempty"`
	Noop        bool            `json:"noop,omitempty"`
	Status      string          `json:"status,omitempty"`
	Type        string          `json:"type,omitempty"`
	Title       string          `json:"title,omitempty"`
	Property    string          `json:"property,omitempty"`
	Name        string          `json:"name,omitempty"`
	Message     string          `json:"message,omitempty"`
	Old         json.RawMessage `json:"old,omitempty"`
	New         json.RawMessage `json:"new,omitempty"`
	Redacted    bool            `json:"redacted,omitempty"`
	Corrective  bool            `json:"corrective,omitempty"`
	File        string          `json:"file,omitempty"`
	Line        int             `json:"line,omitempty"`
	Containment []string        `json:"containment,omitempty"`
	Pending     int             `json:"pending,omitempty"`  // of end: how many resources noop kept from changing
	Missing     int             `json:"missing,omitempty"`  // of missing: how many events the node had to drop; of agents: how many before this one are not listed
	Version     string          `json:"version,omitempty"`  // of end: the version that was applied
	Reported    bool            `json:"reported,omitempty"` // it was made from the run's report
}

// EventSpan is which events there are.
type EventSpan struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// FollowEvents hands over what happens in Puppet runs until each returns an error. It connects again when the
// connection is lost, and goes on where it was: no event is left out, none comes twice. pruned is told when events
// that were wanted are not kept any more; lost and back are told as by FollowJob.
func (c *Client) FollowEvents(ctx context.Context, request EventStreamRequest, each func(Event) error, pruned func(EventSpan),
	lost func(error), back func(),
) error {
	after, err := strconv.ParseInt(request.After, 10, 64)
	if err != nil {
		after = -1 // the server says where it begins, or what is wrong
	}
	f := follower{
		after: after, back: back,
		open: func(ctx context.Context, after int64) (*http.Response, error) {
			if after >= 0 {
				request.After, request.Since = strconv.FormatInt(after, 10), ""
			}
			return EventStream.open(ctx, c, request)
		},
		take: func(kind, data string, f *follower) error {
			switch kind {
			case EventHappened:
				var e Event
				if err := json.Unmarshal([]byte(data), &e); err != nil {
					return err
				}
				return f.pass(e.Number, func() error { return each(e) })
			case EventPosition:
				var span EventSpan
				if err := json.Unmarshal([]byte(data), &span); err != nil {
					return err
				}
				f.after = max(f.after, span.Last)
			case EventsPruned:
				var span EventSpan
				if err := json.Unmarshal([]byte(data), &span); err != nil {
					return err
				}
				pruned(span)
			}
			return nil
		},
	}
	return f.follow(ctx, c.server.Host, lost)
}
