package job

import (
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Status is the state of a job.
type Status string

// The states of a job; see the package comment for how they follow each other.
const (
	Queued   Status = "queued"   // nothing was sent yet
	Working  Status = "running"  // it goes on
	Stopping Status = "stopping" // nothing more begins; it waits for what runs
	Finished Status = "finished" // every run succeeded
	Failed   Status = "failed"   // at least one run did not
	Stopped  Status = "stopped"  // somebody stopped it
)

// Final says whether a job has ended.
func (s Status) Final() bool { return s == Finished || s == Failed || s == Stopped }

// Statuses is every state of a job.
func Statuses() []Status { return []Status{Queued, Working, Stopping, Finished, Failed, Stopped} }

// Job is one order over many nodes.
type Job struct {
	ID         int64
	Spec       Spec
	Actor      string // who ordered it
	ActorKind  fleet.ActorKind
	Status     Status
	Reason     string // why it stops or stopped
	Halted     bool   // somebody stopped it
	Killed     bool   // what runs is stopped, too
	RerunOf    int64  // 0: of none
	CreatedAt  time.Time
	StartedAt  time.Time // the first run was sent
	StoppingAt time.Time // somebody stopped it, or its failure budget was used up; zero: neither
	FinishedAt time.Time
	Counts     Counts // its runs by state
	Change     int64  // the number of the latest change of the job or of one of its runs
	OwnChange  int64  // the number of the latest change of the job's status
	StopChange int64  // the number of the change with which it began to stop; 0: it did not
	Edges      []Edge // of an ordered job, by Run and For
}

// Edge says that a run of a job waits for another one, by their numbers.
type Edge struct {
	Run int `json:"run"`
	For int `json:"for"`
}

// Counts is how many runs are in each state.
type Counts map[State]int

// Total is all of them.
func (c Counts) Total() int {
	n := 0
	for _, count := range c {
		n += count
	}
	return n
}

// Active is how many were sent and have not ended.
func (c Counts) Active() int { return c[Sent] + c[Running] }

// Open is how many have not ended.
func (c Counts) Open() int { return c[Waiting] + c.Active() }

// Failures is how many count against the failure budget: those that were tried and
// did not succeed.
func (c Counts) Failures() int {
	return c[RunFailed] + c[Errored] + c[TimedOut] + c[Refused] + c[Lost]
}
