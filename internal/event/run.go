package event

import (
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Run is what is known of one run.
type Run struct {
	Node        fleet.Certname
	ID          string
	Job         int64
	Environment string
	First       int64 // the number of its first event; 0: it has none
	Last        int   // its node's number of the last event that is stored
	Began       time.Time
	Ended       time.Time // zero: its node has not said so
	Status      string
	Missing     int          // events that its node had to drop
	Report      fleet.Digest // empty: it is not there yet
	ReportedAt  time.Time
	Settled     bool // compared with its report, or made from it
}

// Take says which of some events are new, and how the run stands after them. last is what the node is told:
// it may forget everything up to there.
func (r Run) Take(events []pxp.RunEvent) (after Run, fresh []pxp.RunEvent, last int) {
	if len(events) > 0 && !r.Ended.IsZero() {
		return r, nil, max(r.Last, events[len(events)-1].Last())
	}
	for _, e := range events {
		switch {
		case e.Last() <= r.Last: // it is stored
			continue
		case e.N > r.Last+1: // something is missing before it
			return r, fresh, r.Last
		case e.N <= r.Last: // a part of what is missing was there
			e.Missing, e.N = e.Last()-r.Last, r.Last+1
		}
		fresh = append(fresh, e)
		if r = r.step(e); !r.Ended.IsZero() {
			return r, fresh, max(r.Last, events[len(events)-1].Last())
		}
	}
	return r, fresh, r.Last
}

// step is the run after one more event.
func (r Run) step(e pxp.RunEvent) Run {
	r.Last = e.Last()
	if e.Environment != "" {
		r.Environment = e.Environment
	}
	switch e.Kind {
	case pxp.RunBegan:
		r.Began = e.At
	case pxp.EventsMissing:
		r.Missing += e.Missing
	case pxp.RunEnded:
		r.Ended, r.Status = e.At, e.Status
	}
	return r
}

// Rows makes rows of events of the run, numbered from first on.
func (r Run) Rows(events []pxp.RunEvent, first int64, reported bool, now time.Time) []Event {
	rows := make([]Event, len(events))
	for i, e := range events {
		if e.Environment == "" {
			e.Environment = r.Environment
		}
		rows[i] = Event{Number: first + int64(i), Node: r.Node, Run: r.ID, Job: r.Job, Reported: reported, StoredAt: now, RunEvent: e}
	}
	return rows
}
