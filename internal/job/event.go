package job

import (
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// What is the kind of an event in the life of a run.
type What uint8

// What can happen to a run.
const (
	WasSent    What = iota // the order is about to be sent for the first time
	WasNotSent             // it did not leave: its node is not connected
	WasResent              // it is about to be sent again
	WasAsked               // the node was asked how it stands
	WasLeft                // it was looked at, and there was nothing to do
	Accepted               // the node says that it has the order
	Ended                  // the node says how it ended
	NotRun                 // the node says why it did not run
	Unknown                // the node says that it does not know it
	ToldToStop             // the node is about to be told to stop it
	CannotStop             // the node says that it cannot stop runs
	DroppedOut             // the server gives up: the event says in which state
	Doubted                // an agent says that it does not know it, and may not be the one that has the order
)

// Event is one thing that happened to a run.
type Event struct {
	Run     string
	Node    fleet.Certname // who says so; empty: the server itself
	What    What
	At      time.Time
	Due     time.Time // when to look again, should it not end
	State   State     // of Ended, NotRun, ToldToStop and DroppedOut: how it ends
	Reason  string
	Outcome *Outcome // of Ended
}

// Outcome is what a node says of a run that ended.
type Outcome struct {
	ExitCode int
	Puppet   *PuppetResult
	Output   Output
	Chunks   []Chunk
	kept     bool // of a Puppet run: its agent applied the catalog that it keeps
}

// Verdict is what became of an event.
type Verdict uint8

// The verdicts.
const (
	Took    Verdict = iota // the run changed
	Same                   // the run is beyond that already
	Foreign                // another node's run
	Missing                // there is no such run
)

// Applied is what became of an event.
type Applied struct {
	Verdict Verdict
	Run     Run // as it is now; of Missing empty
	Job     Job // as it was after this event; of Took only
}

// Direction is somebody's wish for a job.
type Direction struct {
	Kill   bool // what runs, too
	Reason string
	At     time.Time
}

// Chunk is some lines of a run's output. Text holds them as EncodeLines makes them.
type Chunk struct {
	First int // number of the first line
	Count int
	At    time.Time
	Text  []byte
}
