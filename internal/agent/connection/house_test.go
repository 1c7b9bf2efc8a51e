package connection_test

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/agent/connection"
	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
	tuttitls "github.com/tutti-project/tutti/internal/protocol/tls"
	"github.com/tutti-project/tutti/internal/protocol/websocket"
	"github.com/tutti-project/tutti/internal/wire"
)

var quiet = slog.New(slog.DiscardHandler)

// patience is far more than anything here takes.
const patience = 2 * time.Minute

// house is a broker behind real TLS, as the server has it.
type house struct {
	ca     *pki.Authority
	broker *broker.Broker
	addr   string
	heard  chan wire.Message // what was sent to the broker itself, of type "x"
	stop   func()            // ends it, and waits for that
}

// open starts a broker at an address; an empty one is a new one. Change may be nil.
func open(t *testing.T, ca *pki.Authority, address string, change func(*websocket.Config)) *house {
	t.Helper()
	h := &house{ca: ca, heard: make(chan wire.Message, 1000)}
	handler := func(_ context.Context, _ broker.Presence, m wire.Message) error {
		h.heard <- m
		return nil
	}
	var err error
	h.broker, err = broker.New(broker.Config{Log: quiet, Handlers: map[string]broker.Handler{wire.BlockingResponse: handler}})
	must(t, err)
	config := websocket.Config{Broker: h.broker, Log: quiet}
	if change != nil {
		change(&config)
	}
	sockets, err := websocket.New(config)
	must(t, err)
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	must(t, err)
	h.addr = listener.Addr().String()
	certificate, err := ca.Server.Certificate(t.Context(), []string{"127.0.0.1"})
	must(t, err)
	front, err := tuttitls.New(listener, tuttitls.Config{Authority: ca.Revocations, Certificate: certificate, ClientCAs: ca.Pool(), Log: quiet})
	must(t, err)
	srv := &http.Server{Handler: sockets}
	front.Configure(srv)
	served, ran := make(chan error, 1), make(chan error, 2)
	go func() { served <- srv.Serve(front) }()
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
		must(t, errors.Join(<-ran, <-ran))
		_ = srv.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	}
	t.Cleanup(h.stop)
	return h
}

// client is a Link that runs.
type client struct {
	*connection.Link
	got       chan wire.Message
	connected chan struct{}
	stop      func()
}

// config is that of a client with quick pauses and a certificate of its own.
func config(t *testing.T, name string, houses ...*house) connection.Config {
	t.Helper()
	ca := houses[0].ca
	certificate := pkitest.Enrol(t, ca, name, pkitest.NewKey(t))
	c := connection.Config{
		URI: wire.URI("pcp://" + name + "/agent"), UserAgent: "tutti-agent/test", Log: quiet,
		TLS: func() (*tls.Config, error) {
			return &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{certificate}}, nil
		},
		FirstPause: 20 * time.Millisecond, LongestPause: 40 * time.Millisecond, Steady: time.Nanosecond,
	}
	for _, h := range houses {
		c.URLs = append(c.URLs, "wss://"+h.addr)
	}
	return c
}

func run(t *testing.T, c connection.Config) *client {
	t.Helper()
	r := &client{got: make(chan wire.Message, 10_000), connected: make(chan struct{}, 1000)}
	if c.Receive == nil {
		c.Receive = func(m wire.Message) { r.got <- m }
	}
	c.Connected = func() { r.connected <- struct{}{} }
	link, err := connection.New(c)
	must(t, err)
	r.Link = link
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- link.Run(ctx) }()
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		must(t, <-ran)
	}
	t.Cleanup(r.stop)
	return r
}

// await looks until something is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
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

func take[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
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
