package server

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// housekeeping forgets what is older than its retention and removes content that
// nothing refers to. It runs until ctx is done; a failure is logged and tried
// again the next time.
func (p *parts) housekeeping(ctx context.Context) error {
	interval := p.config.Load().GarbageInterval
	next := time.NewTimer(min(interval, firstSweep))
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
			p.sweep(ctx, time.Now())
			next.Reset(interval)
		}
	}
}

// firstSweep is how soon after a start the first sweep is: a server that is
// started anew more often than garbage_interval must not keep everything.
const firstSweep = 15 * time.Minute

// keepCompilations is how long finished compilations stay, besides each node's newest.
const keepCompilations = 24 * time.Hour

// keepVersions is how many versions of each environment stay however old they are,
// so that there is always something to go back to.
const keepVersions = 10

// keepTokens is how long expired tokens stay listed, so that their users see why
// they do not work any more.
const keepTokens = 7 * 24 * time.Hour

// keepCertificates is how long certificates that ended, and that no name stands for, stay.
const keepCertificates = 30 * 24 * time.Hour

// keepRules is how many versions of each rule stay however old they are.
const keepRules = 20

func (p *parts) sweep(ctx context.Context, now time.Time) {
	c := p.config.Load()
	for what, forget := range map[string]func() (int, error){
		"reports":            func() (int, error) { return p.store.Reports.PruneReports(ctx, now.Add(-c.ReportRetention)) },
		"details of reports": func() (int, error) { return p.shortenReports(ctx, now) },
		"backups":            func() (int, error) { return p.store.Backups.PruneBackups(ctx, now.Add(-c.BackupRetention)) },
		"versions": func() (int, error) {
			return p.store.Versions.PruneVersions(ctx, now.Add(-c.VersionRetention), keepVersions)
		},
		"jobs":          func() (int, error) { return p.store.Jobs.PruneJobs(ctx, now.Add(-c.JobRetention)) },
		"releases":      func() (int, error) { return p.store.Releases.PruneReleases(ctx, now.Add(-c.ReleaseRetention)) },
		"previews":      func() (int, error) { return p.store.Previews.PrunePreviews(ctx, now.Add(-c.PreviewRetention)) },
		"staged code":   func() (int, error) { return p.store.Versions.PruneStaged(ctx, now.Add(-c.PreviewRetention)) },
		"events":        func() (int, error) { return p.events.Prune(ctx, now.Add(-c.EventRetention)) },
		"tokens":        func() (int, error) { return p.store.Access.PruneTokens(ctx, now.Add(-keepTokens)) },
		"join tokens":   func() (int, error) { return p.store.Authority.PruneJoinTokens(ctx, now.Add(-keepTokens)) },
		"certificates":  func() (int, error) { return p.store.Authority.PruneCertificates(ctx, now.Add(-keepCertificates)) },
		"rules":         func() (int, error) { return p.store.Policies.PruneRules(ctx, now.Add(-c.AuditRetention), keepRules) },
		"noise rules":   func() (int, error) { return p.store.Previews.PruneNoise(ctx, now.Add(-c.AuditRetention), keepRules) },
		"audit log":     func() (int, error) { return p.store.Audit.PruneActs(ctx, now.Add(-c.AuditRetention), now) },
		"generations":   func() (int, error) { return p.store.Deliveries.PruneGenerations(ctx, c.GenerationsKept) },
		"losses":        func() (int, error) { return p.store.Deliveries.PruneLosses(ctx, now.Add(-c.JobRetention)) },
		"verifications": func() (int, error) { return p.store.Verifications.PruneVerifications(ctx, now.Add(-keepVerifications)) },
		"fact paths":    func() (int, error) { return p.store.Facts.PruneFactPaths(ctx) },
		"compilations":  func() (int, error) { return p.store.Queue.Prune(ctx, now.Add(-keepCompilations)) },
	} {
		p.tell(ctx, what, forget)
	}
	p.tell(ctx, "nodes that left", func() (int, error) { return p.purgeNodes(ctx, now, 0) })
	if _, err := p.expireNodes(ctx, now); err != nil && ctx.Err() == nil {
		p.log.ErrorContext(ctx, "nodes could not be expired, will retry", "err", err)
	}
	p.tell(ctx, "samples of what is used", func() (int, error) { return p.usages.sample(ctx, now) })
	p.tell(ctx, "work trees", func() (int, error) { return p.pruneTrees(ctx) })
	p.tell(ctx, "blobs", func() (int, error) {
		removed, _, err := p.library.Sweep(ctx, c.GarbageGrace, p.referred)
		return removed, err
	})
}

// shortenReports keeps older reports in short, if there is a time for that.
func (p *parts) shortenReports(ctx context.Context, now time.Time) (int, error) {
	after := p.config.Load().ReportDetailRetention
	if after == 0 {
		return 0, nil
	}
	return p.store.Reports.ShortenReports(ctx, now.Add(-after))
}

func (p *parts) tell(ctx context.Context, what string, forget func() (int, error)) {
	n, err := forget()
	switch {
	case err != nil && ctx.Err() == nil:
		p.log.ErrorContext(ctx, "housekeeping failed, will retry", "what", what, "err", err)
	case n > 0:
		p.log.InfoContext(ctx, "removed what is past its time", "what", what, "count", n)
	}
}

// referred names every blob that something but code refers to.
func (p *parts) referred(ctx context.Context, keep func(fleet.Digest)) error {
	for _, list := range []func(context.Context) ([]fleet.Digest, error){
		p.store.Catalogs.CatalogDigests, p.store.Deliveries.GenerationCatalogs, p.store.Backups.Blobs,
		p.store.Jobs.JobFiles, p.store.Previews.PreviewDigests, p.store.Releases.ReleaseDigests,
	} {
		digests, err := list(ctx)
		if err != nil {
			return err
		}
		for _, d := range digests {
			keep(d)
		}
	}
	return nil
}

// pruneTrees removes the directories of versions that no environment uses now.
func (p *parts) pruneTrees(ctx context.Context) (int, error) {
	current, err := p.versions().Environments(ctx)
	if err != nil {
		return 0, err
	}
	used := map[fleet.Digest]bool{}
	for _, version := range current {
		used[version] = true
	}
	return p.trees.Prune(ctx, func(id fleet.Digest) bool { return used[id] })
}
