package server

import (
	"time"

	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/compile"
)

// newWanter wires what decides whose catalog is compiled ahead. Whatever is stored
// that may matter hints to it.
func (p *parts) newWanter() (err error) {
	p.wanter, err = compile.NewWanter(compile.WanterParts{
		Store: p.store.Wants, Standings: p.store.Wants, Readings: p.store.Reusables, Reuser: p.reuser, Environments: p.versions(),
		Grouping: checkin.Grouping{Groups: p.groups, Environments: p.places}, Modes: p.deliver, Wake: p.dispatch.Wake, Log: p.log.Logger,
		Ahead:        func() bool { return p.config.Load().CompileAhead && p.config.Load().ReuseCatalogs },
		Follow:       func() bool { return p.config.Load().FollowExports },
		OnSign:       func() bool { return p.config.Load().CompileOnSign },
		RefreshAfter: func() time.Duration { return p.config.Load().RefreshAfter },
	}, compile.DefaultWanter())
	if err == nil {
		others := p.relay.Join("wanted", func(string) { p.wanter.Hint() })
		p.store.Wants.OnChange(func() {
			p.wanter.Hint()
			others("")
		})
	}
	return err
}
