package compile

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Reusables keeps what compilations read. Whoever implements Queue implements it
// too: Finish stores Compilation.Inputs with the row. Every method may be called
// concurrently and is one transaction.
type Reusables interface {
	// Newest returns the compilation in env that gave the newest catalog of a node,
	// with its inputs. NotFound if there is none, if its inputs are not known, or if
	// the node's newest catalog is not of it.
	Newest(ctx context.Context, node fleet.Certname, env fleet.Environment) (Compilation, error)
	// NewestStaged returns the newest staged compilation of a node in env that gave a
	// catalog and was no preview, with its inputs. NotFound if there is none, or if its
	// inputs are not known.
	NewestStaged(ctx context.Context, node fleet.Certname, env fleet.Environment) (Compilation, error)
	// Candidates lists of each of the nodes what Newest and then NewestStaged give, without inputs. A row whose inputs are
	// not known may be there.
	Candidates(ctx context.Context, env fleet.Environment, nodes []fleet.Certname) (map[fleet.Certname][]Candidate, error)
	// Restate says that the catalog of compilation from stands for another version:
	// it adds a done row of c, with its version, UUID, FactsSeq, FinishedAt and the
	// rest as from has it, makes that the one that gave the node's newest catalog, and
	// returns it. NotFound unless from is still what Newest returns. From may also be
	// what NewestStaged returns: then a done row is added that is not staged, and whoever
	// saves its catalog makes that the newest.
	Restate(ctx context.Context, from int64, c Compilation) (Compilation, error)
	// StopReuse remembers that a reused catalog of a node was wrong, or a catalog of any node: then Node is
	// empty, and the stop is one of each node's. One more for the same node, environment and version replaces the first.
	StopReuse(ctx context.Context, s ReuseStop) error
	// ReuseStops lists those of a node in env, the latest first.
	ReuseStops(ctx context.Context, node fleet.Certname, env fleet.Environment) ([]ReuseStop, error)
	// ReuseStopsOf is ReuseStops of each of the nodes that has some.
	ReuseStopsOf(ctx context.Context, env fleet.Environment, nodes []fleet.Certname) (map[fleet.Certname][]ReuseStop, error)
}

// Candidate is a compilation whose catalog may stand.
type Candidate struct {
	Compilation       // without Inputs
	Read        int64 // the compilation whose inputs are its: see Base.Inputs
}

// ReuseStop says that a reused catalog was not what a fresh compilation gave: for
// this node and version no catalog is used again. Without a node it says that of all nodes: a catalog was not what
// plain Puppet gives.
type ReuseStop struct {
	Node        fleet.Certname // empty: all
	Environment fleet.Environment
	Version     fleet.Digest
	At          time.Time
	Reused      fleet.Digest // the catalog that was used again
	Fresh       fleet.Digest // the one that should have been
	Differs     []string     // resources that differ, as Type[title]; not all of many
	Inputs      fleet.Digest // of the set that was taken to hold
}
