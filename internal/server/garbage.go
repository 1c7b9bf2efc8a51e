package server

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/compiler/worktree"
	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/store/sql"
)

// housekeeper forgets what is older than its retention and removes content that nothing refers to.
type housekeeper struct {
	store      *sql.Store
	events     *event.Service
	library    *code.Library
	trees      *worktree.Worktree
	usages     *usages
	departures departures
	config     *atomic.Pointer[settings.Config]
	log        *slog.Logger
}

// run sweeps what all servers share again and again until ctx is done. A failure is logged and tried again the next time.
func (h housekeeper) run(ctx context.Context) error { return h.every(ctx, h.sweep) }

// runHere is run for what only this server has.
func (h housekeeper) runHere(ctx context.Context) error { return h.every(ctx, h.sweepHere) }

func (h housekeeper) every(ctx context.Context, sweep func(context.Context, time.Time)) error {
	interval := h.config.Load().GarbageInterval
	next := time.NewTimer(min(interval, firstSweep))
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
			sweep(ctx, time.Now())
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

// sweep removes rows first and blobs last, so that what only removed rows referred to goes in the same sweep.
func (h housekeeper) sweep(ctx context.Context, now time.Time) {
	c := h.config.Load()
	for what, forget := range map[string]func() (int, error){
		"reports":            func() (int, error) { return h.store.Reports.PruneReports(ctx, now.Add(-c.ReportRetention)) },
		"details of reports": func() (int, error) { return h.shortenReports(ctx, now) },
		"backups":            func() (int, error) { return h.store.Backups.PruneBackups(ctx, now.Add(-c.BackupRetention)) },
		"versions": func() (int, error) {
			return h.store.Versions.PruneVersions(ctx, now.Add(-c.VersionRetention), keepVersions)
		},
		"jobs":           func() (int, error) { return h.store.Jobs.PruneJobs(ctx, now.Add(-c.JobRetention)) },
		"calls":          func() (int, error) { return h.store.Calls.PruneCalls(ctx, now.Add(-c.JobRetention)) },
		"plan jobs":      func() (int, error) { return h.store.Memos.PrunePlans(ctx, now.Add(-c.JobRetention)) },
		"scheduled jobs": func() (int, error) { return h.store.Schedules.PruneSchedules(ctx, now.Add(-c.JobRetention)) },
		"releases":       func() (int, error) { return h.store.Releases.PruneReleases(ctx, now.Add(-c.ReleaseRetention)) },
		"previews":       func() (int, error) { return h.store.Previews.PrunePreviews(ctx, now.Add(-c.PreviewRetention)) },
		"staged code":    func() (int, error) { return h.store.Versions.PruneStaged(ctx, now.Add(-c.PreviewRetention)) },
		"events":         func() (int, error) { return h.events.Prune(ctx, now.Add(-c.EventRetention)) },
		"tokens":         func() (int, error) { return h.store.Access.PruneTokens(ctx, now.Add(-keepTokens)) },
		"join tokens":    func() (int, error) { return h.store.Authority.PruneJoinTokens(ctx, now.Add(-keepTokens)) },
		"certificates":   func() (int, error) { return h.store.Authority.PruneCertificates(ctx, now.Add(-keepCertificates)) },
		"rules":          func() (int, error) { return h.store.Policies.PruneRules(ctx, now.Add(-c.AuditRetention), keepRules) },
		"saved queries": func() (int, error) {
			return h.store.SavedQueries.PruneSaved(ctx, now.Add(-c.AuditRetention), keepRules)
		},
		"noise rules":   func() (int, error) { return h.store.Previews.PruneNoise(ctx, now.Add(-c.AuditRetention), keepRules) },
		"servers":       func() (int, error) { return h.store.Leases.ForgetServers(ctx, forgetServers) },
		"audit log":     func() (int, error) { return h.store.Audit.PruneActs(ctx, now.Add(-c.AuditRetention), now) },
		"generations":   func() (int, error) { return h.store.Deliveries.PruneGenerations(ctx, c.GenerationsKept) },
		"losses":        func() (int, error) { return h.store.Deliveries.PruneLosses(ctx, now.Add(-c.JobRetention)) },
		"verifications": func() (int, error) { return h.store.Verifications.PruneVerifications(ctx, now.Add(-keepVerifications)) },
		"fact paths":    func() (int, error) { return h.store.Facts.PruneFactPaths(ctx) },
		"compilations":  func() (int, error) { return h.store.Queue.Prune(ctx, now.Add(-keepCompilations)) },
	} {
		h.tell(ctx, what, forget)
	}
	h.tell(ctx, "nodes that left", func() (int, error) { return h.purgeNodes(ctx, now, 0) })
	if _, err := h.expireNodes(ctx, now); err != nil && ctx.Err() == nil {
		h.log.ErrorContext(ctx, "nodes could not be expired, will retry", "err", err)
	}
	h.tell(ctx, "samples of what is used", func() (int, error) { return h.usages.sample(ctx, now) })
	h.tell(ctx, "blobs", func() (int, error) {
		removed, _, err := h.library.Sweep(ctx, c.GarbageGrace, h.referred)
		return removed, err
	})
}

// sweepHere looks after the data directory.
func (h housekeeper) sweepHere(ctx context.Context, _ time.Time) {
	h.tell(ctx, "work trees", func() (int, error) { return h.pruneTrees(ctx) })
}

// shortenReports keeps older reports in short, if there is a time for that.
func (h housekeeper) shortenReports(ctx context.Context, now time.Time) (int, error) {
	after := h.config.Load().ReportDetailRetention
	if after == 0 {
		return 0, nil
	}
	return h.store.Reports.ShortenReports(ctx, now.Add(-after))
}

func (h housekeeper) tell(ctx context.Context, what string, forget func() (int, error)) {
	n, err := forget()
	switch {
	case err != nil && ctx.Err() == nil:
		h.log.ErrorContext(ctx, "housekeeping failed, will retry", "what", what, "err", err)
	case n > 0:
		h.log.InfoContext(ctx, "removed what is past its time", "what", what, "count", n)
	}
}

// referred names every blob that something but code refers to.
func (h housekeeper) referred(ctx context.Context, keep func(fleet.Digest)) error {
	for _, list := range []func(context.Context) ([]fleet.Digest, error){
		h.store.Catalogs.CatalogDigests, h.store.Deliveries.GenerationCatalogs, h.store.Backups.Blobs,
		h.store.Jobs.JobFiles, h.store.Previews.PreviewDigests, h.store.Releases.ReleaseDigests,
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
func (h housekeeper) pruneTrees(ctx context.Context) (int, error) {
	current, err := versions{h.library, h.store.Versions}.Environments(ctx)
	if err != nil {
		return 0, err
	}
	used := map[fleet.Digest]bool{}
	for _, version := range current {
		used[version] = true
	}
	return h.trees.Prune(ctx, func(id fleet.Digest) bool { return used[id] })
}
