package inventory

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// FactSet is all that a node said of itself at one time.
type FactSet struct {
	Certname    fleet.Certname
	Environment fleet.Environment
	Values      json.RawMessage // one JSON object: fact name to value
	Timestamp   time.Time       // the node's clock
	ReceivedAt  time.Time       // ours
	Seq         int64           // grows by one each time any value differs
	Digest      fleet.Digest    // of the canonical form of Values; see SaveFacts
}

// FactStore keeps the newest facts of each node. Methods may be called
// concurrently; each is one transaction (several may share a commit).
type FactStore interface {
	// SaveFacts stores f as the node's newest facts, creates the node if need be,
	// and returns what is stored now (with Seq) and the paths whose values
	// differ, sorted. When it returns the facts survive a crash. A set with a
	// Digest has canonical Values, as ParseFacts leaves them; without one the
	// store makes them so, and Invalid says what is wrong with them.
	SaveFacts(ctx context.Context, f FactSet) (stored FactSet, changed []string, err error)
	// Facts returns the newest facts of a node; NotFound if it has none.
	Facts(ctx context.Context, node fleet.Certname) (FactSet, error)
}

// Catalog is one compiled catalog as it is kept: the document is a blob, its
// resources and edges are rows.
type Catalog struct {
	Certname    fleet.Certname
	Environment fleet.Environment
	Digest      fleet.Digest // of the normalised document; the blob's name
	Version     fleet.Digest // of the code
	UUID        string       // catalog_uuid
	Transaction string
	CompiledAt  time.Time
	Compilation int64 // the row that it comes from; a later one has a higher number
	Resources   []Resource
	Edges       []Edge
}

// Resource is one resource of a catalog.
type Resource struct {
	Type       string          `json:"type"`
	Title      string          `json:"title"`
	Tags       []string        `json:"tags,omitempty"`
	Exported   bool            `json:"exported"`
	File       string          `json:"file,omitempty"`
	Line       int             `json:"line,omitempty"`
	Parameters json.RawMessage `json:"parameters,omitempty"` // object; sensitive values removed
}

// Edge is one relation between resources, each "Type[title]".
type Edge struct {
	Source       string `json:"source"`
	Target       string `json:"target"`
	Relationship string `json:"relationship"` // contains, before, required-by, notifies, subscription-of
}

// CatalogStore keeps the newest catalog of each node.
type CatalogStore interface {
	// SaveCatalog makes c the node's newest catalog and creates the node if need
	// be. Rows are written only when the digest differs from what the node had.
	// Of resources that share type and title the first one is kept. Compilations of
	// a node may end in another order than they were asked for in: a catalog of an
	// earlier one than the stored one's changes nothing.
	SaveCatalog(ctx context.Context, c Catalog) error
	// Catalog returns a node's newest catalog with resources (in catalog order)
	// and edges (by source, target, relationship); NotFound if it has none.
	Catalog(ctx context.Context, node fleet.Certname) (Catalog, error)
	// CatalogDigests lists every digest that a row refers to (for garbage collection).
	CatalogDigests(ctx context.Context) ([]fleet.Digest, error)
}

// Node is the summary of one node.
type Node struct {
	Certname         fleet.Certname
	Environment      fleet.Environment // of the newest facts, catalog or report
	FactsAt          time.Time
	CatalogAt        time.Time
	CatalogDigest    fleet.Digest
	ReportAt         time.Time
	LatestReport     fleet.Digest
	LatestStatus     string // failed, changed, unchanged; empty without a report
	LatestNoop       bool
	LatestCorrective bool
	CreatedAt        time.Time
}

// Page asks for one page of a list: at most Limit rows after the row After.
type Page struct {
	After string // the last key of the page before; empty for the first
	Limit int    // 1 to 1000
}

// NodeStore lists nodes.
type NodeStore interface {
	// Nodes lists nodes by name; Page.After is the last name of the page before.
	Nodes(ctx context.Context, page Page) ([]Node, error)
	// Node reads one node; NotFound if nothing is known of it.
	Node(ctx context.Context, name fleet.Certname) (Node, error)
	// PurgeNode forgets a node: facts, catalog, reports, wanted compilations.
	// NotFound if nothing was known.
	PurgeNode(ctx context.Context, name fleet.Certname) error
}
