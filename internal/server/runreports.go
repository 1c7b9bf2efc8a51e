package server

import (
	"context"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/job"
)

// runReports is job.Reports: what reports and compilations say of a Puppet run.
type runReports struct {
	reports   inventory.RunStore
	breakages compile.Breakages
	deliver   *deliver.Service
}

// PuppetReport implements job.Reports.
func (r runReports) PuppetReport(ctx context.Context, node fleet.Certname, transaction string) (job.PuppetReport, error) {
	broken, err := r.broken(ctx, node)
	if err != nil {
		return job.PuppetReport{}, err
	}
	known := job.PuppetReport{Broken: broken}
	if known.Held, err = r.held(ctx, node); err != nil {
		return known, err
	}
	report, err := r.reports.RunReport(ctx, node, transaction)
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
func (r runReports) held(ctx context.Context, node fleet.Certname) (string, error) {
	if _, released, err := r.deliver.Held(ctx, node); released || err != nil {
		return "", err
	}
	loss, ok, err := r.deliver.OnHold(ctx, node)
	if err != nil || !ok {
		return "", err
	}
	return loss.Story(), nil
}

// broken is why a node's newest catalog does not compile, if the node is meant to have that one.
func (r runReports) broken(ctx context.Context, node fleet.Certname) (string, error) {
	failed, err := r.breakages.Broken(ctx, []fleet.Certname{node})
	c, there := failed[node]
	if err != nil || !there || c.Err == nil {
		return "", err
	}
	if _, held, err := r.deliver.Held(ctx, node); held || err != nil {
		return "", err
	}
	return fleet.Placed(c.Err.File, c.Err.Line, c.Err.Plain()), nil
}
