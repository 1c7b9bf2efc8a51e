package server

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/protocol/rest"
)

// deliveryDoor is rest.Deliveries.
type deliveryDoor struct {
	*parts
	*deliver.Service
}

// Generations implements rest.Deliveries.
func (d deliveryDoor) Generations(ctx context.Context, node fleet.Certname) ([]deliver.Generation, error) {
	return d.store.Deliveries.Generations(ctx, node)
}

// ModesSet implements rest.Deliveries.
func (d deliveryDoor) ModesSet(ctx context.Context) ([]deliver.ModeSet, error) {
	return d.store.Deliveries.ModesSet(ctx)
}

// Targets implements rest.Deliveries.
func (d deliveryDoor) Targets(ctx context.Context, wanted job.Targets) ([]fleet.Certname, error) {
	return targets{d.parts}.Resolve(ctx, wanted)
}

// Stage implements rest.Deliveries: it prepares a version for nodes. An environment
// that is not given is each node's own. A node whose environment has no such version
// cannot be released to, and says so.
func (d deliveryDoor) Stage(ctx context.Context, nodes []fleet.Certname, env fleet.Environment, version, ticket string) ([]deliver.Prepared, error) {
	found := map[fleet.Environment]resolved{}
	var wishes []deliver.Wish
	var place []int
	all := make([]deliver.Prepared, len(nodes))
	for i, node := range nodes {
		of := env
		if of == "" {
			var err error
			if of, err = d.environmentOf(ctx, node); err != nil {
				return nil, err
			}
		}
		if _, known := found[of]; !known {
			found[of] = d.version(ctx, of, version)
		}
		switch r := found[of]; {
		case fault.Of(r.err) == fault.NotFound && r.err != nil:
			all[i] = deliver.Prepared{Wish: deliver.Wish{Node: node, Environment: of}, State: deliver.Broken, Reason: fault.Detail(r.err)}
		case r.err != nil:
			return nil, r.err
		default:
			wishes, place = append(wishes, deliver.Wish{Node: node, Environment: of, Version: r.id, Ticket: ticket}), append(place, i)
		}
	}
	prepared, err := d.Prepare(ctx, stager(d), wishes)
	for i, p := range prepared {
		all[place[i]] = p
	}
	d.dispatch.Wake()
	return all, err
}

// environmentOf is a node's environment, as if it were in live mode.
func (d deliveryDoor) environmentOf(ctx context.Context, name fleet.Certname) (fleet.Environment, error) {
	decided, err := d.groups.environment(ctx, name)
	if err != nil || decided != "" {
		return decided, err
	}
	node, err := d.store.Nodes.Node(ctx, name)
	if err != nil && fault.Of(err) != fault.NotFound {
		return "", err
	}
	return cmp.Or(node.Environment, defaultEnvironment), nil
}

// resolved is a version that somebody named.
type resolved struct {
	id  fleet.Digest
	err error
}

// Named versions are looked for among so many of an environment's newest.
const namedVersions = 1000

// version finds a version by its id or commit, or the beginning of one of them.
func (d deliveryDoor) version(ctx context.Context, env fleet.Environment, name string) resolved {
	if len(name) < 6 {
		return resolved{err: fault.New(fault.Invalid, "a version is named by its id or commit, at least six digits of it, not %.80q; see tutti code versions %s", name, env)}
	}
	versions, err := d.store.Versions.Versions(ctx, env, namedVersions)
	if err != nil {
		return resolved{err: err}
	}
	var found []code.Version
	for _, v := range versions {
		if strings.HasPrefix(string(v.ID), name) || strings.HasPrefix(v.Commit, name) {
			found = append(found, v)
		}
	}
	switch {
	case len(found) == 0:
		return resolved{err: fault.New(fault.NotFound, "environment %s has no version %.80s", env, name)}
	case len(found) > 1 && found[0].ID != found[1].ID:
		return resolved{err: fault.New(fault.Invalid, "more than one version of %s begins with %.80s: %s, %s; give more digits", env, name, found[0].ID.Short(), found[1].ID.Short())}
	}
	return resolved{id: found[0].ID}
}

// stager is deliver.Stager over the queue.
type stager deliveryDoor

// Stage implements deliver.Stager. The ticket is the row's transaction: asked again with
// it, the row that has ended answers.
func (s stager) Stage(ctx context.Context, w deliver.Wish) (staged deliver.Staged, err error) {
	trusted, err := agentDoor{s.parts}.Trusted(ctx, w.Node, nil)
	if err != nil && fault.Of(err) != fault.NotFound { // it has no certificate
		return staged, err
	}
	c, err := s.store.Queue.Want(ctx, compile.Want{
		Node: w.Node, Environment: w.Environment, Version: w.Version, Transaction: w.Ticket, Trusted: trusted, Priority: compile.Waited,
		At: time.Now(), Staged: true,
	})
	if err != nil {
		return staged, err
	}
	switch c.State {
	case compile.Failed:
		staged.Failure = c.Err.Message
	case compile.Done:
		staged.Catalog = &deliver.Catalog{
			Digest: c.Catalog, Environment: c.Environment, Version: c.Version, UUID: c.UUID, Compilation: c.ID, CompiledAt: c.FinishedAt,
		}
	case compile.Wanted, compile.Leased: // it goes on
	}
	return staged, nil
}

// Changes implements rest.Deliveries.
func (d deliveryDoor) Changes(ctx context.Context, steps []rest.CatalogStep) (changes api.FleetDifference, compared int, err error) {
	groups, err := d.previews.Comparing()
	if err != nil {
		return changes, 0, err
	}
	for i, s := range steps {
		number := uint32(i)
		if s.From == s.To {
			groups.AddSame(number, s.Node)
			compared++
			continue
		}
		_, err := groups.Add(ctx, number, s.Node, s.From, s.To)
		switch kind := fault.Of(err); {
		case err == nil:
			compared++
		case kind != fault.NotFound && kind != fault.Invalid:
			return changes, compared, err
		}
	}
	changes, err = groups.So(maxDifferences, func(number uint32) string { return string(steps[number].Node) })
	return changes, compared, err
}
