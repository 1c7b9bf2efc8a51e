package server

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/front"
	"github.com/tutti-project/tutti/internal/protocol/node"
	"github.com/tutti-project/tutti/internal/protocol/pejson"
	"github.com/tutti-project/tutti/internal/protocol/puppet"
	"github.com/tutti-project/tutti/internal/protocol/rbacapi"
	"github.com/tutti-project/tutti/internal/protocol/websocket"
	"github.com/tutti-project/tutti/internal/rbac"
)

// front is what is before routes.
func (p *parts) front(routes http.Handler, access *atomic.Bool) http.Handler {
	return front.New(front.Config{
		Log:       p.log.Logger,
		Access:    access,
		Count:     p.metrics.request,
		Refused:   refusals{p.audit}.record,
		Bodies:    p.bodies,
		BodyTime:  p.config.Load().BodyTimeout,
		HSTS:      func() time.Duration { return p.config.Load().HSTSMaxAge },
		Programs:  []string{"/puppet/", node.Prefix + "/", websocket.PathV1, websocket.PathV2},
		ComesBack: func(r *http.Request) bool { return puppet.ComesBack(r.Header.Get("X-Puppet-Version")) },
		Problem:   problemFor,
	}, routes)
}

// problemFor is an error as the clients of a path read it.
func problemFor(path string, p api.Problem) any {
	service, is := enterpriseService(path)
	if !is {
		return p
	}
	return (&pejson.Problem{Kind: service + "/" + p.Kind, Message: p.Message}).Object(service == rbacapi.Service)
}

// refusals records refusals that no handler recorded: of agents' routes.
type refusals struct{ audit *rbac.Audit }

// record records one. The operation is the route, the object what was asked for.
func (r refusals) record(ctx context.Context, actor fleet.Actor, operation, object string) {
	entry := front.Entry(ctx)
	entry.ActorKind, entry.Actor, entry.Operation, entry.Object = actor.Kind, actor.Name, operation, object
	r.audit.Refused(ctx, entry, fault.New(fault.Denied, "%s %s may not ask for this", actor.Kind, actor.Name))
}
