package websocket_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	gobwas "github.com/gobwas/ws"
	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
	tuttitls "github.com/tutti-project/tutti/internal/protocol/tls"
	"github.com/tutti-project/tutti/internal/protocol/websocket"
	"github.com/tutti-project/tutti/internal/wire"
)

var (
	quiet = slog.New(slog.DiscardHandler)
	// patience is far more than anything here takes.
	patience = 2 * time.Minute
)

// house is a broker behind real TLS.
type house struct {
	ca      *pki.Authority
	broker  *broker.Broker
	sockets *websocket.Server
	addr    string
	stop    func() // ends Run, and waits for it
}

// settings is what a test changes.
type settings struct {
	broker broker.Config
	ws     websocket.Config
	plain  bool // a listener of crypto/tls, which cannot be watched
}

// way is how a server keeps its connections in one run of a test.
type way struct {
	*testing.T
	goroutines bool
}

// everyWay runs a test with parked connections and with a goroutine for each.
func everyWay(t *testing.T, test func(way)) {
	t.Helper()
	t.Parallel()
	for name, goroutines := range map[string]bool{"parked": false, "goroutines": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(way{t, goroutines})
		})
	}
}

func (w way) open(change func(*settings)) *house {
	w.Helper()
	return open(w.T, func(s *settings) {
		s.ws.Goroutines = w.goroutines
		if change != nil {
			change(s)
		}
	})
}

func open(t *testing.T, change func(*settings)) *house {
	t.Helper()
	var s settings
	s.broker.Log, s.ws.Log = quiet, quiet
	s.ws.CloseTimeout = patience // a farewell comes, however slow the machine is
	if change != nil {
		change(&s)
	}
	h := &house{ca: pkitest.Open(t)}
	var err error
	h.broker, err = broker.New(s.broker)
	must(t, err)
	s.ws.Broker = h.broker
	sockets, err := websocket.New(s.ws)
	must(t, err)
	h.sockets = sockets
	h.serve(t, sockets, s.plain)
	return h
}

// serve starts what a server has, and ends it in its order.
func (h *house) serve(t *testing.T, sockets *websocket.Server, plain bool) {
	t.Helper()
	inner, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	h.addr = inner.Addr().String()
	certificate, err := h.ca.Server.Certificate(t.Context(), []string{"127.0.0.1"})
	must(t, err)
	front, err := tuttitls.New(inner, tuttitls.Config{Authority: h.ca.Revocations, Certificate: certificate, ClientCAs: h.ca.Pool(), Log: quiet})
	must(t, err)
	srv := &http.Server{Handler: sockets}
	front.Configure(srv)
	listener := net.Listener(front)
	if plain {
		listener = tls.NewListener(inner, &tls.Config{Certificates: []tls.Certificate{certificate}, ClientCAs: h.ca.Pool(), ClientAuth: tls.VerifyClientCertIfGiven})
	}
	served, ran := make(chan error, 1), make(chan error, 2)
	go func() { served <- srv.Serve(listener) }()
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ran <- sockets.Run(ctx) }()
	go func() { ran <- h.broker.Run(ctx) }()
	stopped := false
	h.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := errors.Join(<-ran, <-ran); err != nil {
			t.Errorf("run: %v", err)
		}
		_ = srv.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	}
	t.Cleanup(h.stop)
}

// enrol gives a certificate.
func (h *house) enrol(t *testing.T, name string, extensions ...pkix.Extension) tls.Certificate {
	t.Helper()
	return pkitest.Enrol(t, h.ca, name, nil, extensions...)
}

// client is one websocket as a program would have it.
type client struct {
	t       *testing.T
	conn    net.Conn
	in      *bufio.Reader
	version wire.Version
}

func (h *house) config(certificates ...tls.Certificate) *tls.Config {
	return &tls.Config{RootCAs: h.ca.Pool(), Certificates: certificates}
}

// dial connects to a path with the certificates given.
func (h *house) dial(t *testing.T, path string, certificates ...tls.Certificate) *client {
	t.Helper()
	dialer := gobwas.Dialer{TLSConfig: h.config(certificates...), Timeout: patience, Header: gobwas.HandshakeHeaderHTTP{"User-Agent": {"test/1.0"}}}
	conn, in, _, err := dialer.Dial(t.Context(), "wss://"+h.addr+path)
	must(t, err)
	if in == nil {
		in = bufio.NewReader(conn)
	}
	t.Cleanup(func() { _ = conn.Close() })
	must(t, conn.SetDeadline(time.Now().Add(patience)))
	version, _, found := websocket.RouteForTest(strings.TrimSuffix(path, "?x=y"))
	if !found {
		t.Fatalf("no such path: %s", path)
	}
	return &client{t, conn, in, version}
}

