package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/server/datadir"
	"github.com/tutti-project/tutti/internal/store/lease"
)

// sealIn is the seal of a server's directory, for this purpose.
func sealIn(t *testing.T) datadir.Seal {
	t.Helper()
	dir, err := datadir.Open(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	seal, err := dir.Seal()
	if err == nil {
		seal, err = seal.Of("requests that are passed on")
	}
	if err != nil {
		t.Fatal(err)
	}
	return seal
}

// What one server cannot answer another one does, who hears whose request it is and proves by itself who asks. Notes that are made up change nothing, a request
// is passed on once, and who cannot be reached is named to those who may know.
func TestRequestsArePassedOn(t *testing.T) {
	t.Parallel()
	seal := sealIn(t)
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		host, _, _ := strings.Cut(r.RemoteAddr, ":")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(http.StatusAccepted)
		_, _ = fmt.Fprintf(w, "%s %s of %s by %q: %s", r.Method, r.URL.RequestURI(), host, r.Header.Get("Authorization"), body)
	})
	there := httptest.NewTLSServer(heard(seal, answer))
	t.Cleanup(there.Close)
	roots := x509.NewCertPool()
	roots.AddCert(there.Certificate())
	holder, known := lease.Server{ID: "example.com/1", Address: there.URL}, true // the name that httptest's certificate has
	e := elsewhere{
		self: "pup-2/2", who: func(context.Context) (lease.Server, bool) { return holder, known }, seal: seal,
		known: func(r *http.Request) (actor fleet.Actor, err error) {
			if r.Header.Get("Authorization") == "" {
				err = fault.New(fault.Denied, "who are you?")
			}
			return actor, err
		},
		transport: passing(func() *x509.CertPool { return roots }), log: slog.New(slog.DiscardHandler),
	}
	ask := func(change func(*http.Request)) *httptest.ResponseRecorder {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/sources/control/sync?wait=true", strings.NewReader("what"))
		r.RemoteAddr = "192.0.2.7:4711"
		r.Header.Set("Authorization", "Bearer secret")
		change(r)
		w := httptest.NewRecorder()
		w.Header().Set("X-Content-Type-Options", "nosniff")
		heard(seal, http.HandlerFunc(e.pass)).ServeHTTP(w, r)
		return w
	}
	wants := func(w *httptest.ResponseRecorder, status int, text string) {
		t.Helper()
		if w.Code != status || !strings.Contains(w.Body.String(), text) {
			t.Errorf("%d %s, want %d with %q", w.Code, w.Body, status, text)
		}
	}
	same := func(*http.Request) {}
	passedOn := `POST /api/v1/sources/control/sync?wait=true of 192.0.2.7 by "Bearer secret": what`
	w := ask(same)
	wants(w, http.StatusAccepted, passedOn)
	if got := w.Header().Values("X-Content-Type-Options"); len(got) != 1 {
		t.Errorf("a header is said twice: %q", got)
	}
	certified := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{there.Certificate()}}
	wants(ask(func(r *http.Request) { r.TLS = certified }), http.StatusAccepted, passedOn)
	wants(ask(func(r *http.Request) { r.TLS = certified; r.Header.Del("Authorization") }), http.StatusServiceUnavailable, "only a request with a token")
	e.seal = sealIn(t) // of a stranger: the request counts as that of who brings it
	wants(ask(same), http.StatusAccepted, "of 127.0.0.1 by")
	e.seal = seal
	wants(ask(func(r *http.Request) { r.Header.Set(passedHeader, "made up") }), http.StatusServiceUnavailable, "ask that server")
	wants(ask(func(r *http.Request) { r.Header.Del("Authorization") }), http.StatusAccepted, `by "": what`) // as a git server, with a signature in its body
	at, _ := url.Parse(there.URL)
	there.Close()
	wants(ask(same), http.StatusServiceUnavailable, "the server example.com/1 at https://"+at.Host+"; this server cannot reach it")
	w = ask(func(r *http.Request) { r.Header.Del("Authorization") })
	wants(w, http.StatusServiceUnavailable, "another server")
	if strings.Contains(w.Body.String(), at.Host) {
		t.Errorf("a stranger is told where: %s", w.Body)
	}
	known = false
	wants(ask(same), http.StatusServiceUnavailable, "no server now")
}

// A note is good for the request that it was made for only.
func TestANoteIsOfOneRequest(t *testing.T) {
	t.Parallel()
	seal := sealIn(t)
	var note string
	e := elsewhere{
		self: "pup-2/2", who: func(context.Context) (lease.Server, bool) {
			return lease.Server{ID: "x/1", Address: "https://x.test"}, true
		},
		seal: seal, log: slog.New(slog.DiscardHandler), known: func(*http.Request) (fleet.Actor, error) { return fleet.Actor{}, nil },
		transport: transportFunc(func(r *http.Request) (*http.Response, error) {
			note = r.Header.Get(passedHeader)
			return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Header: http.Header{}}, nil
		}),
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/sources", http.NoBody)
	r.RemoteAddr = "192.0.2.7:4711"
	e.pass(httptest.NewRecorder(), r)
	for target, want := range map[string]string{
		"/api/v1/sources": "192.0.2.7:4711", "/api/v1/deploys": "198.51.100.1:1", "/api/v1/sources?a=b": "198.51.100.1:1",
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
		r.RemoteAddr = "198.51.100.1:1"
		r.Header.Set(passedHeader, note)
		heard(seal, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.RemoteAddr != want {
				t.Errorf("%s is of %s, want %s", target, r.RemoteAddr, want)
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
