package compile

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Priority orders the queue; a smaller number goes first (design, section 3).
type Priority int

// The priorities. Later ones come with the work that wants them.
const (
	Waited     Priority = 10 // somebody waits for it
	Signed     Priority = 20 // the certificate was just signed
	NewCode    Priority = 50 // a released environment got new code
	Background Priority = 90 // refresh, oldest first
)

// State of a compilation.
type State string

// The states: wanted -> leased -> done or failed; a lease that runs out returns
// to wanted.
const (
	Wanted State = "wanted"
	Leased State = "leased"
	Done   State = "done"
	Failed State = "failed"
)

// Compilation is one row of the queue, and later of the history.
type Compilation struct {
	ID          int64
	Node        fleet.Certname
	Environment fleet.Environment
	Version     fleet.Digest
	FactsSeq    int64  // the node's facts when it was leased, or when it was wanted
	Transaction string // the run that asked; empty if none
	Trusted     json.RawMessage
	Priority    Priority
	State       State
	WantedAt    time.Time
	LeasedBy    string
	LeasedUntil time.Time
	Attempts    int
	FinishedAt  time.Time
	Catalog     fleet.Digest // when done: the catalog's digest (a blob)
	UUID        string       // when done: catalog_uuid
	Err         *Error       // when failed
	Cost        Cost
}

// Want asks for a compilation.
type Want struct {
	Node        fleet.Certname
	Environment fleet.Environment
	Version     fleet.Digest
	FactsSeq    int64
	Transaction string
	Trusted     json.RawMessage
	Priority    Priority
	At          time.Time
}

// Queue is the table of compilations. Every method may be called concurrently,
// from several processes, and is one transaction.
type Queue interface {
	// Want returns the compilation that answers w: a finished one of the same
	// node, environment, version, facts and transaction (non-empty); else a
	// wanted or leased one that has at least these facts; else a new row.
	// There is at most one wanted row for a node, environment and version: a
	// newer want updates its facts and transaction and raises its priority.
	Want(ctx context.Context, w Want) (Compilation, error)
	// Lease takes at most n wanted rows for worker until the given time, best
	// priority first, then oldest. It sets FactsSeq to the node's current facts.
	Lease(ctx context.Context, worker string, n int, now, until time.Time) ([]Compilation, error)
	// Finish closes a leased row as Done or Failed, as c says. Conflict if the
	// worker no longer holds the lease: then the result must be thrown away.
	Finish(ctx context.Context, c Compilation) error
	// ReturnLeases makes rows wanted again whose lease ran out before now, or
	// whose worker is the given one (empty: none). A row that was leased
	// maxAttempts times is failed with CauseCrash instead.
	ReturnLeases(ctx context.Context, worker string, now time.Time, maxAttempts int) (int, error)
	// Compilation reads one row; NotFound when it is gone.
	Compilation(ctx context.Context, id int64) (Compilation, error)
	// Depth counts wanted and leased rows, and the age of the oldest wanted one.
	Depth(ctx context.Context, now time.Time) (wanted, leased int, oldest time.Duration, err error)
	// Prune forgets finished rows older than before, except each node's newest.
	Prune(ctx context.Context, before time.Time) (int, error)
}
