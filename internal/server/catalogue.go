package server

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/action/catalogue"
	"github.com/tutti-project/tutti/internal/fleet"
)

// openCatalogue makes what knows which modules nodes have.
func openCatalogue(ctx context.Context, p *parts) (*catalogue.Service, error) {
	parts := catalogue.Parts{
		Store: p.store.Catalogue,
		Ask:   sender{p.agents}.Ask,
		Connected: func(node fleet.Certname) bool {
			b := p.broker // of those that are connected to other servers, these ask
			return b != nil && b.Here(agentOf(node))
		},
		NewID: uuid.NewString,
		Now:   time.Now,
		Log:   p.log.Logger,
	}
	var others func(string) // nothing is saved before Run
	if p.config.Load().Cluster {
		parts.Saved = func() { others("") }
	}
	service, err := catalogue.Open(ctx, parts, catalogue.DefaultLimits())
	if err == nil && p.config.Load().Cluster {
		p.modulesThere = catalogue.NewFollower(service)
		others = p.relay.Join("modules", func(string) { p.modulesThere.Heard() })
	}
	return service, err
}

// modulesOfOthers is what a server does to know the modules of nodes that are connected to others.
func modulesOfOthers(p *parts) stage {
	if p.modulesThere == nil {
		return stage{}
	}
	return stage{"modules of other servers' nodes": p.modulesThere.Run}
}
