package preview

import (
	"context"
	"iter"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
)

// The ports below are what this package needs of others. All methods may be
// called concurrently, and keep no slice that they are given.

// Store keeps previews. Every method is one transaction.
//
// Wide: a preview is one record: its shares, groups and remarks are written and read with it.
type Store interface {
	// CreatePreview stores a preview with its shares, numbered by their place, and gives it its ID.
	CreatePreview(ctx context.Context, p Preview, shares []Share) (Preview, error)
	// Preview is one preview; NotFound.
	Preview(ctx context.Context, id int64) (Preview, error)
	// Previews is a page of previews, the newest first.
	Previews(ctx context.Context, page Page) ([]Preview, error)
	// OpenPreviews is all previews that compile, by ID.
	OpenPreviews(ctx context.Context) ([]Preview, error)
	// PreviewShares is a page of a preview's shares by Number; none for a preview that is not there.
	PreviewShares(ctx context.Context, id int64, page SharePage) ([]Share, error)
	// SavePreviewShares replaces shares of a preview that compiles, and counts anew. Shares that are
	// final stay as they are. Conflict if it does not compile (any more).
	SavePreviewShares(ctx context.Context, id int64, shares []Share) (Preview, error)
	// FinishPreview makes a preview that compiles ready, with its groups in their order. Conflict if it does not
	// compile, or if a share waits; an error of groups is passed on.
	FinishPreview(ctx context.Context, p Preview, groups iter.Seq2[Group, error]) (Preview, error)
	// CancelPreview ends a preview that compiles; one that has ended stays as it is.
	CancelPreview(ctx context.Context, p Preview) (Preview, error)
	// PreviewGroups is a page of a ready preview's groups without their nodes, in their order.
	PreviewGroups(ctx context.Context, id int64, page GroupPage) ([]api.ChangeGroup, error)
	// PreviewGroupNodes is the numbers of a group's shares; NotFound if a preview has no such group.
	PreviewGroupNodes(ctx context.Context, id int64, key string) ([]uint32, error)
	// AddRemarks stores remarks; NotFound for a preview that is not there.
	AddRemarks(ctx context.Context, id int64, remarks []Remark) ([]Remark, error)
	// Remarks is all remarks on a preview, in order.
	Remarks(ctx context.Context, id int64) ([]Remark, error)
	// PrunePreviews forgets previews that ended before a time, with all that is theirs, and counts them. What is being released stays, where
	// this store has the releases, too: each of its waves is judged by its preview.
	PrunePreviews(ctx context.Context, before time.Time) (int, error)
	// WholeGroups is a page of a ready preview's groups with their nodes, in their order.
	WholeGroups(ctx context.Context, id int64, page GroupPage) ([]Group, error)
	// Acknowledgements is what was acknowledged of previews of an environment and not withdrawn, the newest previews
	// first: at most limit, each change of a preview once.
	Acknowledgements(ctx context.Context, env fleet.Environment, limit int) ([]Acknowledgement, error)
	NoiseStore
	// PreviewDigests is every catalog that a share names, each once.
	PreviewDigests(ctx context.Context) ([]fleet.Digest, error)
}

// NoiseStore keeps noise rules, and every version that they had.
type NoiseStore interface {
	// NoiseRules is the newest version of each rule, by name, without those that are removed.
	NoiseRules(ctx context.Context) ([]NoiseRule, error)
	// NoiseHistory is every version of a rule, the newest first; NotFound if there never was one.
	NoiseHistory(ctx context.Context, name string) ([]NoiseRule, error)
	// SaveNoise stores the next version of a rule, and gives it its number. One that is Removed keeps what the version
	// before said; NotFound if there is none, or it is removed already.
	SaveNoise(ctx context.Context, r NoiseRule) (NoiseRule, error)
	// PruneNoise forgets versions from before a time, and counts them. Of each rule the newest keep stay, and one at least.
	PruneNoise(ctx context.Context, before time.Time, keep int) (int, error)
}

