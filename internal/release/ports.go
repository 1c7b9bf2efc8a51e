package release

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Previews knows what was previewed.
type Previews interface {
	// Preview is one preview; NotFound.
	Preview(ctx context.Context, id int64) (Preview, error)
	// Shares is at most n of a preview's shares behind a place, by name.
	Shares(ctx context.Context, id int64, behind int, n int) ([]Share, error)
	// Catalog is what is released of a share. NotFound when it is not known any more.
	Catalog(ctx context.Context, p Preview, s Share) (deliver.Catalog, error)
	// Stands says why a catalog is not what its node would be given now; empty: it is.
	Stands(ctx context.Context, node fleet.Certname, c deliver.Catalog) (why string, err error)
	// Again makes a preview of the same version for some of its nodes, in somebody's name.
	Again(ctx context.Context, actor fleet.Actor, p Preview, nodes []fleet.Certname) (int64, error)
}

// Preview is what a release has to know of one.
type Preview struct {
	ID          int64
	Environment fleet.Environment
	Version     fleet.Digest
	Commit      string
	State       string
	Ready       bool
}

// Share is a node of a preview.
type Share struct {
	Place       int // from 1
	Node        fleet.Certname
	Same        bool // the node has it already
	Base, Fresh fleet.Digest
	Compilation int64
	Failure     string // why there is no catalog
}

// Delivery is what nodes have, and how that is changed.
type Delivery interface {
	// Has is what a node has now.
	Has(ctx context.Context, node fleet.Certname) (Holding, error)
	// Give makes a catalog the node's next generation, unless it has exactly that, and returns the number of its newest one.
	// Conflict for a node that takes none.
	Give(ctx context.Context, node fleet.Certname, o deliver.Order) (generation int64, err error)
	// Generations is the kept generations of a node, newest first.
	Generations(ctx context.Context, node fleet.Certname) ([]deliver.Generation, error)
	// GivenBy is the nodes that have kept generations of a release, by name.
	GivenBy(ctx context.Context, release int64) ([]fleet.Certname, error)
	// ReportedCatalog is the catalog_uuid that the report of a run names; ok is false while there is no report.
	ReportedCatalog(ctx context.Context, node fleet.Certname, transaction string) (uuid string, ok bool, err error)
}

// Holding is what a node has.
type Holding struct {
	Refuses    string // why it takes no releases, and what to do; empty: it takes them
	Catalog    fleet.Digest
	Version    fleet.Digest
	Generation int64
	Release    int64 // that gave it; 0: none
}

// Runs orders Puppet runs.
type Runs interface {
	// Order orders one run on each node, and returns the job. Ordered again under the same key, it is the same job.
	Order(ctx context.Context, o RunOrder) (job int64, err error)
	// Find is the job that was ordered under a key; NotFound.
	Find(ctx context.Context, key string) (job int64, err error)
	// Results is at most about n runs that changed behind a change, and up to which one that is complete.
	Results(ctx context.Context, job, after int64, n int) (Results, error)
	// Stop lets nothing more of a job begin; kill ends what runs, too. A job that has ended stays as it is.
	Stop(ctx context.Context, job int64, kill bool) error
}

// RunOrder is a wave's runs.
type RunOrder struct {
	Key         string // names the round
	Description string
	Author      string
	AuthorKind  fleet.ActorKind
	Nodes       []fleet.Certname
	Noop        bool
	MaxFailures *int
	Concurrency int
	Timeout     time.Duration
	WaitOffline time.Duration
}

// Results is what became of runs.
type Results struct {
	Runs []Result
	Last int64 // ask for what is behind it next
	Over bool  // the job had ended
}

// Result is how a run stands.
type Result struct {
	Node        fleet.Certname
	Stands      Outcome
	Reason      string // of all but Succeeded
	Changed     bool   // of Succeeded
	Transaction string // of its report, if there is one
	At          time.Time
}

// Outcome is how a run stands.
type Outcome int

// How a run stands.
const (
	Pending Outcome = iota
	Begun
	Succeeded
	RunFailed
	RunTimedOut
	RunOffline
	RunSkipped
)

// Resolver says which nodes are meant: sorted, each once. Invalid and NotFound are for who asks.
type Resolver interface {
	Resolve(ctx context.Context, targets api.JobTargets) ([]fleet.Certname, error)
	// Members is the nodes of a group, by its name or id.
	Members(ctx context.Context, group string) ([]fleet.Certname, error)
}

// Page is which releases are wanted.
type Page = fleet.Newest[State]

// TargetPage is which targets are wanted.
type TargetPage struct {
	After  int // Numbers above this
	Limit  int
	States []Standing     // none: all
	Wave   int            // 0: all
	Node   fleet.Certname // empty: all
	Since  int64          // that changed behind this revision
}

// Change is what becomes of a release in one step.
type Change struct {
	Base    int64 // the revision that it was decided on
	Release Release
	Targets []Target // that change
	Entries []Entry
}

// Store keeps releases. Every method is one transaction; no slice is kept.
//
// Wide: a release is one record: its targets, entries and approvals are written and read with it.
type Store interface {
	// CreateRelease stores a release with its targets, counts them, and gives it its ID and revision 1, and its entries their
	// numbers.
	CreateRelease(ctx context.Context, r Release, targets []Target, entries []Entry) (Release, error)
	// Release is one release; NotFound.
	Release(ctx context.Context, id int64) (Release, error)
	// Releases is a page of releases, the newest first.
	Releases(ctx context.Context, page Page) ([]Release, error)
	// OpenReleases is all that have not ended, by ID.
	OpenReleases(ctx context.Context) ([]Release, error)
	// Targets is a page of a release's targets by Number; none for a release that is not there.
	Targets(ctx context.Context, id int64, page TargetPage) ([]Target, error)
	// SaveRelease takes a step: the next revision, with its targets' Revision set to it, and the counts as they are then. What
	// never changes (ID, kind, preview, author, options but MaxFailures, digest) is as it was. Conflict unless Base is
	// the revision that is stored, which is as if it was never tried; NotFound.
	SaveRelease(ctx context.Context, c Change) (Release, error)
	// Entries is what happened in a release, in order.
	Entries(ctx context.Context, id int64) ([]Entry, error)
	// AddApproval stores somebody's approval for a role; one more of the same by the same person replaces it. NotFound.
	AddApproval(ctx context.Context, id int64, a Approval) error
	// Approvals is all of a release, by time.
	Approvals(ctx context.Context, id int64) ([]Approval, error)
	// PruneReleases forgets releases that ended before a time, with all that is theirs, and counts them.
	PruneReleases(ctx context.Context, before time.Time) (int, error)
	// ReleaseDigests is every catalog that an open release names, each once.
	ReleaseDigests(ctx context.Context) ([]fleet.Digest, error)
}
