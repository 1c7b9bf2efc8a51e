package inventory

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Origin says through which server a thing came, and when by that server's clock.
//
// Data that this server takes from nodes itself is the newest there is: ProducedAt is
// zero, and becomes the time of arrival. What another server sends says when it was
// produced; it may come late, and changes nothing if something newer is stored. It
// makes a node active again that was deactivated or expired before it was produced.
type Origin struct {
	Producer   string // the server's name; empty: not known
	ProducedAt time.Time
}

// FactSet is all that a node said of itself at one time.
type FactSet struct {
	Origin
	Certname    fleet.Certname
	Environment fleet.Environment
	Values      json.RawMessage // one JSON object: fact name to value
	Packages    []Package       // what is installed
	Timestamp   time.Time       // the node's clock, or the producer's
	ReceivedAt  time.Time       // ours
	Arrangement string          // how Values came (see Arranged); a store tells it by FactsAsTold only
	Seq         int64           // grows by one each time any value differs, or the arrangement
	Digest      fleet.Digest    // of the canonical form of Values; see SaveFacts
	Number      int64           // of the newest submission of the node's agent (see Submission); zero: not submitted so
}

// FactStore keeps the newest facts of each node. Methods may be called
// concurrently; each is one transaction (several may share a commit).
type FactStore interface {
	// SaveFacts stores f as the node's newest facts, unless it comes too late (see
	// Origin) or has a Number that is not above the stored one, creates the node if need be, and returns what is stored now (with
	// Seq) and the paths whose values differ, sorted. When it returns the facts survive a crash. A set with a
	// Digest has canonical Values, as ParseFacts leaves them; without one the
	// store makes them so, and Invalid says what is wrong with them. Facts without a
	// Number leave the stored one.
	SaveFacts(ctx context.Context, f FactSet) (stored FactSet, changed []string, err error)
	// Facts returns the newest facts of a node, without its packages; NotFound if
	// it has none.
	Facts(ctx context.Context, node fleet.Certname) (FactSet, error)
	// FactsAsTold is Facts with the values in the order in which the node told them, without
	// what servers add: see Arranged. Digest is that of the canonical form.
	FactsAsTold(ctx context.Context, node fleet.Certname) (FactSet, error)
	// FactLeaves returns those of the nodes' leaves whose paths are named, as
	// PathText writes them. Nodes and paths that there are none of are left out;
	// there are at most MaxNamed nodes. The order of leaves is free.
	FactLeaves(ctx context.Context, nodes []fleet.Certname, paths []string) (map[fleet.Certname][]facts.Leaf, error)
}

// Package is one package that is installed on a node.
type Package struct{ Name, Version, Provider string }

// PackageStore tells what is installed on nodes; FactStore.SaveFacts writes it.
type PackageStore interface {
	// Packages lists what came with a node's newest facts, sorted, each once.
	Packages(ctx context.Context, node fleet.Certname) ([]Package, error)
}

