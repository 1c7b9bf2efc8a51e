package tls_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
	tuttitls "github.com/tutti-project/tutti/internal/protocol/tls"
)

var (
	quiet = slog.New(slog.DiscardHandler)
	// patience is far more than anything here takes.
	patience = 2 * time.Minute
)

// house is a CA, a front and a server that says who asks.
type house struct {
	ca    *pki.Authority
	front *tuttitls.Front
	addr  string
}

func open(t *testing.T, cfg tuttitls.Config) *house {
	t.Helper()
	inner, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	return openOn(t, inner, cfg, whoami)
}

func openOn(t *testing.T, inner net.Listener, cfg tuttitls.Config, handler http.HandlerFunc) *house {
	t.Helper()
	ca := pkitest.Open(t)
	cfg.Authority, cfg.ClientCAs = ca.Revocations, ca.Pool()
	if cfg.Log == nil {
		cfg.Log = quiet
	}
	cfg.Certificate = serverCertificate(t, ca)
	front, err := tuttitls.New(inner, cfg)
	must(t, err)
	srv := &http.Server{Handler: handler}
	front.Configure(srv)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(front) }()
	t.Cleanup(func() {
		_ = srv.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	return &house{ca: ca, front: front, addr: inner.Addr().String()}
}

func serverCertificate(t *testing.T, ca *pki.Authority) tls.Certificate {
	t.Helper()
	c, err := ca.Server.Certificate(t.Context(), []string{"127.0.0.1"})
	must(t, err)
	return c
}

func whoami(w http.ResponseWriter, r *http.Request) {
	_ = json.NewEncoder(w).Encode(struct {
		fleet.Actor
		Proto string
	}{fleet.ActorFrom(r.Context()), r.Proto})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// client shows certs; it trusts ca.
func client(t *testing.T, ca *pki.Authority, change func(*tls.Config), certs ...tls.Certificate) *http.Client {
	t.Helper()
	// GetClientCertificate shows a certificate even where the server would not take it.
	cfg := &tls.Config{RootCAs: ca.Pool(), GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if len(certs) == 0 {
			return &tls.Certificate{}, nil
		}
		return &certs[0], nil
	}}
	if change != nil {
		change(cfg)
	}
	transport := &http.Transport{TLSClientConfig: cfg, Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(true)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

type who struct {
	fleet.Actor
	Proto string
}

func (h *house) ask(t *testing.T, c *http.Client) (who, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+h.addr+"/", nil)
	must(t, err)
	resp, err := c.Do(r)
	if err != nil {
		return who{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return who{}, fmt.Errorf("status %s", resp.Status)
	}
	var w who
	return w, json.NewDecoder(resp.Body).Decode(&w)
}

func TestWhoAsks(t *testing.T) {
	t.Parallel()
	h := open(t, tuttitls.Config{})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		pin := func(c *tls.Config) { c.MinVersion, c.MaxVersion = version, version }
		for _, c := range []struct {
			client *http.Client
			want   fleet.Actor
		}{
			{client(t, h.ca, pin), fleet.Actor{Kind: fleet.Anonymous}},
			{client(t, h.ca, pin, pkitest.Enrol(t, h.ca, fmt.Sprint("node", version), nil)), fleet.Actor{Kind: fleet.NodeActor, Name: fmt.Sprint("node", version)}},
			{
				client(t, h.ca, pin, pkitest.Enrol(t, h.ca, fmt.Sprint("admin", version), nil, pkitest.Admin(t))),
				fleet.Actor{Kind: fleet.NodeActor, Name: fmt.Sprint("admin", version), Grants: []fleet.Grant{{Permission: fleet.Everything}}},
			},
			{
				client(t, h.ca, pin, pkitest.Enrol(t, h.ca, fmt.Sprint("almost", version), nil, pkitest.Text(t, pkitest.OIDAdmin, "false"))),
				fleet.Actor{Kind: fleet.NodeActor, Name: fmt.Sprint("almost", version)},
			},
		} {
			got, err := h.ask(t, c.client)
			must(t, err)
			if diff := cmp.Diff(c.want, got.Actor); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tls.VersionName(version), diff)
			}
		}
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	h := open(t, tuttitls.Config{})
	_, err := h.ask(t, client(t, h.ca, func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }))
	if err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.1: %v", err)
	}
}

