package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/front"
	"github.com/tutti-project/tutti/internal/server/datadir"
	"github.com/tutti-project/tutti/internal/store/lease"
)

// codeFromGit is the lease of who looks after sources of code. What is known of them is in the memory of that server.
const codeFromGit = "code from git"

// sourcesWhereTheyAre has requests about sources of code answered by the server that looks after them: any other one passes them on.
func sourcesWhereTheyAre(p *parts, others map[string]front.Route, known func(*http.Request) (fleet.Actor, error)) error {
	if p.shared == nil {
		return nil
	}
	seal, err := passingSeal(p)
	if err != nil {
		return err
	}
	there := elsewhere{
		self: p.id, who: func(ctx context.Context) (lease.Server, bool) { return holder(ctx, p.store.Leases, codeFromGit) },
		seal: seal, known: known, transport: passing(p.ca.Pool), log: p.log.Logger,
	}
	own, manager := others[api.Prefix+"/"], others["/code-manager/"]
	for pattern, route := range map[string]front.Route{
		api.Prefix + "/sources": own, api.Prefix + "/sources/": own, api.Prefix + "/deploys": own, "/code-manager/": manager,
	} {
		next := route.Handler
		route.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if p.leases.Holds(codeFromGit) {
				next.ServeHTTP(w, r)
				return
			}
			there.pass(w, r)
		})
		others[pattern] = route
	}
	return nil
}

// roll is who there is, and who has which lease: sql.Leases.
type roll interface {
	Leases(ctx context.Context) ([]lease.Lease, error)
	Servers(ctx context.Context) ([]lease.Server, error)
}

// holder is the server that has a lease, as far as that is known.
func holder(ctx context.Context, records roll, name string) (server lease.Server, ok bool) {
	leases, err := records.Leases(ctx)
	servers, alsoErr := records.Servers(ctx)
	if err != nil || alsoErr != nil {
		return server, false
	}
	for _, l := range leases {
		for _, s := range servers {
			if l.Name == name && !l.Free() && s.ID == l.Holder {
				return s, true
			}
		}
	}
	return server, false
}

// elsewhere passes requests on to the server that can answer them. It proves to that one that a server with the same secrets asks, and for whom: limits, the
// log and the audit log there have the client's address. Who asks is proved there anew, by the token or the signature in the request.
type elsewhere struct {
	self      string
	who       func(context.Context) (lease.Server, bool)
	seal      datadir.Seal
	known     func(*http.Request) (fleet.Actor, error)
	transport http.RoundTripper
	log       *slog.Logger
}

// passedHeader is in a request that another server passed on.
const passedHeader = "X-Tutti-Passed-On" //nolint:gosec // a name

// passed is what is sealed in it. It is good for the one request only.
type passed struct {
	Server string `json:"server"` // that passed it on
	Remote string `json:"remote"` // the client's address
	Asked  string `json:"asked"`  // method and path
}

func asked(r *http.Request) string { return r.Method + " " + r.URL.RequestURI() }

// passingSeal seals that header; all servers of one database have the same.
func passingSeal(p *parts) (datadir.Seal, error) {
	key, err := p.data.Seal()
	if err != nil {
		return key, err
	}
	return key.Of("tutti requests that are passed on 1")
}

// The times of a request that is passed on: it may take as long as a deploy, but somebody must be there.
const (
	reachMay = 3 * time.Second
	idleMay  = 30 * time.Second
)

// passing is the way to other servers. Each of them has a certificate with the name that its identity begins with.
func passing(roots func() *x509.CertPool) http.RoundTripper {
	return &http.Transport{
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			name, _ := ctx.Value(nameKey{}).(string)
			ctx, cancel := context.WithTimeout(ctx, reachMay)
			defer cancel()
			d := tls.Dialer{Config: &tls.Config{RootCAs: roots(), ServerName: name, MinVersion: tls.VersionTLS12}}
			return d.DialContext(ctx, network, address)
		},
		IdleConnTimeout: idleMay,
	}
}

