package deliver

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Store keeps modes, generations, pins and losses. Every method may be called concurrently,
// from several processes, and is one transaction. No slice is kept. Errors are those of
// the package comment, and Unavailable when the store cannot be asked.
//
// Wide: the sum of modes, ledger, archive and losses, each a port of its own.
type Store interface {
	ModeStore
	Ledger
	Archive
	LossStore
}

// ModeStore keeps the modes that are set.
type ModeStore interface {
	// Modes reads the modes of groups, by group, and counts the nodes that have one of
	// their own.
	Modes(ctx context.Context) (groups []GroupMode, nodes int, err error)
	// ModesSet lists the modes that are set: those of groups by group, then those of
	// nodes by name.
	ModesSet(ctx context.Context) ([]ModeSet, error)
	// SetMode sets the mode of a node or group; an empty mode takes it away.
	SetMode(ctx context.Context, m ModeSet) error
}

// ModeSet is a mode that is set for a node or a group.
type ModeSet struct {
	Node  fleet.Certname
	Group string // id; one of both is given
	Mode  Mode
	At    time.Time
	By    string
}

// Ledger keeps what is in force for each node.
type Ledger interface {
	// Standing reads what is stored of a node; of one that nothing is known of, a
	// Standing in Live mode without anything.
	Standing(ctx context.Context, node fleet.Certname) (Standing, error)
	// Take takes a step. Conflict unless From is in force and Base the number of the
	// newest generation, which is as if it was never tried.
	Take(ctx context.Context, s Step) error
	// SetPin pins a node, or with the zero Pin unpins it. Conflict when a node is to be
	// pinned that is not in released mode with a generation.
	SetPin(ctx context.Context, node fleet.Certname, p Pin) error
	// Unpromoted lists generations that are their node's newest, which is in released
	// mode, and that the inventory does not show, by node, behind after, at most n.
	Unpromoted(ctx context.Context, after fleet.Certname, n int) ([]Generation, error)
	// Promoted notes that the inventory shows a generation. One that is gone is no error.
	Promoted(ctx context.Context, node fleet.Certname, number int64) error
}

// Archive keeps generations.
type Archive interface {
	// Generations lists the kept generations of a node, newest first.
	Generations(ctx context.Context, node fleet.Certname) ([]Generation, error)
	// Keeps says whether a kept generation of the node is this catalog.
	Keeps(ctx context.Context, node fleet.Certname, catalog fleet.Digest) (bool, error)
	// PruneGenerations forgets all but each node's newest keep ones, at least one, and
	// counts them.
	PruneGenerations(ctx context.Context, keep int) (int, error)
	// GenerationCatalogs lists every catalog that a kept generation names, each once, in
	// order.
	GenerationCatalogs(ctx context.Context) ([]fleet.Digest, error)
	// HeldIn lists the active nodes that may have a catalog of env, by name, with the version that it is of: of a node in released
	// mode that of its newest generation, of one in live mode that of the newest catalog that was compiled here.
	HeldIn(ctx context.Context, env fleet.Environment) ([]Held, error)
	// HeadsIn counts the nodes in released mode whose newest generation is of env.
	HeadsIn(ctx context.Context, env fleet.Environment) (int, error)
	// Applied reads what a node last said it applied; zero when it said nothing.
	Applied(ctx context.Context, node fleet.Certname) (Applied, error)
}
