package server

import (
	"context"
	"log/slog"

	"github.com/tutti-project/tutti/internal/action/catalogue"
	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
)

// departures tells the jobs of nodes that are gone.
type departures struct {
	jobs      *job.Service
	register  *broker.Register
	catalogue *catalogue.Service
	log       *slog.Logger
}

// purged ends the runs of nodes that were purged, and forgets that they were connected and what their agents told.
func (d departures) purged(ctx context.Context, why string, nodes ...fleet.Certname) {
	d.register.Forget(nodes...)
	d.catalogue.Forget(nodes...)
	d.endRuns(ctx, why, nodes...)
}

// endRuns ends the runs of nodes that are gone. What cannot be stored now ends by time.
func (d departures) endRuns(ctx context.Context, why string, nodes ...fleet.Certname) {
	if err := d.jobs.Leave(ctx, why, nodes...); err != nil {
		d.log.WarnContext(ctx, "the runs of nodes that are gone could not be ended; they end by time", "count", len(nodes), "why", why, "err", err)
	}
}
