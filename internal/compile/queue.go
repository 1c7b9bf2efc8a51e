package compile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Priority orders the queue; a smaller number goes first (design, section 3).
type Priority int

// The priorities.
const (
	Waited     Priority = 10 // somebody waits for it
	Signed     Priority = 20 // the certificate was just signed
	NewFacts   Priority = 30 // a fact changed that the catalog read
	NewExports Priority = 40 // what the catalog collected changed
	NewCode    Priority = 50 // the environment got new code, or groups changed
	Previewing Priority = 60 // somebody wants to see what a version would give
	Background Priority = 90 // refresh, oldest first
)

// priorityNames are the words for priorities.
var priorityNames = map[Priority]string{
	Waited: "waited", Signed: "signed", NewFacts: "new_facts", NewExports: "new_exports", NewCode: "new_code", Previewing: "previewing", Background: "background",
}

func (p Priority) String() string {
	return cmp.Or(priorityNames[p], strconv.Itoa(int(p)))
}

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
	FactsSeq    int64  // the facts it was compiled with; before, those it was wanted with
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
	Checks      int64 // a compilation whose catalog was used again, which this one checks; zero: none
	// Staged: the catalog is kept but does not become its node's newest. A row ceases
	// to be staged when somebody joins it who wants a plain one; never the other way.
	Staged bool
	// Reach: see Order. A row with one is a preview's; what is wanted with another one does not join it.
	Reach string
	// Held: the brake keeps the catalog from its node. Finish makes the row a staged one, whoever wanted it plain. It is not stored.
	Held   bool
	Inputs *InputSet // what it read; stored by Finish, read by Newest only
	// Stands is the version up to which the files that it read are as they were; set
	// by Newest only.
	Stands fleet.Digest
	// Trouble is why the last attempt could not be tried, RestsUntil when the next one
	// may be; until then the row stays leased, and nobody compiles it.
	Trouble    string
	RestsUntil time.Time
	// Order is the digest of the order that does not compile; empty where the compiler
	// was not asked.
	Order fleet.Digest
	Logs  []Log // what the compiler wrote for a catalog; stored by Finish, read by Record only
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
	Checks      int64  // see Compilation
	Staged      bool   // see Compilation
	Reach       string // see Compilation: not empty only where Staged
	// Fresh: something changed that a leased row may not have read: none is joined.
	Fresh bool
}

// Moved wants of another version what a row wants: its reason holds there, too.
func Moved(c Compilation, version fleet.Digest) Want {
	return Want{
		Node: c.Node, Environment: c.Environment, Version: version, FactsSeq: c.FactsSeq, Trusted: c.Trusted, Priority: c.Priority,
		At: c.WantedAt, Checks: c.Checks, Staged: c.Staged, Reach: c.Reach,
	}
}

// LongestLease is more than a row is leased or rests for.
const LongestLease = 20 * time.Minute

