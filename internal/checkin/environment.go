package checkin

import (
	"cmp"
	"context"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// DefaultEnvironment is what a node gets that does not ask for one.
const DefaultEnvironment fleet.Environment = "production"

// Groups decide about nodes.
type Groups interface {
	// Environment is the one that groups give a node; empty when they leave it open.
	Environment(ctx context.Context, node fleet.Certname) (fleet.Environment, error)
}

// Standings knows which nodes are in released mode; *deliver.Service is one.
type Standings interface {
	// Held is what was released to a node; ok is false for one in live mode.
	Held(ctx context.Context, node fleet.Certname) (standing deliver.Standing, ok bool, err error)
}

// Versions knows the current version of environments; *code.Library is one.
type Versions interface {
	// Refresh asks the rows; NotFound for an environment without code.
	Refresh(ctx context.Context, env fleet.Environment) (code.Version, error)
}

// Nodes knows the environments that nodes ran in.
type Nodes interface {
	// Node reads one node; NotFound.
	Node(ctx context.Context, name fleet.Certname) (inventory.Node, error)
}

// Environments decides the environment of nodes.
type Environments struct {
	Standings Standings
	Groups    Groups
	Versions  Versions
	Nodes     Nodes
}

// Place is where a node gets its code from.
type Place struct {
	Standing    deliver.Standing // of a node in released mode
	Released    bool             // the node is in released mode
	Environment fleet.Environment
	Version     fleet.Digest // the current one of the environment; empty for a node that was released to
}

// Of is a node's place. An empty requested stands for a node that did not ask. NotFound when requested does not
// exist, and Invalid when groups name an environment without code.
func (e Environments) Of(ctx context.Context, node fleet.Certname, requested fleet.Environment) (Place, error) {
	standing, released, err := e.Standings.Held(ctx, node)
	if err != nil {
		return Place{}, err
	}
	place := Place{Standing: standing, Released: released}
	if released && standing.Head != nil {
		place.Environment = standing.Head.Environment
		return place, nil
	}
	decided, err := e.Groups.Environment(ctx, node)
	if err != nil {
		return Place{}, err
	}
	place.Environment = orElse(decided, requested)
	version, err := e.Versions.Refresh(ctx, place.Environment)
	switch {
	case err == nil:
		place.Version = version.ID
		return place, nil
	case fault.Of(err) != fault.NotFound:
		return Place{}, err
	case decided != "":
		return Place{}, fault.New(fault.Invalid, "groups give %s the environment %s, which has no code; deploy it, or see `tutti group explain %s`",
			node, place.Environment, node)
	}
	return Place{}, fault.New(fault.NotFound, "Could not find environment '%s'", place.Environment)
}

// OrOwn is Of, and for a node that asks for an environment that does not exist as if it had not asked.
func (e Environments) OrOwn(ctx context.Context, node fleet.Certname, requested fleet.Environment) (Place, error) {
	place, err := e.Of(ctx, node, requested)
	if fault.Is(err, fault.NotFound) {
		return e.Of(ctx, node, "")
	}
	return place, err
}

// Live is a node's environment in live mode: the one that groups give it, and otherwise the given one. Whether it has
// code is not asked.
func (e Environments) Live(ctx context.Context, node fleet.Certname, otherwise fleet.Environment) (fleet.Environment, error) {
	decided, err := e.Groups.Environment(ctx, node)
	return orElse(decided, otherwise), err
}

// LiveOfKnown is Live with the environment that the node ran in last.
func (e Environments) LiveOfKnown(ctx context.Context, name fleet.Certname) (fleet.Environment, error) {
	decided, err := e.Groups.Environment(ctx, name)
	if err != nil || decided != "" {
		return decided, err
	}
	node, err := e.Nodes.Node(ctx, name)
	if err != nil && fault.Of(err) != fault.NotFound {
		return "", err
	}
	return orElse(node.Environment, ""), nil
}

// CodeOf is the environment of a node, and the version of its code that counts for the node: what was released to it, or what its environment
// uses. NotFound when the environment has no code.
func (e Environments) CodeOf(ctx context.Context, name fleet.Certname) (fleet.Environment, fleet.Digest, error) {
	standing, released, err := e.Standings.Held(ctx, name)
	if err != nil {
		return "", "", err
	}
	if released && standing.Head != nil {
		return standing.Head.Environment, standing.Head.Version, nil
	}
	env, err := e.LiveOfKnown(ctx, name)
	if err != nil {
		return "", "", err
	}
	version, err := e.Versions.Refresh(ctx, env)
	return env, version.ID, err
}

// OfFacts is the environment that facts are kept with that come apart from a run: the one that is known of the node,
// for its runs say it. What a node asks for counts only of a new one.
func (e Environments) OfFacts(ctx context.Context, name fleet.Certname, requested fleet.Environment) (fleet.Environment, error) {
	node, err := e.Nodes.Node(ctx, name)
	if err == nil && node.Environment != "" {
		return node.Environment, nil
	}
	if err != nil && fault.Of(err) != fault.NotFound {
		return "", err
	}
	place, err := e.Of(ctx, name, requested)
	if err != nil { // it has no code, or groups cannot say it yet
		return orElse(requested, ""), nil //nolint:nilerr // that is the answer
	}
	return place.Environment, nil
}

// orElse is the rule where several may name an environment.
func orElse(first, second fleet.Environment) fleet.Environment {
	return cmp.Or(first, second, DefaultEnvironment)
}
