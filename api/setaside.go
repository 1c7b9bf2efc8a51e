package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// What a server near its nodes acknowledged, and the database refused for good. These are about the server that answers.
var (
	SetAsideList = op[PageRequest, List[SetAside]](Operation{
		Name: "set_aside.list", Method: http.MethodGet, Path: "/set-aside", Permission: fleet.ServerDrain, Kind: Question,
		Summary: "List what this server took from nodes while it was cut off, and the database refused",
	})
	SetAsideShow = op[SetAsideRequest, SetAsideContent](Operation{
		Name: "set_aside.show", Method: http.MethodGet, Path: "/set-aside/{number}", Permission: fleet.ServerDrain, Kind: Question,
		Summary: "Show one of these with its content",
	})
	SetAsideRetry = op[SetAsideNumbers, SetAsideCount](Operation{
		Name: "set_aside.retry", Method: http.MethodPost, Path: "/set-aside/retry", Permission: fleet.ServerDrain, Kind: Act,
		Summary: "Hand some of these to the database again",
	})
	SetAsideDelete = op[SetAsideNumbers, SetAsideCount](Operation{
		Name: "set_aside.delete", Method: http.MethodPost, Path: "/set-aside/delete", Permission: fleet.ServerDrain, Kind: Act,
		Summary: "Delete some of these",
	})
)

func setAsideOperations() []Operation {
	return listed(SetAsideList, SetAsideShow, SetAsideRetry, SetAsideDelete)
}

// SetAside is a report, facts or events that the database refused.
type SetAside struct {
	Number string    `json:"number"` // in the order in which they came to this server
	Kind   string    `json:"kind"`   // report, facts, submission or events
	Node   string    `json:"node"`
	At     time.Time `json:"at"`    // when it came
	Bytes  int64     `json:"bytes"` // of the queue's room (near_queue_bytes)
	Reason string    `json:"reason"`
}

// SetAsideRequest names one.
type SetAsideRequest struct {
	Number string `path:"number"`
}

// SetAsideContent is one with its content: what the database would have had, or why it cannot be read.
type SetAsideContent struct {
	SetAside
	Content json.RawMessage `json:"content,omitempty"`
	Problem string          `json:"problem,omitempty"`
}

// SetAsideNumbers names some, at most 1000.
type SetAsideNumbers struct {
	Numbers []string `json:"numbers"`
}

// SetAsideCount is how many there were of those that were named.
type SetAsideCount struct {
	Count int `json:"count"`
}
