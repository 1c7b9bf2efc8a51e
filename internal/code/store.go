package code

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Version is a deployed state of an environment's code.
type Version struct {
	ID          VersionID
	Environment fleet.Environment
	Commit      string // git commit, where there is one
	Origin      string // where it was deployed from: a directory or URL without credentials
	Actor       string // who deployed it
	Files       int
	Bytes       int64
	Engine      string // that compiles it; empty: the server's default
	DeployedAt  time.Time
	// First is told by Library.Deploy alone: there was no such environment before. No row keeps it.
	First bool
}

// Store keeps which versions there are. Every method may be called concurrently
// and is one transaction.
type Store interface {
	// SaveVersion makes v the current version of its environment and creates the
	// environment if need be. Deploying a version again moves the environment
	// back to it: the row takes v's new values and becomes the newest. DeployedAt
	// is kept to the microsecond.
	SaveVersion(ctx context.Context, v Version) error
	// StageVersion keeps v, which nobody's environment uses yet, as a version that may be compiled.
	// Staging it again, or one that was deployed, renews its time.
	StageVersion(ctx context.Context, v Version) error
	// PruneStaged forgets versions that were staged before a time, but for those that a preview or an open
	// compilation refers to, and counts them.
	PruneStaged(ctx context.Context, before time.Time) (int, error)
	// CurrentVersion is the version that an environment uses; NotFound for an
	// environment without one.
	CurrentVersion(ctx context.Context, env fleet.Environment) (Version, error)
	// Versions lists what was deployed to env, each version once, the one saved
	// last first (whatever its clock said); at most limit. None for an unknown
	// environment.
	Versions(ctx context.Context, env fleet.Environment, limit int) ([]Version, error)
	// Environments lists the current version of every environment, by name.
	Environments(ctx context.Context) ([]Version, error)
	// RemoveEnvironment forgets an environment and its versions; NotFound if there is none.
	RemoveEnvironment(ctx context.Context, env fleet.Environment) error
	// PruneVersions forgets versions that were deployed before a time, in every
	// environment but for the keep versions that were saved last (the current one
	// always stays), and returns how many. A version of an environment stays as
	// long as a compilation for that environment is open or a node's newest catalog
	// was compiled of it: such a catalog may still ask for the version's files.
	PruneVersions(ctx context.Context, before time.Time, keep int) (int, error)
	// VersionIDs lists every version that a row refers to, each once, in any order
	// (for garbage collection).
	VersionIDs(ctx context.Context) ([]VersionID, error)
}

// Checkout gives a version's files as a read-only directory tree.
type Checkout interface {
	// Path returns the root of a directory that holds exactly the version's
	// files. It is made when first asked for, whole or not at all; callers may
	// ask concurrently. release says that the caller does not need it any more;
	// a directory that nobody holds may be removed by Prune.
	Path(ctx context.Context, id VersionID) (dir string, release func(), err error)
}
