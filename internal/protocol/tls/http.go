package tls

import (
	"crypto/x509"
	"log"
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
)

// idleTimeout ends keep-alive connections; agents reuse theirs for seconds.
const idleTimeout = 2 * time.Minute

// Configure prepares a server that is to serve this Front: who asks is put
// into every request's context, WriteWhole works, HTTP/2 is possible, and clients
// that send nothing or stay idle are ended. Set Handler before, and call srv.Serve(front) after;
// what srv sets itself is kept.
func (f *Front) Configure(srv *http.Server) {
	srv.Handler = f.Identify(srv.Handler)
	if srv.ConnContext == nil {
		srv.ConnContext = withConn
	}
	if srv.ReadHeaderTimeout == 0 {
		srv.ReadHeaderTimeout = f.cfg.HandshakeTimeout
	}
	if srv.IdleTimeout == 0 {
		srv.IdleTimeout = idleTimeout
	}
	if srv.ErrorLog == nil {
		srv.ErrorLog = log.New(&handshakeLog{log: f.cfg.Log, now: time.Now}, "", 0)
	}
	if srv.Protocols == nil {
		srv.Protocols = new(http.Protocols)
		srv.Protocols.SetHTTP1(true)
		srv.Protocols.SetHTTP2(true)
	}
}

// Identify puts who asks into the request's context: a node with its certname, an
// administrator if its certificate says pp_cli_auth, or nobody.
func (f *Front) Identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer := verifiedPeer(r)
		if peer == nil {
			next.ServeHTTP(w, r.WithContext(fleet.WithActor(r.Context(), fleet.Actor{Kind: fleet.Anonymous})))
			return
		}
		actor, err := f.actorOf(peer)
		if err != nil {
			f.cfg.Log.WarnContext(r.Context(), "request refused", "remote", r.RemoteAddr, "path", r.URL.Path, "err", err)
			http.Error(w, "Forbidden: this client certificate is not accepted. Please see the server logs for details.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r.WithContext(fleet.WithActor(r.Context(), actor)))
	})
}

func verifiedPeer(r *http.Request) *x509.Certificate {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return nil
	}
	return r.TLS.VerifiedChains[0][0]
}

// actorOf asks again whether the peer is welcome: a request may have been read
// just before its connection was closed.
func (f *Front) actorOf(peer *x509.Certificate) (fleet.Actor, error) {
	if err := f.cfg.Authority.CheckPeer(peer); err != nil {
		return fleet.Actor{}, err
	}
	name, err := fleet.ParseCertname(peer.Subject.CommonName)
	if err != nil {
		return fleet.Actor{}, err
	}
	actor := fleet.Actor{Kind: fleet.NodeActor, Name: string(name)}
	if pki.IsAdmin(peer) {
		actor.Grants = []fleet.Grant{{Permission: fleet.Everything}}
	}
	return actor, nil
}
