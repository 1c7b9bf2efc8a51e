package server

import (
	"context"
	"net"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/target"
)

// hashAtOnce is how many passwords are hashed at the same time: 64 MiB.
const hashAtOnce = 2

// openAccess wires the rbac core to its neighbours.
func (p *parts) openAccess() {
	p.access = rbac.NewAccess(rbac.AccessParts{
		Store:      p.store.Access,
		Hasher:     rbac.NewHasher(rbac.DefaultCost(), hashAtOnce),
		CheckScope: target.CheckScope,
		Now:        time.Now,
		Log:        p.log.Logger,
		Config: func() rbac.Config {
			c := p.config.Load()
			return rbac.Config{TokenLife: c.TokenLifetime, MaxTokenLife: c.TokenMaxLifetime, MaxFailures: c.LoginFailures, Lockout: c.LoginLockout}
		},
	})
	p.audit = rbac.NewAudit(p.store.Audit, p.log.Logger)
}

// entryOf begins an audit entry with what is known of the request. Whoever asks
// for it takes over its recording.
func entryOf(ctx context.Context) rbac.Entry {
	entry := rbac.Entry{At: time.Now()}
	if req, ok := ctx.Value(requestKey{}).(*request); ok {
		req.recorded = true
		entry.RequestID, entry.Remote = req.id, req.remote
	}
	return entry
}

// refusals records refusals that no handler recorded: of agents' routes.
type refusals struct{ audit *rbac.Audit }

// record records one. The operation is the route, the object what was asked for.
func (r refusals) record(ctx context.Context, req *request, route, path string) {
	if req.recorded {
		return
	}
	entry := entryOf(ctx)
	entry.ActorKind, entry.Actor, entry.Operation, entry.Object = req.actor.Kind, req.actor.Name, route, path
	r.audit.Refused(ctx, entry, fault.New(fault.Denied, "%s %s may not ask for this", req.actor.Kind, req.actor.Name))
}

// hostOf is an address without its port.
func hostOf(remote string) string {
	if host, _, err := net.SplitHostPort(remote); err == nil {
		return host
	}
	return remote
}