// Page is which previews are wanted.
type Page = fleet.Newest[State]

// SharePage is which shares of a preview are wanted.
type SharePage struct {
	From   uint32 // Numbers from this on
	Limit  int
	States []ShareState   // none: all
	Node   fleet.Certname // empty: all
	NotBy  string         // those whose Base another engine than this one is known to have compiled; empty: all
}

// GroupPage is which groups of a preview are wanted.
type GroupPage struct {
	From  int // the place of the first one
	Limit int
}

// Compiler gives what a version makes of nodes. Nothing that it compiles for a preview becomes
// its node's newest catalog.
type Compiler interface {
	// Ask tells of each node once what p's version gives it when its code is told of no nodes beyond p's Reach, some at a time, in any order: best those first
	// that have to be compiled. What is not known is wanted with it, in the background. An error of tell ends it and is passed on.
	Ask(ctx context.Context, p Preview, nodes []fleet.Certname, tell func([]Answer) error) error
	// Ended returns those of the compilations that have ended or are not there any more.
	Ended(ctx context.Context, compilations []int64) ([]Answer, error)
}

// Answer is how a compilation stands.
type Answer struct {
	Node        fleet.Certname
	Compilation int64
	Stands      Standing
	Catalog     fleet.Digest // of Compiled
	Reused      bool
	Volatile    string  // of Compiled: why it may be another one next time
	Failure     Failure // of Broken and Impossible
}

// Standing is how a compilation stands.
type Standing int

// How a compilation stands.
const (
	Pending    Standing = iota // it is wanted
	Compiled                   // it gave a catalog
	Broken                     // the code gives this node no catalog
	Impossible                 // there is nothing to compile with
	Gone                       // nobody knows of it any more: ask again
)

// Bases says what nodes have.
type Bases interface {
	// Bases is the catalogs that nodes have now, without those that have none that is stored.
	Bases(ctx context.Context, nodes []fleet.Certname) (map[fleet.Certname]Base, error)
}

// Base is the catalog that a node has, and what it was compiled of.
type Base struct {
	Catalog     fleet.Digest
	Environment fleet.Environment
	Version     fleet.Digest
}

// Comparing finds out which nodes have the same change; see diff.Grouper. What it is given makes the
// same groups in any order. It may be used by many goroutines at once.
type Comparing interface {
	// Add compares two stored catalogs of a node. NotFound if one of them is not stored, Invalid if one is no
	// catalog; an error takes nothing in.
	Add(ctx context.Context, number uint32, node fleet.Certname, pair Pair) (Verdict, error)
	// AddSame takes in a node whose catalogs are the same.
	AddSame(number uint32, node fleet.Certname)
	// AddFailure takes in a node that has no catalog.
	AddFailure(number uint32, node fleet.Certname, why Failure)
	// Fleet is what was added so far: the first groups, at most limit.
	Fleet(limit int, nameOf func(number uint32) string) (api.FleetDifference, error)
	// Members is the numbers of the nodes of a group, in order.
	Members(key string) []uint32
	// Groups is every group, in the order of Fleet; nothing is added meanwhile.
	Groups(nameOf func(number uint32) string) iter.Seq2[Group, error]
}

// Pair is two catalogs of one node.
type Pair struct {
	Base, Fresh   fleet.Digest
	AcrossEngines bool // another engine compiled Fresh than Base: what differs in form only is its noise
}

// Verdict is how two catalogs compare.
type Verdict int

// How two catalogs compare.
const (
	NoDifference Verdict = iota
	OrderOnly
	Different
)

// Resolver says which nodes are meant.
type Resolver interface {
	// Resolve is sorted, each node once; without targets, all active nodes of the environment.
	// Invalid and NotFound are for who asks.
	Resolve(ctx context.Context, env fleet.Environment, targets api.JobTargets) ([]fleet.Certname, error)
}
