package server

import (
	"github.com/tutti-project/tutti/internal/store/lease"
)

// openLeases makes what holds leases for this server.
func openLeases(p *parts, c Config) {
	timing := lease.Sole()
	if c.Database != "" {
		timing = lease.Shared()
	}
	p.leases = lease.NewKeeper(p.store.Leases, p.id, timing, p.log.Logger)
}

// doneOnce is what one server does at a time, of all that use the same records: each under a lease by its name. What each server does for
// itself, for its agents and its compile workers, is no part of it.
func doneOnce(p *parts) stage {
	all := stage{
		"audit log's chain": p.chain.Run,
		"code from git":     p.sources.Run,
		"delivery":          p.deliver.Run,
		"facts":             p.factqueue.Run,
		"housekeeping":      p.housekeeper.run,
		"jobs":              p.jobs.Dispatch,
		"previews":          p.previews.Run,
		"releases":          p.releases.Worker.Run,
		"reports of runs":   p.events.SettleRuns,
		"scheduled jobs":    p.schedules.Run,
		"tidying":           p.store.Tidy,
		"wanted catalogs":   p.wanter.Run,
	}
	for name, work := range all {
		all[name] = p.leases.Once(name, work)
	}
	return all
}
