// Package caapi serves the Puppet CA API, /puppet-ca/v1, to stock agents 7 and 8
// and to clients of "puppetserver ca".
//
// Anybody may fetch the CA's certificate, revocation list and a node's
// certificate or request, and send a request. Everything else needs an administrator
// (fleet.Actor.Admin); renewal needs the node's own verified certificate. Who asks
// is read from the request's context, where the TLS front puts it.
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
package caapi

import (
	"log/slog"
	"net/http"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
)

const (
	maxJSONBytes = 4 << 20 // about 100 000 certnames
	maxCRLBytes  = 16 << 20
)

// Config is what the API needs.
type Config struct {
	Authority *pki.Authority
	Log       *slog.Logger
}

type server struct {
	ca  *pki.Authority
	log *slog.Logger
}

// New returns the handler of everything below /puppet-ca/v1/.
func New(cfg Config) http.Handler {
	a := &server{ca: cfg.Authority, log: cfg.Log}
	mux := http.NewServeMux()
	for _, r := range a.routes() {
		handle := r.handle
		if r.admin {
			handle = a.adminOnly(handle)
		}
		mux.Handle(r.method+" /puppet-ca/v1/"+r.path, a.reply(handle))
	}
	return mux
}

type route struct {
	method, path string
	admin        bool
	handle       handler
}

func (a *server) routes() []route {
	return []route{
		{"GET", "certificate/{name}", false, a.getCertificate},
		{"GET", "certificate_revocation_list/{name}", false, a.getCRL},
		{"PUT", "certificate_revocation_list", true, a.putCRL},
		{"GET", "certificate_request/{name}", false, a.getRequest},
		{"PUT", "certificate_request/{name}", false, a.putRequest},
		{"DELETE", "certificate_request/{name}", true, a.deleteRequest},
		{"GET", "certificate_status/{name}", true, a.getStatus},
		{"PUT", "certificate_status/{name}", true, a.putStatus},
		{"DELETE", "certificate_status/{name}", true, a.deleteStatus},
		{"GET", "certificate_statuses/{any}", true, a.getStatuses},
		{"PUT", "clean", true, a.putClean},
		{"POST", "sign", true, a.postSign},
		{"POST", "sign/all", true, a.postSignAll},
		{"POST", "certificate_renewal", false, a.postRenewal},
		{"GET", "expirations", true, a.getExpirations},
	}
}

func (a *server) adminOnly(next handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if who := fleet.ActorFrom(r.Context()); !who.Admin {
			a.log.WarnContext(r.Context(), "CA request refused, not an administrator",
				"actor", who.Name, "kind", who.Kind, "method", r.Method, "path", r.URL.Path)
			return forbidden(r)
		}
		return next(w, r)
	}
}
