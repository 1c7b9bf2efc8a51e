package job

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/graph"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// The ports below are what this package needs of others. All methods may be
// called concurrently, and keep no slice that they are given.

// Store keeps jobs, their runs and what these wrote. Every method is one
// transaction; what a method that writes has returned survives a crash. The
// bulk of a job's spec (Spec.Apart) and its edges are only in what Archive.Job returns.
//
// Wide: the sum of its parts, each a port of its own.
type Store interface {
	Ledger
	Archive
}

// Ledger is what jobs do with their rows. What becomes of a run and its job is what
// Job.Advance and Job.Direct say of the rows as they are in the transaction: stores decide nothing.
type Ledger interface {
	// CreateJob stores a job with its runs and gives it its ID; sealed is what is
	// secret in it, nil if nothing is. If there is a job with its spec's key already, that is returned and nothing is stored.
	CreateJob(ctx context.Context, j Job, runs []Run, sealed []byte) (Job, error)
	// Apply steps runs through events, in order, and their jobs with them: each applied
	// event changes the run, the counts and perhaps the status of its job, and
	// takes the next number of the job's changes. The output of an event is
	// stored if it was applied. What a job kept sealed goes when it has ended. An event that does
	// nothing is no error: its verdict says why.
	Apply(ctx context.Context, events []Event) ([]Applied, error)
	// Direct stops a job; a job that has ended stays as it is. NotFound.
	Direct(ctx context.Context, id int64, order Direction) (Job, error)
	// Unended is all jobs that have not ended, by ID.
	Unended(ctx context.Context) ([]Job, error)
	// WaitingRuns is at most n waiting runs of a job behind a number, by Number.
	WaitingRuns(ctx context.Context, id int64, after, n int) ([]Run, error)
	// Due is at most n runs of all jobs that were sent or run and whose DueAt is
	// not after now, the longest due first.
	Due(ctx context.Context, now time.Time, n int) ([]Run, error)
	// UnfinishedOf is all runs of these nodes that have not ended, by job and Number.
	UnfinishedOf(ctx context.Context, nodes []fleet.Certname) ([]Run, error)
	// Sealed is what CreateJob was given; nil if there is nothing, or nothing any more. NotFound.
	Sealed(ctx context.Context, id int64) ([]byte, error)
	// PruneJobs forgets jobs that ended before a time, with all that is theirs, and counts them.
	PruneJobs(ctx context.Context, before time.Time) (int, error)
}

// Archive is what people ask.
type Archive interface {
	// Job is one job; NotFound.
	Job(ctx context.Context, id int64) (Job, error)
	// Jobs is a page of jobs, the newest first unless it says otherwise.
	Jobs(ctx context.Context, page Page) ([]Job, error)
	// CountJobs is how many jobs there are, whatever page's Limit and Offset.
	CountJobs(ctx context.Context, page Page) (int, error)
	// JobRun is the run with an ID; NotFound.
	JobRun(ctx context.Context, id string) (Run, error)
	// Runs is a page of a job's runs, by Number; none for a job that is not there.
	Runs(ctx context.Context, id int64, page RunPage) ([]Run, error)
	// Changes is a job and at most n of its runs whose latest change has a number above
	// after, by it; both of one state of the store. NotFound.
	Changes(ctx context.Context, id, after int64, n int) (Job, []Run, error)
	// Chunks is the chunks of a run that hold lines behind a number, in order, at most
	// n of them.
	Chunks(ctx context.Context, run string, after, n int) ([]Chunk, error)
	// JobFiles is every blob that a job still kept names.
	JobFiles(ctx context.Context) ([]fleet.Digest, error)
	// MayFetch says whether a node has a run that has not ended, or ended after the given
	// time, of a job that names the blob.
	MayFetch(ctx context.Context, node fleet.Certname, d fleet.Digest, endedAfter time.Time) (bool, error)
}

// Page is which jobs are wanted.
type Page struct {
	Before   int64 // IDs below this; 0: from the newest
	Limit    int
	Statuses []Status       // none: all
	Kinds    []Kind         // none: all
	Actor    string         // empty: all
	Node     fleet.Certname // that have a run on this node; empty: all
	Task     string         // of this task; empty: all

	// For clients that page by numbers of jobs.
	Offset        int
	By            Column // empty: by ID
	Ascending     bool
	TaskPart      string    // of a task whose name has this in it; empty: all
	Plans         *bool     // of plans, or of none; nil: all
	Plan          int64     // of this plan; 0: all
	FinishedFrom  time.Time // these two leave out jobs that have not ended; zero: all
	FinishedUntil time.Time
}

// Column is what jobs are ordered by, and by their ID where it is the same.
type Column string

// The columns. ByTime is the time of the last change of the status.
const (
	ByActor       Column = "actor"
	ByTime        Column = "time"
	ByEnvironment Column = "environment"
	ByStatus      Column = "status"
)

// RunPage is which runs of a job are wanted.
type RunPage struct {
	After  int // Numbers above this
	Limit  int
	States []State        // none: all
	Node   fleet.Certname // empty: all
	Digest fleet.Digest   // with this output; empty: all
}

// Sender brings requests to nodes. NotFound: the node is not connected, and
// the request went nowhere. Unavailable: too much is on its way to be sent now.
type Sender interface {
	Order(ctx context.Context, node fleet.Certname, r pxp.Request) error // non-blocking
	Ask(ctx context.Context, node fleet.Certname, r pxp.Request) error   // blocking
	// Connected tells whether a node is, and what is known of its connection, or of its last one.
	Connected(node fleet.Certname) (Link, bool)
}

// Link is a node's connection, or its last one; from no time if it never had one.
type Link struct {
	Agent      string    // how its agent calls itself
	Since      time.Time // it is there
	Until      time.Time // it ended; zero: it did not, or there never was one
	Superseded time.Time // it last took the place of another one of the node; zero: it did not
	// Unreachable is why nothing can be sent to it for now, although it is there: its server cannot be reached. Empty: it can.
	Unreachable string
	Shared      string // why it seems that several agents have the node's certificate; empty: they do not
}

// Certificates says which nodes nothing lets in.
type Certificates interface {
	// Ended tells, of those of nodes whose certificates are all revoked or expired, what is the matter.
	Ended(ctx context.Context, nodes []fleet.Certname) (map[fleet.Certname]string, error)
}

// Resolver says which nodes are meant: sorted, each once. Invalid and NotFound
// are for who asks.
type Resolver interface {
	Resolve(ctx context.Context, t Targets) ([]fleet.Certname, error)
}

// Graph says which nodes wait for which others.
type Graph interface {
	// Edges is who of nodes waits for whom of them. Invalid names the way if some wait for one
	// another in a circle.
	Edges(ctx context.Context, nodes []fleet.Certname) ([]graph.Edge[fleet.Certname], error)
}

// Gate says what somebody may do.
type Gate interface {
	// Refused is those of nodes that actor may not give this order to, each with
	// what is missing.
	Refused(ctx context.Context, actor fleet.Actor, s Spec, nodes []fleet.Certname) (map[fleet.Certname]string, error)
}

// Sealer makes secrets unreadable to who has only the database.
type Sealer interface {
	Seal(plain []byte) ([]byte, error)
	Open(sealed []byte) ([]byte, error)
}