func TestHTTP2(t *testing.T) {
	t.Parallel()
	h := open(t, tuttitls.Config{})
	c := client(t, h.ca, nil, pkitest.Enrol(t, h.ca, "web1", nil))
	c.Transport.(*http.Transport).Protocols.SetHTTP2(true)
	got, err := h.ask(t, c)
	must(t, err)
	if got.Proto != "HTTP/2.0" || got.Name != "web1" {
		t.Errorf("got %+v", got)
	}
}

// Browsers are asked for no certificate, else they would ask people which one: who has one does not show it, and is nobody. They
// speak HTTP/2, and a certificate that is exchanged does not change that.
func TestUnaskedClients(t *testing.T) {
	t.Parallel()
	h := open(t, tuttitls.Config{Unasked: true})
	web1 := pkitest.Enrol(t, h.ca, "web1", nil)
	for _, when := range []string{"at first", "after a change of the certificate"} {
		asked := false
		c := client(t, h.ca, func(cfg *tls.Config) {
			cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				asked = true
				return &web1, nil
			}
		})
		c.Transport.(*http.Transport).Protocols.SetHTTP2(true)
		got, err := h.ask(t, c)
		must(t, err)
		if asked || got.Name != "" || got.Proto != "HTTP/2.0" {
			t.Errorf("%s: asked for a certificate: %t; %+v", when, asked, got)
		}
		must(t, h.front.Reload(serverCertificate(t, h.ca), h.ca.Pool()))
	}
}

func TestRefusedCertificates(t *testing.T) {
	t.Parallel()
	h := open(t, tuttitls.Config{})
	revoked := pkitest.Enrol(t, h.ca, "web1", nil)
	must(t, h.ca.Revoke(t.Context(), "web1"))
	for name, c := range map[string]struct {
		cert  tls.Certificate
		alert string
	}{
		"revoked":            {revoked, "bad certificate"},
		"of another CA":      {pkitest.Enrol(t, pkitest.Open(t), "web1", nil), "unknown certificate authority"},
		"the server's own":   {serverCertificate(t, h.ca), "bad certificate"},
		"an administrator's": {pkitest.Enrol(t, pkitest.Open(t), "admin", nil, pkitest.Admin(t)), "unknown certificate authority"},
	} {
		if _, err := h.ask(t, client(t, h.ca, nil, c.cert)); err == nil || !strings.Contains(err.Error(), c.alert) {
			t.Errorf("%s: error = %v, want %q", name, err, c.alert)
		}
	}
}

// A client sends its request before it knows that it is refused. It must read the
// reason, not a reset connection.
func TestARefusedClientReadsWhy(t *testing.T) {
	t.Parallel()
	h := open(t, tuttitls.Config{})
	revoked := pkitest.Enrol(t, h.ca, "web1", nil)
	must(t, h.ca.Revoke(t.Context(), "web1"))
	d := &net.Dialer{}
	raw, err := d.DialContext(t.Context(), "tcp", h.addr)
	must(t, err)
	must(t, raw.SetDeadline(time.Now().Add(patience)))
	conn := tls.Client(raw, &tls.Config{RootCAs: h.ca.Pool(), ServerName: "127.0.0.1", Certificates: []tls.Certificate{revoked}})
	defer func() { _ = conn.Close() }()
	must(t, conn.HandshakeContext(t.Context())) // our side is done before the server looks at our certificate
	awaitBytes(t, raw.(*net.TCPConn))
	for range 3 { // over a connection that was reset the second one fails
		if _, err := conn.Write(make([]byte, 12<<10)); err != nil {
			t.Fatalf("the request cannot be sent: %v", err)
		}
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "bad certificate") {
		t.Errorf("the client reads %v, want the alert", err)
	}
}

// awaitBytes waits until something can be read, and leaves it there.
func awaitBytes(t *testing.T, c *net.TCPConn) {
	t.Helper()
	raw, err := c.SyscallConn()
	must(t, err)
	must(t, raw.Read(func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK)
		return !errors.Is(err, syscall.EAGAIN)
	}))
}

