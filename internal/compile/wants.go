package compile

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Base is a catalog that is known to stand for a version, as far as files go.
type Base struct {
	Compilation int64        // that gave it; zero: there is none
	Inputs      int64        // the compilation whose inputs are its: the first of those restated
	Version     fleet.Digest // up to this one the files that it read are as they were
}

// Standing is how an active node stands in one environment.
type Standing struct {
	Node        fleet.Certname
	Environment fleet.Environment
	FactsSeq    int64     // of its newest facts; zero: it has none
	Plain       Base      // of its newest catalog
	Staged      Base      // of the newest staged one that is not a preview
	CompiledAt  time.Time // Plain
	Volatile    bool      // Plain
	Held        bool      // the brake keeps the staged one from the node, which is in live mode
}

// Footprint is what a compilation read, with its sources in groups that many share.
type Footprint struct {
	Set    InputSet // without Sources
	Groups []fleet.Digest
}

// ChangeKind says what changed.
type ChangeKind string

// The kinds of change that are noted of nodes.
const (
	FactsChanged   ChangeKind = "facts"   // Details: the top-level facts
	ExportsChanged ChangeKind = "exports" // Details: the types of resources that it exports, or did
	NewlySigned    ChangeKind = "signed"  // it has a new certificate
	LateFinish     ChangeKind = "late"    // a compilation ended, and what it read may have changed meanwhile
)

// Anything stands in Change.Details for all there is.
const Anything = "*"

// Change is something that changed of a node and was not considered yet. The store
// notes it in the transaction that makes the change, so that no crash loses it.
type Change struct {
	Kind    ChangeKind
	Node    fleet.Certname
	Details []string
	Count   int64 // grows when the same changes again before it is considered
}

// Mark says how far a version of an environment, or of the groups, was considered.
type Mark struct {
	Environment fleet.Environment // empty: the groups, for all environments
	Version     fleet.Digest      // of the groups: their revision
	Upto        fleet.Certname    // the last node that was considered
	Done        bool              // all were
	Nodes       int               // how many there are
	Touched     int               // of them, how many read something that differs
	BeganAt     time.Time
	KnownFor    time.Duration // how long it took to know who is touched
}

// Step is a part of considering a version; one transaction.
type Step struct {
	From, To Mark       // From is as it is stored; zero Version: there is none
	Wants    []Want     // who needs a new catalog
	Stands   []Standing // whose bases, those that are not zero, stand for To's version from now on
}

// Chain is a node that is compiled because of what others export, who may export
// because of it in turn.
type Chain struct {
	Node        fleet.Certname
	Environment fleet.Environment
	Rounds      int       // compilations in a row, its own and others', without another cause
	Because     string    // of what it is followed
	StoppedAt   time.Time // zero: it goes on
}

// Wants is what a Wanter keeps. Whoever implements Queue implements it too. Every
// method may be called concurrently, from several processes, and is one transaction.
type Wants interface {
	// Marks lists all marks.
	Marks(ctx context.Context) ([]Mark, error)
	// Consider makes a step true: its bases stand for the version where they are still
	// the same, its wants are wanted (see Queue.Want) with chains forgotten, and To is
	// the mark. A step with another version than the mark before also turns what was
	// wanted ahead of older versions of the environment, and is not leased, into wanted
	// of this version, once for each node: rows without a transaction of priorities
	// Signed to NewCode, and ends the Slowdown of the environment's catalogs by other code. Conflict if From is not what is stored: somebody else was here.
	Consider(ctx context.Context, s Step) error

	// NotedChanges lists at most n changes, those noted first first.
	NotedChanges(ctx context.Context, n int) ([]Change, error)
	// Settle wants what follows from changes and forgets these, except where more was
	// added to one meanwhile. Of a want that follows others' exports chains has the
	// chain, by node, which is stored; for a node without one it is forgotten.
	Settle(ctx context.Context, changes []Change, wants []Want, chains []Chain) error
	// Chains lists all chains.
	Chains(ctx context.Context) ([]Chain, error)
	// SaveChains stores chains; one with zero rounds is forgotten.
	SaveChains(ctx context.Context, chains []Chain) error

	// Oldest lists at most n nodes that have a catalog in their environment which was
	// compiled before old, or before volatile if it is volatile, and that were not
	// refreshed in vain since, the oldest first. A zero time leaves that kind out.
	Oldest(ctx context.Context, old, volatile time.Time, n int) ([]Standing, error)
	// Refresh wants what brings old catalogs up to date and remembers when that was
	// tried.
	Refresh(ctx context.Context, wants []Want) error
	// Backgrounds counts what is wanted or leased with priority Background.
	Backgrounds(ctx context.Context) (int, error)
}

// Standings is how nodes stand in their environments. Whoever implements Queue implements it too. Every method may be
// called concurrently.
type Standings interface {
	// Standings lists how the active nodes stand in env whose environment it is, by
	// name; in an empty env, how all do, each in its own. The environment of a node is
	// that of its newest facts, catalog or report.
	Standings(ctx context.Context, env fleet.Environment) ([]Standing, error)
	// StandingsNamed lists how those of the named nodes stand that are active, each in
	// its environment, by name.
	StandingsNamed(ctx context.Context, nodes []fleet.Certname) ([]Standing, error)
	// Failures lists the newest failed compilation of each active node whose
	// environment it is and which has no later one that gave a catalog of that version.
	Failures(ctx context.Context, env fleet.Environment, version fleet.Digest) ([]Compilation, error)
	// Failing names the active nodes of an environment whose last compilation there
	// failed, of whatever version.
	Failing(ctx context.Context, env fleet.Environment) ([]fleet.Certname, error)
	// Waiting names the nodes of which a compilation of that version is wanted or leased.
	Waiting(ctx context.Context, env fleet.Environment, version fleet.Digest) ([]fleet.Certname, error)
}

// Readings is what compilations read. Every method may be called concurrently.
type Readings interface {
	// Footprints reads what compilations read, by Base.Inputs. What is gone is left out.
	Footprints(ctx context.Context, inputs []int64) (map[int64]Footprint, error)
	// SourceGroup reads the text of a group; NotFound if it is gone.
	SourceGroup(ctx context.Context, group fleet.Digest) ([]byte, error)
}

// Modes says how nodes get their catalogs.
type Modes interface {
	// InReleased tells those of the nodes that only get what a release gives them.
	InReleased(ctx context.Context, nodes []fleet.Certname) (map[fleet.Certname]bool, error)
}

// Holding is what a node has.
type Holding struct {
	FactsSeq int64        // of its facts; 0: none are known
	Catalog  fleet.Digest // the newest that is stored; empty: none is

	Environment fleet.Environment // that Catalog was compiled for
	Version     fleet.Digest      // that it was compiled of
}

// Grouping is what a Wanter asks of groups.
type Grouping interface {
	// Revision is another one when what groups give may be something else.
	Revision(ctx context.Context) (int64, error)
	// Facts names the top-level facts that rules look at.
	Facts(ctx context.Context) ([]string, error)
	// Environment says which environment a node belongs to that would be in the given
	// one if groups said nothing. Invalid and NotFound: there is none with code.
	Environment(ctx context.Context, node fleet.Certname, otherwise fleet.Environment) (fleet.Environment, error)
}

// Trust gives $trusted of a node that does not ask itself.
type Trust interface {
	// Trusted is by the certificate that the node has; NotFound if it has none.
	Trusted(ctx context.Context, node fleet.Certname) (json.RawMessage, error)
}
