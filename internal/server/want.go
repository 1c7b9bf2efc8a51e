package server

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
)

// newWanter wires what decides whose catalog is compiled ahead. Whatever is stored
// that may matter hints to it.
func (p *parts) newWanter() (err error) {
	p.wanter, err = compile.NewWanter(compile.WanterParts{
		Store: p.store.Wants, Standings: p.store.Wants, Readings: p.store.Reusables,
		Reuser: p.reuser, Environments: adapter{p}, Grouping: grouping{p.groups}, Modes: modes{p}, Wake: p.dispatch.Wake, Log: p.log.Logger,
		Ahead:        func() bool { return p.config.Load().CompileAhead && p.config.Load().ReuseCatalogs },
		Follow:       func() bool { return p.config.Load().FollowExports },
		OnSign:       func() bool { return p.config.Load().CompileOnSign },
		RefreshAfter: func() time.Duration { return p.config.Load().RefreshAfter },
	}, compile.DefaultWanter())
	if err == nil {
		p.store.Wants.OnChange(p.wanter.Hint)
	}
	return err
}

// grouping is compile.Grouping. Of an external node classifier nobody knows what its
// answers come from: there it is the node's next request that notices.
type grouping struct{ *classifier }

// Revision implements compile.Grouping.
func (g grouping) Revision(ctx context.Context) (int64, error) {
	if g.config.Load().ExternalNodeClassifier != "" {
		return 0, nil
	}
	return g.store.Groups.GroupsRevision(ctx)
}

// Facts implements compile.Grouping.
func (g grouping) Facts(ctx context.Context) ([]string, error) {
	if g.config.Load().ExternalNodeClassifier != "" {
		return nil, nil
	}
	tree, err := g.current(ctx)
	if err != nil {
		return nil, err
	}
	return tree.FactNames(), nil
}

// Environment implements compile.Grouping.
func (g grouping) Environment(ctx context.Context, node fleet.Certname, otherwise fleet.Environment) (fleet.Environment, error) {
	decided, err := g.environment(ctx, node)
	return cmp.Or(decided, otherwise, defaultEnvironment), err
}

// trust is compile.Trust: what nodes' certificates prove.
type trust struct{ *parts }

// Trusted implements compile.Trust.
func (t trust) Trusted(ctx context.Context, node fleet.Certname) (json.RawMessage, error) {
	return agentDoor(t).Trusted(ctx, node, nil)
}

// modes is compile.Modes.
type modes struct{ *parts }

// InReleased implements compile.Modes.
func (m modes) InReleased(ctx context.Context, nodes []fleet.Certname) (map[fleet.Certname]bool, error) {
	return m.deliver.InReleased(ctx, nodes)
}
