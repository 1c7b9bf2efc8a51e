package server

import (
	"context"
	"encoding/json"
	"net"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/pql"
	"github.com/tutti-project/tutti/internal/rbac"
)

// hashAtOnce is how many passwords are hashed at the same time: 64 MiB.
const hashAtOnce = 2

// openAccess wires the rbac core to its neighbours.
func (p *parts) openAccess() {
	p.access = rbac.NewAccess(rbac.AccessParts{
		Store:      p.store.Access,
		Hasher:     rbac.NewHasher(rbac.DefaultCost(), hashAtOnce),
		CheckScope: checkScope,
		Now:        time.Now,
		Log:        p.log.Logger,
		Config: func() rbac.Config {
			c := p.config.Load()
			return rbac.Config{TokenLife: c.TokenLifetime, MaxTokenLife: c.TokenMaxLifetime, MaxFailures: c.LoginFailures, Lockout: c.LoginLockout}
		},
	})
	p.audit = rbac.NewAudit(p.store.Audit, p.log.Logger)
}

// scopes is rest.Scopes: conditions on nodes are asked of the inventory.
type scopes struct{ asker inventory.Asker }

// Inside implements rest.Scopes.
func (s scopes) Inside(ctx context.Context, condition string, nodes []fleet.Certname) (map[fleet.Certname]bool, error) {
	where, err := pql.NodeCondition(condition)
	if err != nil {
		return nil, err
	}
	among := pql.In{Fields: []pql.Field{{Name: "certname"}}}
	for _, node := range nodes {
		among.Values = append(among.Values, pql.Text(string(node)))
	}
	checked, err := pql.Check(&pql.Query{
		Entity: "nodes", Columns: []pql.Column{{Field: pql.Field{Name: "certname"}}}, Where: pql.And{Terms: []pql.Expr{among, where}},
	})
	if err != nil {
		return nil, err
	}
	inside := map[fleet.Certname]bool{}
	err = s.asker.Ask(ctx, inventory.Question{Query: checked, MaxRows: len(nodes)}, func(row json.RawMessage) error {
		var node struct{ Certname fleet.Certname }
		if err := json.Unmarshal(row, &node); err != nil {
			return err
		}
		inside[node.Certname] = true
		return nil
	})
	return inside, err
}

// checkScope refuses what no inventory could be asked.
func checkScope(condition string) error {
	if _, err := pql.NodeCondition(condition); err != nil {
		return fault.Wrap(fault.Invalid, err, "the condition on nodes %.80q cannot be used: %s", condition, fault.Detail(err))
	}
	return nil
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
