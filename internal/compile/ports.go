package compile

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/tutti-project/tutti/internal/fleet"
)

// The ports below are what this package needs of others. All methods may be
// called concurrently.

// Inputs gives what is known of a node.
type Inputs interface {
	// Facts returns the node's newest facts (one JSON object) and their sequence;
	// NotFound if it has none.
	Facts(ctx context.Context, node fleet.Certname) (facts json.RawMessage, seq int64, err error)
}

// Classification is what groups give a node. Each may be null.
type Classification struct {
	Classes    json.RawMessage // object of class to parameters
	Parameters json.RawMessage // object of top-scope variables
	Data       json.RawMessage // object of class::parameter to value, see Order
	Given      []Given         // the same, each with where it is from
}

// Classifier says what a node gets. Invalid ends the compilation with the error's
// detail.
type Classifier interface {
	Classify(ctx context.Context, node fleet.Certname, env fleet.Environment, facts, trusted json.RawMessage) (Classification, error)
}

// Finisher completes what the compiler gave.
type Finisher interface {
	// Inline adds the metadata of files to an agent's catalog (a static catalog).
	// It may change document in place and return it. used is what of the version it
	// read for that.
	Inline(ctx context.Context, env fleet.Environment, version fleet.Digest, document []byte) (out []byte, used Sources, err error)
}

// Documents keeps stored documents (see Normalise).
type Documents interface {
	// SaveDocument stores document and returns its digest (fleet.DigestOf); when
	// it returns the document survives a crash.
	SaveDocument(ctx context.Context, document []byte) (fleet.Digest, error)
	// Document reads a document whole; NotFound if it is not stored. The caller
	// does not change it.
	Document(ctx context.Context, d fleet.Digest) ([]byte, error)
}

// Result is a compilation that gave a catalog, just before its row is finished.
type Result struct {
	Compilation Compilation // as it will be finished
	Document    []byte      // the stored document; not to be changed
	Collected   []Collected // what it holds of other nodes
	Logs        []Log       // what the compiler wrote
}

// Results stores what can be asked about catalogs: resources and edges.
type Results interface {
	// SaveCatalog makes r's catalog its node's newest, unless a row with a higher ID
	// gave one already. It is called before the row is finished, so after a crash it may be called again for the same row.
	// Conflict, and nothing is stored, if the row is not leased for its Attempts-th
	// time any more: somebody else compiles it, or its node was purged or left.
	// ErrHeld, and the node keeps what it has, if the brake holds r's catalog.
	SaveCatalog(ctx context.Context, r Result) error
	// Held says whether the brake would hold the catalog of c, which is not its node's newest.
	Held(ctx context.Context, c Compilation) (bool, error)
}

// ErrHeld says that a catalog does not become its node's newest before somebody lets it go.
var ErrHeld = errors.New("the catalog is held")

// Gate says how much room the machine has for another compilation.
type Gate interface {
	Room(ctx context.Context) Room
}

// Room is how busy the machine is.
type Room int

// The rooms.
const (
	Full Room = iota // it has more than enough to do: one compilation at most, and no background work
	Some             // it is busy, but not too much: all except background work
	Idle             // it has next to nothing to do
)

// Versions says which version an environment uses now.
type Versions interface {
	// Current returns an environment's version; NotFound if there is none.
	Current(ctx context.Context, env fleet.Environment) (fleet.Digest, error)
}

// Environments lists all environments with their current versions.
type Environments interface {
	Environments(ctx context.Context) (map[fleet.Environment]fleet.Digest, error)
}
