package factqueue

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Set is all facts of a node at one time.
type Set struct {
	Node        fleet.Certname
	Environment fleet.Environment // that the node asks for; counts only for one that nothing is known of
	Number      int64             // of the submission
	Timestamp   time.Time         // the node's clock
	AcceptedAt  time.Time         // ours
	Values      json.RawMessage   // canonical, and only the node's own
	Arrangement string            // how they came: see package inventory
	Digest      fleet.Digest      // of Values
}

// Stored is what the inventory has of a node.
type Stored struct {
	Set
	Seq     int64
	Changed int // paths whose values differ from before
}

// Inventory keeps facts. Its methods may be called concurrently.
type Inventory interface {
	// SaveFacts stores s as the node's newest facts, unless it is late: its number is not above
	// the stored one, or something was stored after s was accepted. A zero AcceptedAt is
	// never late. It returns what is stored then, without values.
	SaveFacts(ctx context.Context, s Set) (Stored, error)
	// Facts returns the node's newest facts; NotFound if it has none. AcceptedAt is when
	// they came.
	Facts(ctx context.Context, node fleet.Certname) (Stored, error)
}

// Store keeps what was accepted and not applied, and the news. Every method may be
// called concurrently and is one transaction.
type Store interface {
	// EnqueueFacts keeps s as the newest set of its node, instead of an older one. Its AcceptedAt becomes
	// later than everything that is stored of the node's facts. It returns by how
	// much the queue grew. Conflict if the queue, or the inventory, has a set with a higher
	// number; nothing changes if it is the same.
	EnqueueFacts(ctx context.Context, s Set) (Load, error)
	// QueuedFacts returns the queued set of a node; NotFound if there is none.
	QueuedFacts(ctx context.Context, node fleet.Certname) (Set, error)
	// DueFacts returns at most n queued sets, those that were accepted first.
	DueFacts(ctx context.Context, n int) ([]Set, error)
	// DequeueFacts removes the sets, unless a newer one took the place, and returns what went.
	// Only Node and Number of sets count.
	DequeueFacts(ctx context.Context, sets []Set) (Load, error)
	// QueuedLoad is what is queued.
	QueuedLoad(ctx context.Context) (Load, error)
}

// Load is how much is queued.
type Load struct {
	Sets   int64
	Bytes  int64     // packed
	Oldest time.Time // when the first was accepted; zero if there is none, and in differences
}

// Watch knows what nodes' catalogs read.
type Watch interface {
	// Watched lists the facts that the node's newest catalog read, as sorted JSON pointers;
	// none if it has no catalog.
	Watched(ctx context.Context, node fleet.Certname) ([]string, error)
}
