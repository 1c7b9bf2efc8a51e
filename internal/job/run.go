package job

import (
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// State is the state of a run.
type State string

// The states of a run; see the package comment for how they follow each other.
const (
	Waiting   State = "waiting"   // for its turn, or for its node to connect
	Sent      State = "sent"      // the order may be on its way
	Running   State = "running"   // the node has said that it has the order
	Succeeded State = "succeeded" // it ran and went well
	RunFailed State = "failed"    // it ran and failed
	Errored   State = "errored"   // it could not be run
	TimedOut  State = "timed_out" // it took longer than it may
	Killed    State = "killed"    // somebody killed the job
	Refused   State = "refused"   // the node does not do this: its policy, or it lacks the module
	Offline   State = "offline"   // the node did not connect in time
	Skipped   State = "skipped"   // the job ended before its turn
	Lost      State = "lost"      // nobody knows whether or how it ended
)

// States is every state of a run, in the order of its life.
func States() []State {
	return []State{Waiting, Sent, Running, Succeeded, RunFailed, Errored, TimedOut, Killed, Refused, Offline, Skipped, Lost}
}

// Unfinished is the states that are not final.
func Unfinished() []State { return []State{Waiting, Sent, Running} }

// Final says whether a run has ended.
func (s State) Final() bool { return !slices.Contains(Unfinished(), s) }

// Run is one node's share of a job.
type Run struct {
	ID         string // a random UUID: the transaction on the wire
	Job        int64
	Number     int // its place in the job, from 1, in the order of names
	Node       fleet.Certname
	State      State
	Reason     string    // of every final state; of others, what there is to say
	Ending     State     // TimedOut or Killed: it was told to stop and will end so; empty: it was not
	SentAt     time.Time // for the first time
	StartedAt  time.Time
	FinishedAt time.Time
	DueAt      time.Time // when a run that was sent or runs is looked at again
	Attempts   int       // how often the order was sent, or the node was asked since it runs
	ExitCode   *int
	Puppet     *PuppetResult // of a Puppet run that ended
	Output     Output
	Change     int64 // the number of its latest change in the job
	Began      int64 // the number of the change with which its node had the order; 0: it never said so before the end
}

// PuppetResult is what a Puppet run says of itself.
type PuppetResult struct {
	Status      string         `json:"status"` // changed, unchanged, failed; unknown
	Transaction string         `json:"transaction_uuid"`
	Environment string         `json:"environment"`
	Metrics     map[string]int `json:"metrics,omitempty"`
	ErrorType   string         `json:"error_type,omitempty"`

	// The content of its report; see PuppetReport.
	Report  string `json:"report,omitempty"`
	Failed  int    `json:"failed,omitempty"`
	Pending int    `json:"pending,omitempty"`
	First   string `json:"first_failed,omitempty"`
	Message string `json:"message,omitempty"`
	Held    string `json:"held,omitempty"`           // why it was given the catalog that it had instead of a newer one
	Cached  bool   `json:"cached_catalog,omitempty"` // it applied an old catalog for want of a new one
}

// Output is how much a run wrote.
type Output struct {
	Lines  int
	Bytes  int64
	Digest fleet.Digest // the same for the same output; empty: there is none
	Cut    bool         // there was more than MaxOutputBytes
}

// Stream is where a line was written to.
type Stream string

// The streams.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Line is a line of a run's output, without its end.
type Line struct {
	Node   fleet.Certname
	Run    string
	Number int // from 1, within the run; standard output first
	Stream Stream
	At     time.Time // when the server had it
	Text   string    // UTF-8, at most MaxLineBytes
	More   bool      // the line goes on in the next one
}
