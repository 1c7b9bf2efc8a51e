package puppetca_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
	"github.com/tutti-project/tutti/internal/protocol/puppetca"
	tuttitls "github.com/tutti-project/tutti/internal/protocol/tls"
	"github.com/tutti-project/tutti/internal/rate"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/rbac/rbactest"
)

var quiet = slog.New(slog.DiscardHandler)

// server is the real CA behind the real TLS front on a loopback port.
type server struct {
	ca   *pki.Authority
	acts *rbactest.Fake
	dir  string
	addr string
}

func start(t *testing.T, cfg pki.Config) *server {
	t.Helper()
	cfg.Dir = t.TempDir()
	ca, err := pki.Open(t.Context(), cfg, pkitest.NewMemory(), quiet)
	must(t, err)
	certificate, err := ca.Server.Certificate(t.Context(), []string{"localhost", "127.0.0.1"})
	must(t, err)
	inner, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	front, err := tuttitls.New(inner, tuttitls.Config{Authority: ca.Revocations, Certificate: certificate, ClientCAs: ca.Pool(), Log: quiet})
	must(t, err)
	acts := rbactest.New()
	srv := &http.Server{Handler: puppetca.New(puppetca.Config{
		Authority: ca, Audit: rbac.NewAudit(acts, quiet), Entry: func(context.Context) rbac.Entry { return rbac.Entry{} }, Log: quiet,
		Renewals: rate.Per(24*time.Hour, 2, "%s renews its certificate more than 2 times a day (setting renewals_per_day)"),
	})}
	front.Configure(srv)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(front) }()
	t.Cleanup(func() {
		_ = srv.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	return &server{ca: ca, acts: acts, dir: cfg.Dir, addr: inner.Addr().String()}
}

func (s *server) port() string {
	_, port, _ := net.SplitHostPort(s.addr)
	return port
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// client speaks for a certificate, or for nobody.
type client struct {
	t    *testing.T
	http *http.Client
	addr string
}

func (s *server) anybody(t *testing.T) *client {
	t.Helper()
	return s.client(t, nil)
}

func (s *server) client(t *testing.T, certificates []tls.Certificate) *client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.ca.Pool(), Certificates: certificates}}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{t: t, http: &http.Client{Transport: transport}, addr: s.addr}
}

// node enrols a name and returns its client.
func (s *server) node(t *testing.T, name string, extensions ...pkix.Extension) *client {
	t.Helper()
	return s.client(t, []tls.Certificate{pkitest.Enrol(t, s.ca, name, nil, extensions...)})
}

func (s *server) admin(t *testing.T) *client {
	t.Helper()
	return s.node(t, "admin", pkitest.Admin(t))
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (c *client) do(method, path, body string, headers ...string) answer {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, "https://"+c.addr+"/puppet-ca/v1/"+path, strings.NewReader(body))
	must(c.t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.http.Do(r)
	must(c.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	must(c.t, err)
	return answer{resp.StatusCode, resp.Header, string(text)}
}

// want sends a request and checks status and part of the answer.
func (c *client) want(status int, says, method, path, body string, headers ...string) answer {
	c.t.Helper()
	got := c.do(method, path, body, headers...)
	if got.status != status || !strings.Contains(got.body, says) {
		c.t.Fatalf("%s %s: %d %q, want %d with %q", method, path, got.status, got.body, status, says)
	}
	return got
}

func parseCertificate(t *testing.T, text []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(bytes.TrimSpace(text))
	if block == nil {
		t.Fatalf("no PEM in %q", text)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	return cert
}

func encode(t *testing.T, kind string, der []byte) string {
	t.Helper()
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
