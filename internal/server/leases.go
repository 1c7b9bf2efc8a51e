package server

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/hint/bus"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/store/lease"
	"github.com/tutti-project/tutti/internal/store/sql"
)

// openLeases makes what holds leases for this server.
func openLeases(p *parts, c settings.Config) {
	timing := lease.Sole()
	if c.Database != "" {
		timing = lease.Shared()
	}
	p.leases = lease.NewKeeper(p.store.Leases, p.id, timing, p.log.Logger)
}

// forgetServers is how long a server that ended without a word stays listed.
const forgetServers = 7 * 24 * time.Hour

// attend says again and again that this server is there.
func attend(p *parts, address string) func(context.Context) error {
	every := lease.Sole().Renew
	if p.config.Load().Database != "" {
		every = lease.Shared().Renew
	}
	here := lease.Server{ID: p.id, Address: address, Version: api.ProgramVersion()}
	return func(ctx context.Context) error { return lease.Attend(ctx, p.store.Leases, here, every, p.log.Logger) }
}

// members is rest.Cluster.
type members struct {
	store *sql.Leases
	id    string
	bus   bus.Bus
}

// Bus implements rest.Cluster.
func (m members) Bus() bus.State { return m.bus.State() }

// Servers implements rest.Cluster.
func (m members) Servers(ctx context.Context) ([]lease.Server, error) { return m.store.Servers(ctx) }

// Leases implements rest.Cluster.
func (m members) Leases(ctx context.Context) ([]lease.Lease, error) { return m.store.Leases(ctx) }

// Self implements rest.Cluster.
func (m members) Self() string { return m.id }

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
