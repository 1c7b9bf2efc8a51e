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
	return catalogue.Open(ctx, catalogue.Parts{
		Store: p.store.Catalogue,
		Ask:   sender{p.agents}.Ask,
		Connected: func(node fleet.Certname) bool {
			b := p.broker // of those that are connected to other servers, these ask
			return b != nil && b.Here(agentOf(node))
		},
		NewID: uuid.NewString,
		Now:   time.Now,
		Log:   p.log.Logger,
	}, catalogue.DefaultLimits())
}
