package checkin

import (
	"context"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/job"
)

// Runs is job.Reports: what reports and compilations say of a Puppet run.
type Runs struct {
	Reports   inventory.RunStore
	Breakages compile.Breakages
	Delivery  Delivery
}

// PuppetReport implements job.Reports.
func (r Runs) PuppetReport(ctx context.Context, node fleet.Certname, transaction string) (job.PuppetReport, error) {
	broken, err := r.broken(ctx, node)
	if err != nil {
		return job.PuppetReport{}, err
	}
	known := job.PuppetReport{Broken: broken}
	if known.Held, err = r.held(ctx, node); err != nil {
		return known, err
	}
	report, err := r.Reports.RunReport(ctx, node, transaction)
	switch {
	case fault.Is(err, fault.NotFound):
		return known, nil // there is no report of that run
	case err != nil:
		return known, err
	}
	first := report.FirstFailure()
	known.ID, known.Failed, known.First, known.Message = string(report.ID), report.Counts.Failed, first.Resource, first.Message
	known.Cached, known.NoCatalog = report.CachedCatalog == inventory.OnFailure, report.NoCatalog()
	if report.NoopPending {
		known.Pending = report.Counts.Noop
	}
	return known, nil
}

// held is why a node keeps its catalog though there is a newer one.
func (r Runs) held(ctx context.Context, node fleet.Certname) (string, error) {
	if _, released, err := r.Delivery.Held(ctx, node); released || err != nil {
		return "", err
	}
	loss, ok, err := r.Delivery.OnHold(ctx, node)
	if err != nil || !ok {
		return "", err
	}
	return loss.Story(), nil
}

// broken is why a node's newest catalog does not compile, if the node is meant to have that one.
func (r Runs) broken(ctx context.Context, node fleet.Certname) (string, error) {
	failed, err := r.Breakages.Broken(ctx, []fleet.Certname{node})
	c, there := failed[node]
	if err != nil || !there || c.Err == nil {
		return "", err
	}
	if _, held, err := r.Delivery.Held(ctx, node); held || err != nil {
		return "", err
	}
	return fleet.Placed(c.Err.File, c.Err.Line, c.Err.Plain()), nil
}
