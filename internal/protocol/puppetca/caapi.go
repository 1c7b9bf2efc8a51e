// Package puppetca serves the Puppet CA API, /puppet-ca/v1, to stock agents 7 and 8
// and to clients of "puppetserver ca".
//
// Anybody may fetch the CA's certificate, revocation list and a node's
// certificate or request, and send a request. Everything else needs the permission
// certificate:read or certificate:write, as the operations of the API do; renewal
// needs the node's own verified certificate. Who asks is read from the request's
// context. What somebody decides, and what is refused, is recorded in the audit log.
//
// Answers are text/plain, except status, sign and expirations, which are JSON. A
// refused certificate request is a 400: only then does an agent go on to look
// for its certificate. 503 carries Retry-After, which agents obey.
//
// Errors: the table in package api. What is nobody's business is a 500 with
// one plain sentence, and the cause goes to the log.
//
// Concurrency: the handler keeps no state.
//
// Sources: the HTTP API of Puppet Server 7 and 8 as agents 7.23 and 8.11 and
// puppetserver-ca 2.4 use it.
package puppetca

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/rate"
	"github.com/tutti-project/tutti/internal/rbac"
)

const (
	maxJSONBytes = 4 << 20 // about 100 000 certnames
	maxCRLBytes  = 16 << 20
)

// MaxBodyBytes is the largest body of a request to this API.
const MaxBodyBytes = maxCRLBytes

// Config is what the API needs.
type Config struct {
	Authority *pki.Authority
	Audit     *rbac.Audit
	Entry     func(context.Context) rbac.Entry // when, from where, under which reference
	Renewals  *rate.Rule                       // how often a certificate may be renewed; nil: as its node likes
	Log       *slog.Logger
}

type server struct {
	renewals *rate.Rule
	ca       *pki.Authority
	audit    *rbac.Audit
	entry    func(context.Context) rbac.Entry
	log      *slog.Logger
}

// New returns the handler of everything below /puppet-ca/v1/.
func New(cfg Config) http.Handler {
	a := &server{renewals: cfg.Renewals, ca: cfg.Authority, audit: cfg.Audit, entry: cfg.Entry, log: cfg.Log}
	mux := http.NewServeMux()
	for _, r := range a.routes() {
		handle := r.handle
		if r.permission != fleet.Open {
			handle = a.permitted(r, handle)
		}
		mux.Handle(r.method+" /puppet-ca/v1/"+r.path, a.reply(handle))
	}
	return mux
}

type route struct {
	method, path string
	permission   fleet.Permission
	handle       handler
}

func (a *server) routes() []route {
	const open, read, write = fleet.Open, fleet.CertificateRead, fleet.CertificateWrite
	return []route{
		{"GET", "certificate/{name}", open, a.getCertificate},
		{"GET", "certificate_revocation_list/{name}", open, a.getCRL},
		{"PUT", "certificate_revocation_list", write, a.putCRL},
		{"GET", "certificate_request/{name}", open, a.getRequest},
		{"PUT", "certificate_request/{name}", open, a.putRequest},
		{"DELETE", "certificate_request/{name}", write, a.deleteRequest},
		{"GET", "certificate_status/{name}", read, a.getStatus},
		{"PUT", "certificate_status/{name}", write, a.putStatus},
		{"DELETE", "certificate_status/{name}", write, a.deleteStatus},
		{"GET", "certificate_statuses/{any}", read, a.getStatuses},
		{"PUT", "clean", write, a.putClean},
		{"POST", "sign", write, a.postSign},
		{"POST", "sign/all", write, a.postSignAll},
		{"POST", "certificate_renewal", open, a.postRenewal},
		{"GET", "expirations", read, a.getExpirations},
	}
}

// permitted lets those through who have the route's permission, and records what
// they decide. Names in a body are not looked at before: for those the permission
// has to be without scope.
func (a *server) permitted(to route, next handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		ctx, who, name := r.Context(), fleet.ActorFrom(r.Context()), r.PathValue("name")
		entry := a.entry(ctx)
		entry.ActorKind, entry.Actor, entry.Token = who.Kind, who.Name, who.Token
		entry.Operation, entry.Object = to.method+" /puppet-ca/v1/"+to.path, name
		if err := rbac.Allow(who, to.permission, fleet.Object{Node: fleet.Certname(name)}); err != nil {
			a.log.WarnContext(ctx, "CA request refused", "actor", who.Name, "kind", who.Kind, "method", r.Method, "path", r.URL.Path, "err", err)
			a.audit.Refused(ctx, entry, err)
			return forbidden(r)
		}
		if to.permission != fleet.CertificateWrite {
			return next(w, r)
		}
		finish, err := a.audit.Begin(ctx, entry)
		if err != nil {
			return err
		}
		held := &late{ResponseWriter: w}
		err = next(held, r)
		finish(err)
		held.release()
		return err
	}
}
