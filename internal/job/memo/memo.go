// Package memo keeps what clients of the orchestrator write down here and that starts nothing by itself: the plans that they run
// themselves, with their outcome, and sets of tasks and nodes that they name.
//
// A plan is running until its client says how it ended; a restart of the server changes nothing of that. Jobs that a plan orders
// name it (job.Spec.Plan).
//
// Errors: NotFound, Invalid; what a store says is passed on. All methods may be called concurrently.
package memo

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Status is how a plan stands.
type Status string

// The states of a plan.
const (
	Running Status = "running"
	Success Status = "success"
	Failure Status = "failure"
)

// Plan is a plan that a client runs.
type Plan struct {
	ID         int64
	Actor      string
	ActorKind  fleet.ActorKind
	Status     Status
	CreatedAt  time.Time
	FinishedAt time.Time // zero: it runs
	PlanContent
}

// PlanContent is what a client says of a plan.
type PlanContent struct {
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Params      json.RawMessage `json:"params,omitempty"` // an object, without those that are sensitive
	Sensitive   []string        `json:"sensitive,omitempty"`
	Result      json.RawMessage `json:"result,omitempty"` // any value; nil: none was told
}

// End is how a plan ended.
type End struct {
	Status Status
	Result json.RawMessage
	At     time.Time
}

// Ended is the plan after it was told how it ended; the first word counts.
func (p Plan) Ended(e End) Plan {
	if p.Status == Running {
		p.Status, p.Result, p.FinishedAt = e.Status, e.Result, e.At
	}
	return p
}

// TaskTarget is tasks and the nodes that they are for.
type TaskTarget struct {
	ID int64
	TaskTargetContent
}

// TaskTargetContent is what a client says of a set.
type TaskTargetContent struct {
	DisplayName string   `json:"display_name"`
	Tasks       []string `json:"tasks,omitempty"`
	AllTasks    bool     `json:"all_tasks,omitempty"` // whatever Tasks has
	Nodes       []string `json:"nodes,omitempty"`
	NodeGroups  []string `json:"node_groups,omitempty"`
	Query       string   `json:"query,omitempty"`
}

// The bounds of a note.
const (
	MaxBytes   = 1 << 20 // of a plan's content, and of a set's, as JSON
	MaxTargets = 1000    // sets that are kept
)

// Check refuses what is too large.
func Check(content any) error {
	text, err := json.Marshal(content)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "it cannot be written as JSON")
	}
	if len(text) > MaxBytes {
		return fault.New(fault.Invalid, "it has %d bytes as JSON, at most %d are kept", len(text), MaxBytes)
	}
	return nil
}

// Page is which plans are wanted.
type Page struct {
	Limit, Offset               int
	Ascending                   bool // by ID; otherwise the newest first
	FinishedFrom, FinishedUntil time.Time
	Actor                       string // empty: all
}

// Store keeps notes. Each method is one transaction, and may be called concurrently.
type Store interface {
	// CreatePlan stores a plan and gives it its ID.
	CreatePlan(ctx context.Context, p Plan) (Plan, error)
	// FinishPlan does what Plan.Ended says to the stored plan. NotFound.
	FinishPlan(ctx context.Context, id int64, e End) (Plan, error)
	// Plan is one; NotFound.
	Plan(ctx context.Context, id int64) (Plan, error)
	// Plans is a page of plans, and how many there are of all pages.
	Plans(ctx context.Context, page Page) (plans []Plan, total int, err error)
	// PrunePlans forgets plans that ended before a time, and those that nobody ended and that are older than that. It counts them.
	PrunePlans(ctx context.Context, before time.Time) (int, error)
	// CreateTaskTarget stores a set and gives it its ID. Conflict: there are MaxTargets.
	CreateTaskTarget(ctx context.Context, t TaskTarget) (TaskTarget, error)
	// TaskTarget is one; NotFound.
	TaskTarget(ctx context.Context, id int64) (TaskTarget, error)
	// TaskTargets is all sets, by ID.
	TaskTargets(ctx context.Context) ([]TaskTarget, error)
}

// Full is the error for a set too many.
func Full() error {
	return fault.New(fault.Conflict, "%d task targets are kept, and no more can be", MaxTargets)
}