// Queue is the table of compilations. Every method may be called concurrently,
// from several processes, and is one transaction. No slice is kept.
type Queue interface {
	// Want returns the compilation that answers w, looked for in this order:
	//
	//  1. the newest finished one (done or failed) of the same node, environment,
	//     version and transaction (non-empty) that has at least these facts, and is
	//     not staged unless w is;
	//  2. the wanted one of the same node, environment and version;
	//  3. the newest leased one of these that has at least these facts, unless w is fresh;
	//  4. a new wanted row.
	//
	// Of the plain rows of a node the one that was wanted last has the highest ID: its catalog is to become the newest,
	// whichever ends last. So where w is plain, and a plain row of the node that has not failed has a higher ID
	// than the wanted one, that one gets a new ID (who waits for it finds NotFound and wants again), and a leased
	// one is not joined.
	//
	// Only rows of the same Reach are looked at. So there is at most one wanted row for a node, environment, version and reach.
	// "At least these facts" means FactsSeq >= w.FactsSeq. Joining a wanted or
	// leased row (2 and 3) takes over w's transaction and trusted data where they
	// are not empty, the higher FactsSeq for a wanted row, and the better of both
	// priorities; a wanted row that checks nothing takes over w's Checks; WantedAt
	// stays. Only a staged w leaves a staged row staged. A new row (4) ends the Slowdown that is EndedBy w.
	Want(ctx context.Context, w Want) (Compilation, error)
	// Lease takes wanted rows for o.Worker until o.Until, one after the other from the
	// lane that NextLane says, the oldest of it first (WantedAt, then ID), in that order; none while all
	// is paused, and none of environments that are. It raises Attempts by one and sets
	// FactsSeq to the node's current facts; a node without facts keeps what the row has.
	Lease(ctx context.Context, o Offer) ([]Compilation, error)
	// Renew moves the end of leases that worker holds to until, and returns the
	// ids that it does hold, sorted; the others are lost and their work may stop.
	Renew(ctx context.Context, worker string, ids []int64, until time.Time) (held []int64, err error)
	// Rest gives a row back at the given time that c.LeasedBy leased for the
	// c.Attempts-th time and could not try: until then it rests, and its Trouble says
	// why. Conflict if that lease is not held.
	Rest(ctx context.Context, c Compilation, until time.Time, trouble string) error
	// Finish closes a leased row as Done or Failed and stores what c says of
	// FactsSeq, FinishedAt, Catalog, UUID, Err, Cost, Order, Logs and Inputs. Conflict
	// unless the row is leased by c.LeasedBy for the c.Attempts-th time: then somebody else has
	// it, or had it, and the result must be thrown away. A lease that ran out but
	// was not yet returned still holds. A Conflict that is ErrUnstaged says that the
	// lease holds but somebody wants the row plain by now: a staged c that is Done
	// cannot close it; make its catalog the newest and finish it plain. A c that is Held and Done
	// makes the row a staged one. With it the Slowdown of c's environment becomes what Slowdown.After says.
	Finish(ctx context.Context, c Compilation) error
	// ReturnLeases makes leased rows wanted again that ran out at or before now, that would last for more than
	// LongestLease from now on (a clock leased them that was ahead), or whose worker is the given one (empty: none), and counts the rows that it
	// touched. A row that was leased maxAttempts times is failed with CauseCrash
	// (FinishedAt now) instead; of one that comes back from a Rest at most half as many count. Where the same node, environment, version and reach is
	// wanted already, both become one (better priority,
	// older WantedAt, more Attempts, higher FactsSeq; transaction, trusted data and
	// trouble of the returned row where the wanted one has none; staged only if both are), with the higher ID, or
	// that of the plain one: who waits for the other finds NotFound and wants again.
	ReturnLeases(ctx context.Context, worker string, now time.Time, maxAttempts int) (int, error)
	// Compilation reads one row; NotFound when it is gone.
	Compilation(ctx context.Context, id int64) (Compilation, error)
	// Depth counts wanted and leased rows, and the age of the oldest wanted one
	// (zero when nothing is wanted).
	Depth(ctx context.Context, now time.Time) (wanted, leased int, oldest time.Duration, err error)
	// Prune forgets rows that finished before the given time, except each node's
	// newest finished one (latest FinishedAt, then highest ID) and those that gave a
	// node's newest catalog or that a preview shows, and counts them. What only they read it forgets, too.
	Prune(ctx context.Context, before time.Time) (int, error)
}

// History answers questions about finished compilations. Whoever implements
// Queue implements it too.
type History interface {
	// Distinct returns, for the nodes whose newest done compilation in env is
	// still kept, that compilation, without those that have a Reach; of several with the same catalog only the
	// newest; the latest FinishedAt first (then highest ID), at most n.
	Distinct(ctx context.Context, env fleet.Environment, n int) ([]Compilation, error)
	// LastFailure returns the newest failed compilation of a node, environment and
	// version that has an Order and no Reach; NotFound if there is none.
	LastFailure(ctx context.Context, node fleet.Certname, env fleet.Environment, version fleet.Digest) (Compilation, error)
}

// ErrUnstaged is why a staged compilation cannot be finished: see Queue.Finish.
var ErrUnstaged = errors.New("the compilation is not staged any more")

// Exhausted is the error of a compilation whose leases all ended without a
// result.
func Exhausted(attempts int) *Error {
	return &Error{
		Cause:   CauseCrash,
		Message: fmt.Sprintf("the compilation was started %s and never ended; the server's log says why", fault.Count(attempts, "time")),
	}
}