// Catalog is one compiled catalog as it is kept: the document is a blob, its
// resources and edges are rows. A received one was compiled by another server: it has
// rows only.
type Catalog struct {
	Origin
	Certname      fleet.Certname
	Environment   fleet.Environment
	Digest        fleet.Digest // of the normalised document, the blob's name; of a received one: of its content
	Version       fleet.Digest // of the code; of a received one: empty
	ConfigVersion string       // what the catalog calls its version
	CodeID        string
	UUID          string // catalog_uuid
	Transaction   string
	JobID         string
	CompiledAt    time.Time // of a received one: when it came
	Compilation   int64     // the row that it comes from; a later one has a higher number
	Attempt       int       // of the compilation; above zero: its row must be leased for this time still
	Received      bool
	// Over is the catalog that this one may take the place of; empty: of none. Nil: of whatever there is.
	Over      *fleet.Digest
	Resources []Resource
	Edges     []Edge
	Collected []Collected
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

// Collected is a resource of a catalog that another node exported.
type Collected struct {
	Type, Title string
	Exporter    fleet.Certname
}

// ErrReplaced says that a node has another catalog than the one that was to be replaced.
var ErrReplaced = errors.New("the node has another catalog by now")

// CatalogStore keeps the newest catalog of each node.
type CatalogStore interface {
	// SaveCatalog makes c the node's newest catalog and creates the node if need
	// be. Rows are written only when the digest differs from what the node had; who
	// exported what it collected may change without that.
	// Of resources that share type and title the first one is kept.
	//
	// Compilations of a node may end in another order than they were asked for in: a
	// catalog of an earlier one than the stored one's changes nothing. A received
	// catalog has no compilation; it replaces what was produced before it (see
	// Origin) and keeps the number, so that compilations still compete with each
	// other. Only a received catalog makes a node active: this server compiles for
	// nodes that are gone, too. Conflict where Attempt is not zero and this store has
	// the queue, too, in which Compilation is not leased for the Attempt-th time: the
	// node was purged or left meanwhile, and gets nothing. Conflict that is ErrReplaced
	// where Over is not nil and not the digest of the newest catalog that was compiled here.
	SaveCatalog(ctx context.Context, c Catalog) error
	// Catalog returns a node's newest catalog with resources (in catalog order),
	// edges (by source, target, relationship) and what it collected (by type and
	// title, each once); NotFound if it has none.
	Catalog(ctx context.Context, node fleet.Certname) (Catalog, error)
	// CatalogDigests lists every digest of a document that a row refers to (for
	// garbage collection).
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
	DeactivatedAt    time.Time // zero for an active node
	ExpiredAt        time.Time // the same
	JoinedAt         time.Time // when its certificate was issued, of a node that only that is known of; see WithEnrolled
}

// Page asks for one page of a list: at most Limit rows after the row After.
type Page struct {
	After string // the last key of the page before; empty for the first
	Limit int    // 1 to 1000
}

// MaxNamed is how many nodes may be named at once.
const MaxNamed = 1000

// NodeStore lists nodes.
type NodeStore interface {
	// Nodes lists nodes by name; Page.After is the last name of the page before.
	Nodes(ctx context.Context, page Page) ([]Node, error)
	// NodesNamed reads the nodes of that name, by name, at most MaxNamed. Those that
	// nothing is known of are left out.
	NodesNamed(ctx context.Context, names []fleet.Certname) ([]Node, error)
	// Node reads one node; NotFound if nothing is known of it.
	Node(ctx context.Context, name fleet.Certname) (Node, error)
	// PurgeNode forgets a node: facts, catalog with all that it exports, reports,
	// wanted compilations. What others collected from it stays in their catalogs. Its certificate stays, and does not list it any more (see EnrolmentStore).
	// NotFound if nothing was known.
	PurgeNode(ctx context.Context, name fleet.Certname) error
	// DeactivateNode says that a node is gone since the given time, and creates it if
	// need be. If anything of it was produced later, nothing changes. Anything produced later
	// makes it active again.
	DeactivateNode(ctx context.Context, name fleet.Certname, since time.Time) error
	// ConfigureExpiration says whether a node may expire, and creates it if need be. An
	// older word than the stored one changes nothing.
	ConfigureExpiration(ctx context.Context, name fleet.Certname, expire bool, at time.Time) error
	// ExpireNodes marks active nodes as expired at now of which nothing was produced
	// since before, and returns how many. Nodes that may not expire are left out;
	// catalogs that this server compiled are no sign of life.
	ExpireNodes(ctx context.Context, before, now time.Time) (int, error)
	// PurgeLeftNodes forgets at most limit nodes that were deactivated or expired before
	// the given time, the longest gone first, as PurgeNode does, and returns their
	// names. A node that came back is not among them.
	PurgeLeftNodes(ctx context.Context, before time.Time, limit int) ([]fleet.Certname, error)
}
