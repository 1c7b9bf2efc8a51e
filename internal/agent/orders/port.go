package orders

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Record is what is kept of a transaction. Its parameters are not: they may be secret.
type Record struct {
	Transaction string
	Requester   string // the URI that an outcome goes to
	Caller      string // who the requester asks for; empty: it does not say
	RequestID   string // of the message
	Module      string
	Action      string
	Blocking    bool // kept only while it runs
	Notify      bool // the requester wants the outcome
	Start, End  time.Time
	Status      Status
	Error       string // why there are no results; empty when there are
	Aborted     bool   // the error is an action's own word: see Aborted
	Stop        string // why it was told to stop; empty when it was not
	Delivered   bool   // the outcome was sent, or nobody wants it
}

// Status is how far a transaction is.
type Status string

// The states that are kept.
const (
	Running      Status = "running"
	Success      Status = "success" // the program ended with exit code 0
	Failure      Status = "failure"
	Undetermined Status = "undetermined" // nobody knows how it ended
)

// Over says whether a transaction has ended.
func (s Status) Over() bool { return s != Running }

// Output is what a program left.
type Output struct {
	Begun  bool   // a program was started, or the work inside the agent
	Exit   *int   // nil: it has not ended, or nobody knows how
	Ended  string // why it was ended before it ended by itself; one of the words of package pxp, or empty
	Stdout []byte
	Stderr []byte
}

// Spool keeps transactions, also while no agent runs.
//
// Everything may be called concurrently; only one caller at a time saves a
// transaction. What a call did survives a crash of the process once it returned. Errors:
// NotFound for a transaction that is not there, Conflict for one that is there
// already, Invalid for one whose record cannot be read, Unavailable when the disk
// is full or broken.
type Spool interface {
	// Begin keeps a new transaction and returns its place: where programs leave
	// their output, and where files may be put for it. A name that pxp.CheckTransaction
	// refuses is Invalid.
	Begin(Record) (place string, err error)
	// Place is the place of a transaction, whether there is one or not.
	Place(transaction string) string
	// Save replaces a record. For one that is over, files that were put at its place are removed.
	Save(Record) error
	Load(transaction string) (Record, error)
	// List returns all records that can be read, oldest first.
	List() ([]Record, error)
	// Output reads what was left at a transaction's place.
	Output(transaction string) (Output, error)
	// Write leaves the output of work that was done inside the agent.
	Write(transaction string, o Output) error
	// Remove forgets a transaction; one that is not there is no error.
	Remove(transaction string) error
	// Purge forgets what began before a time, and is over or cannot be read, unless
	// keep says otherwise. It returns how many it forgot.
	Purge(before time.Time, keep func(transaction string) bool) (int, error)
}

// Command is a program to run.
type Command struct {
	Path  string
	Args  []string
	Env   []string // KEY=value, beside what the agent itself has
	Input []byte   // for standard input
	Dir   string   // to work in; empty: the root

	Timeout time.Duration // after that it is ended; its output says so
}

// Runner runs programs that outlive the agent. A program is known by its place.
//
// Everything may be called concurrently. Errors: Unavailable when a program
// cannot be watched over; one that cannot be found or run at all is not an error, but exit code 127.
type Runner interface {
	// Start starts c; it leaves its output at place. When Start was called for a
	// place, and the program may have begun, then from there on either Alive
	// says true or the output there has an exit code, also after a crash of the agent;
	// if neither is so, the program was ended from outside, or, if the output is not begun, never
	// began and never will. After an error it does not run.
	Start(ctx context.Context, place string, c Command) error
	// Alive says whether a program runs, or has yet to leave its exit code.
	Alive(place string) bool
	// Wait returns when none is alive, or with ctx's error.
	Wait(ctx context.Context, place string) error
	// Stop asks the program at place to end, and ends it after a grace, with all it started. It
	// does not wait. Without a program it does nothing.
	Stop(place string) error
}

// Cache keeps the files that programs need.
//
// Everything may be called concurrently. Errors: Unavailable when no server gave
// a file, Invalid for content that is not what was announced. Their sentences go to the requester.
type Cache interface {
	// File returns the path of an executable file with the content and the base name
	// of f, which was checked just before.
	File(ctx context.Context, f pxp.FileSource) (path string, err error)
	// Install puts files below dir, each at its path with slashes.
	Install(ctx context.Context, dir string, files map[string]pxp.FileSource) error
	// Make makes a file, a directory or a symlink.
	Make(ctx context.Context, entry pxp.FileEntry) error
	// Purge removes what was not used since a time, and returns how many files.
	Purge(ctx context.Context, before time.Time) (int, error)
}