type nameKey struct{}

// pass has the other server answer. When that cannot be, it says who could. Someone known by a certificate alone is not passed on: that proof
// ends here. A request that was passed on already ends here, too.
func (e elsewhere) pass(w http.ResponseWriter, r *http.Request) {
	there, ok := e.who(r.Context())
	to, err := url.Parse(there.Address)
	token := r.Header.Get("Authorization") != "" || r.Header.Get("X-Authentication") != ""
	certified := r.TLS != nil && len(r.TLS.PeerCertificates) > 0
	switch {
	case !ok || err != nil || there.ID == e.self || r.Header.Get(passedHeader) != "":
		e.tellWhere(w, r, "")
		return
	case certified && !token:
		e.tellWhere(w, r, "from here, only a request with a token gets there")
		return
	}
	note, err := json.Marshal(passed{Server: e.self, Remote: r.RemoteAddr, Asked: asked(r)})
	if err == nil {
		note, err = e.seal.Seal(note)
	}
	if err != nil {
		e.log.ErrorContext(r.Context(), "a request could not be sealed for another server", "err", err)
		e.tellWhere(w, r, "")
		return
	}
	name, _, _ := strings.Cut(there.ID, "/")
	proxy := httputil.ReverseProxy{
		Transport: e.transport, FlushInterval: -1, ErrorLog: slog.NewLogLogger(e.log.Handler(), slog.LevelDebug),
		Rewrite: func(out *httputil.ProxyRequest) {
			out.SetURL(&url.URL{Scheme: to.Scheme, Host: to.Host})
			out.Out.Header.Set(passedHeader, base64.StdEncoding.EncodeToString(note))
		},
		ModifyResponse: func(answer *http.Response) error {
			for header := range w.Header() { // what this server says already
				answer.Header.Del(header)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				e.log.WarnContext(r.Context(), "another server could not be asked", "server", there.ID, "address", there.Address, "err", err)
			}
			e.tellWhere(w, r, "this server cannot reach it")
		},
	}
	_ = front.Entry(r.Context()) // the other server records what becomes of it
	proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), nameKey{}, name)))
}

// hearing is before everything else that nodes and people reach: a request that another server passed on is its client's. A note that is not ours, or of
// another request, says nothing.
func hearing(p *parts, next http.Handler) (http.Handler, error) {
	if p.shared == nil {
		return next, nil
	}
	seal, err := passingSeal(p)
	return heard(seal, next), err
}

func heard(seal datadir.Seal, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text := r.Header.Get(passedHeader); text != "" {
			var p passed
			note, err := base64.StdEncoding.DecodeString(text)
			if err == nil {
				note, err = seal.Open(note)
			}
			if err == nil && json.Unmarshal(note, &p) == nil && p.Asked == asked(r) {
				r.RemoteAddr = p.Remote
			}
		}
		next.ServeHTTP(w, r)
	})
}

// tellWhere says which server looks after sources of code, and why it was not asked. A stranger, as a git server is one, hears no name.
func (e elsewhere) tellWhere(w http.ResponseWriter, r *http.Request, why string) {
	who := "another server"
	if _, err := e.known(r); err == nil && r.Context().Err() == nil {
		if s, ok := e.who(r.Context()); ok {
			who = fmt.Sprintf("the server %s at %s", s.ID, strings.TrimSuffix(s.Address, "/"))
		} else {
			who = "no server now, and soon by one that follows"
		}
	}
	if why != "" {
		who += "; " + why
	}
	said := api.Problem{
		Kind: fault.Unavailable.String(), Message: "sources of code are looked after by " + who + ": ask that server, or try again in a few seconds",
		RequestID: front.RequestID(r.Context()),
	}
	text, err := json.Marshal(problemFor(r.URL.Path, said))
	if err != nil { // texts can be written
		http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", "5")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write(text)
}
