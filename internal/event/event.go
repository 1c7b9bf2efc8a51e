package event

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Event is one row of the stream.
type Event struct {
	Number   int64
	Node     fleet.Certname
	Run      string // the transaction_uuid of its report
	Job      int64  // that ordered the run; 0: none did
	Reported bool   // it was made from the run's report
	StoredAt time.Time
	pxp.RunEvent
}

// The states of resource events; see pxp.RunEvent.
const (
	Success = "success"
	Failure = "failure"
	Noop    = "noop"
	Audit   = "audit"
	Skipped = "skipped"
)

// The states of a run that ended.
const (
	Changed     = "changed"
	Unchanged   = "unchanged"
	Failed      = "failed"
	Interrupted = pxp.RunInterrupted
)

// Alarm is the kind of an event that the server itself adds, and no node can send: a catalog is not what plain Puppet gives.
const Alarm = "alarm"

// Kept is the kind of an event that a server adds, and no node can send: it gave a node the catalog that it knew last, because it could not reach the records.
const Kept = "kept"

// Statuses is every status that an event can have.
func Statuses() []string {
	return []string{Success, Failure, Noop, Audit, Skipped, Changed, Unchanged, Failed, Interrupted}
}

// Kinds is every kind of event.
func Kinds() []string {
	return []string{pxp.RunBegan, pxp.ResourceEvent, pxp.EventsMissing, pxp.RunEnded, Alarm, Kept, Startup, Connect, Shutdown, Disconnect}
}

// Batch is events of one run, as its node sent them.
type Batch struct {
	Node   fleet.Certname
	Run    string
	Events []pxp.RunEvent // each follows on the one before
}

// Taken is what became of a batch.
type Taken struct {
	Node fleet.Certname
	Run  string
	Last int // everything up to here is stored, or never will be: the node may forget it
	New  int // rows that were stored
}

// Filter is which events are wanted. Empty fields ask for all.
type Filter struct {
	After       int64 // numbers above this
	Before      int64 // numbers below this; 0: to the end
	Newest      bool  // the newest first
	Limit       int
	Node        fleet.Certname
	Run         string
	Job         int64
	Environment string
	Kinds       []string
	Statuses    []string
	Types       []string
}

// Span is which numbers there are.
type Span struct {
	First int64 // the smallest that is kept; Last+1 when none is
	Last  int64 // the largest that was ever given
}

// Store keeps the stream. Every method is one transaction, may be called concurrently, and keeps no slice that
// it is given. What a method that writes has returned survives a crash.
type Store interface {
	// TakeEvents stores what is new in batches, as Run.Take says, and numbers it. A begin that names a
	// PXP transaction links its run to the job that has a run of that name on this very node. The numbers of
	// what is stored are above all that any reader can see, and become visible together and in order.
	TakeEvents(ctx context.Context, batches []Batch, now time.Time) ([]Taken, error)
	// AddEvents stores events that belong to no run, and numbers them as TakeEvents does.
	AddEvents(ctx context.Context, events []Event, now time.Time) error
	// Events is what a filter asks for, in order of its numbers; the newest first if it says so.
	Events(ctx context.Context, f Filter) ([]Event, error)
	// EventSpan is which numbers there are.
	EventSpan(ctx context.Context) (Span, error)
	// EventsSince is the smallest number that was stored at a time or later; Last+1 when none was.
	EventsSince(ctx context.Context, t time.Time) (int64, error)
	// PruneEvents forgets what was stored before a time, some rows at a time, and counts it.
	PruneEvents(ctx context.Context, before time.Time) (int, error)

	Settler
}

// Settler brings runs and their reports together.
type Settler interface {
	// Unsettled is at most n runs whose report is stored, and that are not settled: those whose node has said that they
	// ended, or said nothing at all, and those whose report is older than a time.
	Unsettled(ctx context.Context, reportedBefore time.Time, n int) ([]Unsettled, error)
	// SettleRuns adds what settlements say, and marks their runs. One whose run has changed since it was
	// looked at is passed over. It returns the others.
	SettleRuns(ctx context.Context, settlements []Settlement, now time.Time) ([]Settlement, error)
}
