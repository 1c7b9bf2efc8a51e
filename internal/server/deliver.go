package server

import (
	"time"

	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/event/trace"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/target"
)

// openDeliver wires the deliver core to its neighbours, and the flow of nodes that check in.
func (p *parts) openDeliver() {
	p.members = target.Groups{Classifier: p.groups, Nodes: p.store.Nodes}
	p.results = &checkin.Results{Shown: p.store.Catalogs, Rows: p.store.Deliveries, Documents: documents{p.blobs}, Server: settings.ServerName()}
	p.deliver = deliver.NewService(deliver.Parts{
		Store: p.store.Deliveries, Groups: p.members, Promoter: p.results, Relay: p.relay, Now: time.Now, Log: p.log.Logger,
		Setting:   func() deliver.Mode { return deliver.Mode(p.config.Load().DeliveryMode) },
		FactsRead: watched{p.store.Reusables}.list,
		Limits:    current{&p.config}.brakeLimits,
		Changed:   func(node fleet.Certname, apply deliver.Apply) { p.hinter.Changed(node, apply) },
	})
	p.results.Brake = p.deliver
	p.places = checkin.Environments{Standings: p.deliver, Groups: p.groups, Versions: p.library, Nodes: p.store.Nodes}
	p.wants = checkin.Wants{
		Queue:        wantsAndStandings{p.store.Queue, p.store.Wants},
		Environments: p.places,
		Trust:        p.trust,
		Wake:         func() { p.dispatch.Wake() },
	}
	p.metrics.brakeFigures(p.deliver, p.store.Deliveries)
}

// openCheckin makes what answers nodes that ask for their catalogs.
func (p *parts) openCheckin() {
	p.checkin = checkin.Service{
		Trust:        p.trust,
		Environments: p.places,
		Facts:        p.near.runFacts(p.store.Facts),
		Delivery:     p.deliver,
		Catalogs:     trace.Catalogs{Source: p.catalogs, Recorder: p.recorder},
		Documents:    documents{p.blobs},
		Packs:        p.packs,
		Server:       settings.ServerName(),
		Now:          time.Now,
	}
}
