package server

import (
	"time"

	"github.com/tutti-project/tutti/internal/appgraph"
	"github.com/tutti-project/tutti/internal/protocol/front"
	orchestratorapi "github.com/tutti-project/tutti/internal/protocol/orchestrator"
	"github.com/tutti-project/tutti/internal/protocol/rest"
)

// orchestration serves clients of Puppet Enterprise's orchestrator. Who asks is found out as for Tutti's own API.
func orchestration(p *parts, own *rest.Handler) *orchestratorapi.Handler {
	return orchestratorapi.New(orchestratorapi.Config{
		Jobs:         p.jobs,
		Orders:       p.submits,
		Schedules:    p.schedules,
		Memos:        p.store.Memos,
		Tasks:        codeTasks{p.library, p.blobs},
		Connections:  presences{p.agents},
		Gate:         gateOver(p.store),
		Applications: appgraph.Service{Store: p.store.Catalogs},
		Environments: p.versions(),
		Inventory:    p.store.Queries,
		Access:       p.access,
		Actor:        own.Actor,
		Audit:        p.audit,
		Entry:        front.Entry,
		RequestID:    front.RequestID,
		Now:          time.Now,
		Stopping:     p.stopping,
		Log:          p.log.Logger,
	})
}
