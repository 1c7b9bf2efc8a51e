package compile

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// VerifyOutcome says how a catalog stands to plain Puppet's.
type VerifyOutcome string

// The outcomes.
const (
	Same          VerifyOutcome = "same"           // equal in all that is compared, or both fail in the same words
	Differs       VerifyOutcome = "differs"        // an alarm: no catalog of the version is used again
	NotComparable VerifyOutcome = "not-comparable" // Reason says why: the code is volatile, inputs changed, answers are not kept
	NotVerified   VerifyOutcome = "failed"         // plain Puppet could not be run to its end
)

// VerifyOutcomes is all of them.
func VerifyOutcomes() []VerifyOutcome {
	return []VerifyOutcome{Same, Differs, NotComparable, NotVerified}
}

// VerifyCause says why a catalog was verified.
type VerifyCause string

// The causes.
const (
	ByHand      VerifyCause = "hand"   // somebody asked
	AfterDeploy VerifyCause = "deploy" // the node stands for a set of classes after a deploy
	Sampled     VerifyCause = "sample" // its compilation is one of verify_share
)

// Verification is one catalog, compared with what plain Puppet gives for the same order.
type Verification struct {
	ID          int64
	Node        fleet.Certname
	Environment fleet.Environment
	Version     fleet.Digest
	Catalog     fleet.Digest // empty: the compilation failed
	Inputs      fleet.Digest // of the input set; empty: none is known
	Outcome     VerifyOutcome
	Cause       VerifyCause
	Reason      string       // of what could not be compared
	Differences []Difference // at most MaxDifferences
	Count       int          // how many there are
	Wall        time.Duration
	At          time.Time
}

// VerificationFilter picks verifications. Empty fields pick all.
type VerificationFilter struct {
	Node        fleet.Certname
	Environment fleet.Environment
	Version     fleet.Digest
	Outcome     VerifyOutcome
	Before      int64 // only IDs below this; 0: all
	Limit       int
}

// ClassSet is nodes whose catalogs have the same classes.
type ClassSet struct {
	Node  fleet.Certname // the first of them by name
	Nodes int
}

// Verifications keeps what was verified, and what that needs. Whoever implements Queue implements it too. Every
// method may be called concurrently and is one transaction.
type Verifications interface {
	// SaveVerification adds one and returns it with its ID.
	SaveVerification(ctx context.Context, v Verification) (Verification, error)
	// Verifications lists them, the latest (highest ID) first.
	Verifications(ctx context.Context, f VerificationFilter) ([]Verification, error)
	// CountVerifications counts those of a version in an environment by outcome.
	CountVerifications(ctx context.Context, env fleet.Environment, version fleet.Digest) (map[VerifyOutcome]int, error)
	// PruneVerifications forgets those of before a time, and counts them.
	PruneVerifications(ctx context.Context, before time.Time) (int, error)
	// Answers reads what Finish stored of InputSet.Answers; what is not kept is left out.
	Answers(ctx context.Context, digests []fleet.Digest) (map[fleet.Digest]json.RawMessage, error)
	// DoneOf returns the newest done compilation of a node, environment and version with its inputs. NotFound if there is none.
	DoneOf(ctx context.Context, node fleet.Certname, env fleet.Environment, version fleet.Digest) (Compilation, error)
	// ClassSets groups the active nodes whose newest catalog is of env by the classes that it has; the largest set first.
	ClassSets(ctx context.Context, env fleet.Environment) ([]ClassSet, error)
}