// dial makes a TLS connection and one request over it.
func (h *house) dial(t *testing.T, cert tls.Certificate) *tls.Conn {
	t.Helper()
	return h.dialVersion(t, cert, 0)
}

// dialVersion is dial with one version of TLS; 0: the newest.
func (h *house) dialVersion(t *testing.T, cert tls.Certificate, version uint16) *tls.Conn {
	t.Helper()
	d := &tls.Dialer{Config: &tls.Config{
		RootCAs: h.ca.Pool(), Certificates: []tls.Certificate{cert}, MinVersion: max(version, tls.VersionTLS12), MaxVersion: version,
	}}
	conn, err := d.DialContext(t.Context(), "tcp", h.addr)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	must(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	must(t, err)
	_, err = conn.Read(make([]byte, 4096))
	must(t, err)
	return conn.(*tls.Conn)
}

func TestRevocationClosesOpenConnections(t *testing.T) {
	t.Parallel()
	h := open(t, tuttitls.Config{})
	bad, good := pkitest.Enrol(t, h.ca, "bad", nil), pkitest.Enrol(t, h.ca, "good", nil)
	thrownOut := []*tls.Conn{h.dial(t, bad), h.dial(t, bad)}
	stays := h.dial(t, good)
	must(t, h.ca.Revoke(t.Context(), "bad"))
	for _, conn := range thrownOut {
		if _, err := io.ReadAll(conn); errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
			t.Errorf("a revoked node's connection stays open: %v", err)
		}
	}
	_, err := io.WriteString(stays, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	must(t, err)
	_, err = stays.Read(make([]byte, 4096))
	must(t, err)
}

func isTimeout(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}

func TestARevokedSessionIsNotResumed(t *testing.T) {
	t.Parallel()
	h := open(t, tuttitls.Config{})
	cache := tls.NewLRUClientSessionCache(4)
	resumed := false
	c := client(t, h.ca, func(cfg *tls.Config) {
		cfg.ClientSessionCache = cache
		cfg.VerifyConnection = func(state tls.ConnectionState) error {
			resumed = state.DidResume
			return nil
		}
	}, pkitest.Enrol(t, h.ca, "web1", nil))
	c.Transport.(*http.Transport).DisableKeepAlives = true
	for range 2 {
		_, err := h.ask(t, c)
		must(t, err)
	}
	if !resumed {
		t.Fatal("sessions are never resumed: every handshake costs the full price")
	}
	must(t, h.ca.Revoke(t.Context(), "web1"))
	if _, err := h.ask(t, c); err == nil {
		t.Error("a revoked node resumed its session")
	}
}

func TestReload(t *testing.T) {
	t.Parallel()
	h := open(t, tuttitls.Config{})
	before := h.dial(t, pkitest.Enrol(t, h.ca, "web1", nil))
	next, err := h.ca.Server.Certificate(t.Context(), []string{"127.0.0.1", "other.example.com"})
	must(t, err)
	must(t, h.front.Reload(next, h.ca.Pool()))
	d := &tls.Dialer{Config: &tls.Config{RootCAs: h.ca.Pool(), ServerName: "other.example.com"}}
	after, err := d.DialContext(t.Context(), "tcp", h.addr)
	must(t, err)
	must(t, after.Close())
	_, err = io.WriteString(before, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") // goes on
	must(t, err)
	_, err = before.Read(make([]byte, 4096))
	must(t, err)
	if err := h.front.Reload(tls.Certificate{}, nil); fault.Of(err) != fault.Invalid {
		t.Errorf("empty certificate: %v", err)
	}
}

// TestSlowClientsHoldUpNobody opens many more silent and half-silent connections
// than there are turns, and expects others to be served at once.
func TestSlowClientsHoldUpNobody(t *testing.T) {
	t.Parallel()
	h := open(t, tuttitls.Config{MaxConcurrentHandshakes: 1, HandshakeTimeout: time.Hour})
	for range 5 {
		silent, err := new(net.Dialer).DialContext(t.Context(), "tcp", h.addr)
		must(t, err)
		t.Cleanup(func() { _ = silent.Close() })
		h.stall(t)
	}
	for range 3 {
		_, err := h.ask(t, client(t, h.ca, nil, pkitest.Enrol(t, h.ca, "web1x"+fmt.Sprint(time.Now().UnixNano()), nil)))
		must(t, err)
	}
}

// stall sends a hello, waits for the server's answer, and says no more.
func (h *house) stall(t *testing.T) {
	t.Helper()
	raw, err := new(net.Dialer).DialContext(t.Context(), "tcp", h.addr)
	must(t, err)
	t.Cleanup(func() { _ = raw.Close() })
	answered := make(chan struct{})
	go func() {
		_ = tls.Client(&mute{Conn: raw, answered: answered}, &tls.Config{InsecureSkipVerify: true}).Handshake()
	}()
	<-answered
}

// mute lets the first flight out and hangs when the answer is there.
type mute struct {
	net.Conn
	answered chan struct{}
}

func (m *mute) Read(p []byte) (int, error) {
	if _, err := m.Conn.Read(p); err != nil {
		return 0, err
	}
	close(m.answered)
	for { // swallow all that comes, until the connection is closed
		if _, err := m.Conn.Read(p); err != nil {
			return 0, err
		}
	}
}

// TestTurnsAreGivenBack ends handshakes in every way there is; one lost turn
// would leave the last clients waiting.
func TestTurnsAreGivenBack(t *testing.T) {
	t.Parallel()
	h := open(t, tuttitls.Config{MaxConcurrentHandshakes: 1})
	good, foreign := pkitest.Enrol(t, h.ca, "web1", nil), pkitest.Enrol(t, pkitest.Open(t), "web1", nil)
	var wait sync.WaitGroup
	for i := range 24 {
		wait.Go(func() {
			switch i % 3 {
			case 0:
				if _, err := h.ask(t, client(t, h.ca, nil, foreign)); err == nil {
					t.Error("a foreign certificate was accepted")
				}
			case 1:
				if _, err := h.ask(t, client(t, h.ca, nil, good)); err != nil {
					t.Error(err)
				}
			default:
				h.babble(t)
			}
		})
	}
	wait.Wait()
	_, err := h.ask(t, client(t, h.ca, nil, good))
	must(t, err)
}

// babble sends what is not TLS and hangs up.
func (h *house) babble(t *testing.T) {
	t.Helper()
	raw, err := new(net.Dialer).DialContext(t.Context(), "tcp", h.addr)
	if err != nil {
		t.Error(err)
		return
	}
	_, err = io.WriteString(raw, "\x16\x03\x01\x00\x05hello")
	if err = errors.Join(err, raw.Close()); err != nil {
		t.Error(err)
	}
}

func TestAHandshakeThatTakesTooLongEnds(t *testing.T) {
	t.Parallel()
	h := open(t, tuttitls.Config{HandshakeTimeout: 50 * time.Millisecond})
	silent, err := new(net.Dialer).DialContext(t.Context(), "tcp", h.addr)
	must(t, err)
	defer func() { _ = silent.Close() }()
	must(t, silent.SetDeadline(time.Now().Add(patience)))
	if _, err := io.ReadAll(silent); isTimeout(err) {
		t.Error("a silent client stays connected")
	}
}

func TestConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	h := open(t, tuttitls.Config{MaxConnections: 1})
	cert := pkitest.Enrol(t, h.ca, "web1", nil)
	first := h.dial(t, cert)
	served := make(chan error, 1)
	go func() {
		_, err := h.ask(t, client(t, h.ca, nil, cert))
		served <- err
	}()
	_, err := io.WriteString(first, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") // still served
	must(t, err)
	_, err = first.Read(make([]byte, 4096))
	must(t, err)
	select {
	case err := <-served:
		t.Fatalf("a second connection was served beside the first: %v", err)
	default:
	}
	must(t, first.Close())
	must(t, <-served)
}

func TestCloseEndsAccept(t *testing.T) {
	t.Parallel()
	ca := pkitest.Open(t)
	inner, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	front, err := tuttitls.New(inner, tuttitls.Config{Authority: ca.Revocations, Certificate: serverCertificate(t, ca), ClientCAs: ca.Pool(), Log: quiet})
	must(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := front.Accept()
		ended <- err
	}()
	must(t, front.Close())
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept: %v", err)
	}
	_ = front.Close() // twice is fine
}
