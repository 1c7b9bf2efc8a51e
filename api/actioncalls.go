package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Calls of actions. Those that only read are asked, and their answers come as a stream; the others are jobs.
var (
	ActionAsk = stream[ActionAskRequest, ActionEvent](Operation{
		Name: "action.ask", Method: http.MethodPost, Path: "/actions/{module}/{action}/ask", Permission: fleet.ActionAsk, Kind: Act,
		Summary: "Ask an action that only reads of nodes, and stream their answers as they come, as server-sent events",
	})
	JobAction = op[JobActionRequest, JobStarted](Operation{
		Name: "job.action", Method: http.MethodPost, Path: "/jobs/action", Permission: fleet.ActionRun, Kind: Act,
		Summary: "Run an action of a module on nodes",
	})
	ActionCalls = op[ActionCallsRequest, List[ActionCall]](Operation{
		Name: "action.calls", Method: http.MethodGet, Path: "/calls", Permission: fleet.JobRead, Kind: Question,
		Summary: "List calls of actions that only read, newest first; their answers are not kept",
	})
	ActionCallShow = op[ActionCallRequest, ActionCall](Operation{
		Name: "action.call", Method: http.MethodGet, Path: "/calls/{call}", Permission: fleet.JobRead, Kind: Question,
		Summary: "Show a call of an action that only reads",
	})
	NodeMatch = op[NodeMatchRequest, List[NodeMatched]](Operation{
		Name: "node.match", Method: http.MethodPost, Path: "/match", Permission: fleet.NodeRead, Kind: Question,
		Summary: "Judge nodes by a filter, and say why each part holds or does not",
	})
)

// actionCallOperations is the operations of this file, in the order of the reference.
func actionCallOperations() []Operation {
	return listed(ActionAsk, JobAction, ActionCalls, ActionCallShow, NodeMatch)
}

// ActionInput is what an action is given.
type ActionInput struct {
	Input map[string]json.RawMessage `json:"input,omitempty"`
	// Texts are fields of the input as somebody typed them: the action's schema says whether "7" is a number or a text.
	Texts map[string]string `json:"texts,omitempty"`
}

// ActionAskRequest asks an action of nodes.
type ActionAskRequest struct {
	Module string `path:"module"`
	Action string `path:"action"`
	ActionInput
	Targets    JobTargets `json:"targets"`
	Timeout    int64      `json:"timeout,omitempty"`     // milliseconds that a node has to answer; 0: what the action says
	Batch      int        `json:"batch,omitempty"`       // nodes that are asked at a time; 0: all
	BatchSleep int64      `json:"batch_sleep,omitempty"` // milliseconds between two batches
	SkipDenied bool       `json:"skip_denied,omitempty"` // leave out nodes that the caller may not ask
}

// ActionEvent is what comes of a call: first who is asked, then an answer of each of those nodes.
type ActionEvent struct {
	Asked  *ActionAsked  `json:"asked,omitempty"`
	Answer *ActionAnswer `json:"answer,omitempty"`
}

// ActionAsked is the beginning of a call.
type ActionAsked struct {
	Module string `json:"module"`
	Nodes  int    `json:"nodes"`  // that are meant; each has one answer
	Action Action `json:"action"` // as action.show has it: what its results are, how they are shown and summed up
}

// ActionAnswer is what came of a call on one node.
type ActionAnswer struct {
	Node string `json:"node"`
	// ok, aborted, unknown action, missing data, invalid data, error, offline, denied, no answer, left, not asked
	State        string          `json:"state"`
	Message      string          `json:"message,omitempty"`      // why there are no results
	Data         json.RawMessage `json:"data,omitempty"`         // results, with ok and perhaps with aborted
	Milliseconds float64         `json:"milliseconds,omitempty"` // from the question to the answer, at the server
}

// ActionCallsRequest selects calls. Who may read jobs of some nodes only sees their own calls.
type ActionCallsRequest struct {
	Actor  string `query:"actor"`  // only calls of this user
	Module string `query:"module"` // only calls of this module
	After  string `query:"after"`
	Limit  int    `query:"limit"`
}

// ActionCallRequest names a call.
type ActionCallRequest struct {
	Call string `path:"call"`
}

// ActionCall is a call of an action that only reads, once it has ended.
type ActionCall struct {
	ID      string         `json:"id"` // c and a number
	Module  string         `json:"module"`
	Action  string         `json:"action"`
	Input   string         `json:"input"`   // JSON; sensitive values are "(hidden)", and it is cut after 1000 bytes
	Targets string         `json:"targets"` // which nodes were meant, in words; cut, too
	Actor   string         `json:"actor"`
	Nodes   int            `json:"nodes"`  // that were meant
	Counts  map[string]int `json:"counts"` // of nodes, by the state of their answer
	Began   time.Time      `json:"began_at"`
	Ended   time.Time      `json:"ended_at"`
	Left    bool           `json:"left,omitempty"` // who asked left before all had answered
}

// JobActionRequest orders an action.
type JobActionRequest struct {
	JobOrder
	ActionInput
	Module string `json:"module"`
	Action string `json:"action"`
}

// NodeMatchRequest judges nodes by the filter of targets, and by their limit. Without a filter, all that are named hold.
type NodeMatchRequest struct {
	Targets JobTargets `json:"targets"`
}

// NodeMatched is what a filter says of a node.
type NodeMatched struct {
	Node  string          `json:"node"`
	Holds string          `json:"holds"` // yes, no or unknown
	Parts []NodeMatchPart `json:"parts"`
}

// NodeMatchPart is a part of a filter.
type NodeMatchPart struct {
	Part  string `json:"part"`  // as it was given
	Holds string `json:"holds"` // yes, no or unknown
	Why   string `json:"why"`
}

// Each performs op on the server of c and hands over its events until it ends or each returns an error. A stream that breaks off is Unavailable:
// it cannot be taken up again.
func (op Stream[Request, Event]) Each(ctx context.Context, c *Client, request Request, each func(Event) error) error {
	answer, err := op.open(ctx, c, request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	ended := false
	err = readEvents(answer.Body, maxAnswerEvent, func(kind, data string) error {
		switch kind {
		case StreamEnded:
			ended = true
			return io.EOF
		case StreamChanged:
			var event Event
			if err := json.Unmarshal([]byte(data), &event); err != nil {
				return err
			}
			return each(event)
		}
		return nil // a heartbeat
	})
	switch {
	case ended:
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return fault.New(fault.Unavailable, "the server ended the answer of %s before its end", op.said.Name)
	}
	return err
}

// maxAnswerEvent is the longest event of a call, in bytes: an answer with its largest data.
const maxAnswerEvent = 80 << 20
