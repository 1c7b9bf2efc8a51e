// Package schedule gives orders of jobs at their time: once, or again and again at an interval.
//
// An entry is stored with its order as it was given. When its time comes, the order is submitted as its owner, with what the owner
// may do then: tasks are found in the code of that moment, and nodes are looked for then. The time is the server's clock. What was
// due while no server ran is given once when one starts; the next times are those of the interval from the start on.
//
// # Failure
//
// A run of an entry is ordered under a key (job.Spec.Key) that names the entry and the time, so that a server which dies between the order
// and the note of it orders the same job, and no second one. An order that is refused is noted with the reason, and the entry
// goes on to its next time; while the store cannot take it, it is tried again.
//
// # Secrets
//
// Sensitive parameters of a task are kept sealed, and go with the entry.
//
// # Errors
//
// Those of package submit for an order that cannot be given; NotFound; Conflict for an entry that somebody else changed meanwhile, that is
// disabled, or that is one too many; Invalid for times that cannot be.
//
// # Concurrency
//
// Run blocks and starts nothing that outlives it. All methods may be called concurrently.
package schedule

import (
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job/submit"
)

// Entry is an order and when it is given.
type Entry struct {
	ID       int64
	Revision int64 // of the row; each change takes the next
	Content
	Enabled bool
	NextRun time.Time // zero: there is none any more
	Sealed  []byte    // the task's secret parameters
}

// Content is what is said of an entry.
type Content struct {
	Order  submit.Order `json:"order"`            // without what is secret
	Hidden []string     `json:"hidden,omitempty"` // the names of that

	Owner     Owner         `json:"owner"`
	CreatedAt time.Time     `json:"created_at"`
	Start     time.Time     `json:"start"`
	Interval  time.Duration `json:"interval,omitempty"` // 0: once

	LastRun   time.Time `json:"last_run,omitzero"` // when it was due
	LastJob   int64     `json:"last_job,omitempty"`
	LastError string    `json:"last_error,omitempty"` // why it was refused
}

// Owner is who gives the order. A token that narrows its user narrows the entry as well.
type Owner struct {
	Kind     fleet.ActorKind `json:"kind"`
	Name     string          `json:"name"`
	Narrowed bool            `json:"narrowed,omitempty"`
	Within   []fleet.Grant   `json:"within,omitempty"`
}

func ownerOf(a fleet.Actor) Owner {
	return Owner{Kind: a.Kind, Name: a.Name, Narrowed: a.Narrowed, Within: a.Within}
}

// The bounds of entries.
const (
	MinInterval = time.Minute
	MaxInterval = 366 * 24 * time.Hour
	MaxEntries  = 1000
)

// checkTimes refuses times that cannot be.
func checkTimes(start time.Time, interval time.Duration, now time.Time) error {
	switch {
	case interval != 0 && (interval < MinInterval || interval > MaxInterval):
		return fault.New(fault.Invalid, "field interval: it is %s to %s, or none", MinInterval, MaxInterval)
	case interval == 0 && !start.After(now):
		return fault.New(fault.Invalid, "field start_time: %s is past; give a time to come", start.UTC().Format(time.RFC3339))
	case start.Before(now.Add(-MaxInterval)) || start.After(now.Add(10*MaxInterval)):
		return fault.New(fault.Invalid, "field start_time: %s is more than a year ago, or than ten years to come", start.UTC().Format(time.RFC3339))
	}
	return nil
}

// Next is the first time of an entry after a moment; zero if there is none.
func Next(start time.Time, interval time.Duration, after time.Time) time.Time {
	if start.After(after) {
		return start
	}
	if interval <= 0 {
		return time.Time{}
	}
	return start.Add((after.Sub(start)/interval + 1) * interval)
}
