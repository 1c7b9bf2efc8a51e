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

// attend says again and again that this server is there, and hears whether it is to drain.
func attend(p *parts, address string) func(context.Context) error {
	c, every := p.config.Load(), lease.Sole().Renew
	if c.Database != "" {
		every = lease.Shared().Renew
	}
	return lease.Attendance{
		Roll: p.store.Leases, Every: every, Clock: &p.clock, Log: p.log.Logger,
		Server: lease.Server{ID: p.id, Address: address, Version: api.ProgramVersion(), Roles: c.Roles},
		Drain:  func(d lease.Drain) { p.drained <- d }, // once: there is room
	}.Run
}

// drain does what a drain asks for, once, until ctx is done: new work goes to other servers, what this one does once is left to them, and its
// connections to agents are closed a few at a time. Requests are answered as before.
func drain(p *parts, h *health) func(context.Context) error {
	return func(ctx context.Context) error {
		var asked lease.Drain
		select {
		case <-ctx.Done():
			return nil
		case asked = <-p.drained:
		}
		p.log.InfoContext(ctx, "draining: this server takes nothing new; it can be stopped when its agents have gone", "over", asked.Over)
		h.draining.Store(true)
		p.leases.Yield()
		p.dispatch.Yield()
		p.sockets.Shed(ctx, asked.Over)
		p.log.InfoContext(ctx, "drained: all agents were told to connect elsewhere")
		<-ctx.Done()
		return nil
	}
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

// Drain implements rest.Cluster.
func (m members) Drain(ctx context.Context, id string, over time.Duration) error {
	return m.store.DrainServer(ctx, id, over)
}

// Self implements rest.Cluster.
func (m members) Self() string { return m.id }

// compiling is what a server does that compiles what is wanted.
func compiling(p *parts) stage {
	if !p.config.Load().Does(settings.Compiler) {
		return stage{}
	}
	return stage{
		"compile dispatcher": p.dispatch.Run,
		"warmer":             p.warmer.Run,
		"verified catalogs":  p.verifier.Run,
	}
}

// doneOnce is what one server does at a time, of all that use the same records: each under a lease by its name. What each server does for
// itself, for its agents and its compile workers, is no part of it.
func doneOnce(p *parts) stage {
	if !p.config.Load().Does(settings.Scheduler) {
		return stage{}
	}
	all := stage{
		"audit log's chain": p.chain.Run,
		codeFromGit:         p.sources.Run,
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
