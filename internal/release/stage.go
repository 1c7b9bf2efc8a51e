package release

import (
	"context"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Staging prepares versions for nodes, so that their catalogs can be released one by one.
type Staging struct {
	// Environment is a node's environment in live mode.
	Environment func(ctx context.Context, node fleet.Certname) (fleet.Environment, error)
	// Versions is an environment's newest versions, at most limit; code.Store has them.
	Versions func(ctx context.Context, env fleet.Environment, limit int) ([]code.Version, error)
	Delivery interface {
		Prepare(ctx context.Context, stager deliver.Stager, wishes []deliver.Wish) ([]deliver.Prepared, error)
	}
	Stager deliver.Stager
	Wake   func() // a dispatcher
}

// Stage prepares a version for nodes. An environment that is not given is each node's own. A node whose environment has no
// such version cannot be released to, and says so.
func (s Staging) Stage(ctx context.Context, nodes []fleet.Certname, env fleet.Environment, version, ticket string) ([]deliver.Prepared, error) {
	type named struct {
		id  fleet.Digest
		err error
	}
	found := map[fleet.Environment]named{}
	var wishes []deliver.Wish
	var place []int
	all := make([]deliver.Prepared, len(nodes))
	for i, node := range nodes {
		of := env
		if of == "" {
			var err error
			if of, err = s.Environment(ctx, node); err != nil {
				return nil, err
			}
		}
		if _, known := found[of]; !known {
			id, err := s.Version(ctx, of, version)
			found[of] = named{id, err}
		}
		switch v := found[of]; {
		case fault.Is(v.err, fault.NotFound):
			all[i] = deliver.Prepared{Wish: deliver.Wish{Node: node, Environment: of}, State: deliver.Broken, Reason: fault.Detail(v.err)}
		case v.err != nil:
			return nil, v.err
		default:
			wishes, place = append(wishes, deliver.Wish{Node: node, Environment: of, Version: v.id, Ticket: ticket}), append(place, i)
		}
	}
	prepared, err := s.Delivery.Prepare(ctx, s.Stager, wishes)
	for i, p := range prepared {
		all[place[i]] = p
	}
	s.Wake()
	return all, err
}

// Named versions are looked for among so many of an environment's newest.
const namedVersions = 1000

// Version finds a version by its id or commit, or the beginning of one of them.
func (s Staging) Version(ctx context.Context, env fleet.Environment, name string) (fleet.Digest, error) {
	if len(name) < 6 {
		return "", fault.New(fault.Invalid,
			"a version is named by its id or commit, at least six digits of it, not %.80q; see tutti code versions %s", name, env)
	}
	versions, err := s.Versions(ctx, env, namedVersions)
	if err != nil {
		return "", err
	}
	return code.Named(env, versions, name)
}