// agent and controller are the usual clients.
func (h *house) agent(t *testing.T, name string) *client {
	t.Helper()
	return h.dial(t, "/pcp2/agent", h.enrol(t, name))
}

func (h *house) controller(t *testing.T, name, path string) *client {
	t.Helper()
	return h.dial(t, path+"/controller", h.enrol(t, name, pkitest.Admin(t)))
}

// frame is a masked frame.
func frame(op gobwas.OpCode, fin bool, payload []byte) []byte {
	return gobwas.MustCompileFrame(gobwas.MaskFrame(gobwas.NewFrame(op, fin, payload)))
}

func (c *client) write(p []byte) {
	c.t.Helper()
	_, err := c.conn.Write(p)
	must(c.t, err)
}

// encoded is a message as a frame.
func (c *client) encoded(m wire.Message) []byte {
	c.t.Helper()
	if m.ID == "" {
		m.ID = "1-1-1-1-1"
	}
	payload, err := c.version.Append(nil, m)
	must(c.t, err)
	op := gobwas.OpText
	if c.version.Binary() {
		op = gobwas.OpBinary
	}
	return frame(op, true, payload)
}

func (c *client) say(m wire.Message) { c.t.Helper(); c.write(c.encoded(m)) }

// frame reads one.
func (c *client) frame() (gobwas.Frame, error) {
	header, err := gobwas.ReadHeader(c.in)
	if err != nil {
		return gobwas.Frame{}, err
	}
	f := gobwas.Frame{Header: header, Payload: make([]byte, header.Length)}
	_, err = io.ReadFull(c.in, f.Payload)
	return f, err
}

// hear reads a message, and nothing but that.
func (c *client) hear() wire.Message {
	c.t.Helper()
	f, err := c.frame()
	must(c.t, err)
	if (f.Header.OpCode == gobwas.OpBinary) != c.version.Binary() || f.Header.OpCode.IsControl() {
		code, reason := gobwas.ParseCloseFrameData(f.Payload)
		c.t.Fatalf("heard a frame of kind %x (%d %s)", f.Header.OpCode, code, reason)
	}
	m, err := c.version.Decode(f.Payload)
	must(c.t, err)
	return m
}

// complaint reads an error message's text.
func (c *client) complaint() string {
	c.t.Helper()
	m := c.hear()
	if m.Type != wire.ErrorMessage {
		c.t.Fatalf("heard %+v, want an error", m)
	}
	text, err := wire.ParseError(m.Data)
	must(c.t, err)
	return text
}

// farewell reads until the close frame, answers it, and waits for the end.
func (c *client) farewell() broker.Farewell {
	c.t.Helper()
	for {
		f, err := c.frame()
		must(c.t, err)
		if f.Header.OpCode != gobwas.OpClose {
			continue
		}
		code, reason := gobwas.ParseCloseFrameData(f.Payload)
		_, _ = c.conn.Write(frame(gobwas.OpClose, true, f.Payload)) // it may be gone already
		if _, err := c.in.ReadByte(); err == nil || isTimeout(err) {
			c.t.Errorf("after the close frame: %v", err)
		}
		return broker.Farewell{Code: int(code), Reason: reason}
	}
}

// gone waits for the end without a close frame.
func (c *client) gone() {
	c.t.Helper()
	if rest, err := io.ReadAll(c.in); isTimeout(err) || len(rest) > 0 {
		c.t.Errorf("want the end, got %q, %v", rest, err)
	}
}

// ousted answers that it is there, and waits for the end without a close frame.
func (c *client) ousted() {
	c.t.Helper()
	f, err := c.frame()
	must(c.t, err)
	want(c.t, f.Header.OpCode, gobwas.OpPing)
	c.write(frame(gobwas.OpPong, true, f.Payload))
	c.gone()
}

func isTimeout(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}

// await looks until something is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !so() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("not in %s: %s", patience, what)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
