package connection_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/agent/connection"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
	"github.com/tutti-project/tutti/internal/protocol/websocket"
	"github.com/tutti-project/tutti/internal/wire"
)

// bothVersions runs a test with PCP 1 and with PCP 2.
func bothVersions(t *testing.T, test func(*testing.T, wire.Version)) {
	t.Helper()
	t.Parallel()
	for _, version := range []wire.Version{wire.V1, wire.V2} {
		t.Run(fmt.Sprintf("PCP %d", version), func(t *testing.T) {
			t.Parallel()
			test(t, version)
		})
	}
}

func TestMessagesBothWaysInOrder(t *testing.T) {
	bothVersions(t, func(t *testing.T, version wire.Version) {
		t.Helper()
		h := open(t, pkitest.Open(t), "", nil)
		c := config(t, "web1", h)
		c.Version = version
		link := run(t, c)
		take(t, link.connected)
		who, there := h.broker.Presence("pcp://web1/agent")
		want(t, []any{who.Agent, who.Version, there}, []any{"tutti-agent/test", version, true})
		want(t, link.State().Server, h.addr)
		for i := range 300 {
			must(t, h.broker.Send(t.Context(), wire.Message{Type: "x", Target: "pcp://web1/agent", Data: wire.Data(strings.Repeat(fmt.Sprint(i), 1+i*i%3000))}))
			must(t, link.Send(wire.Message{Type: wire.BlockingResponse, Target: wire.Broker, Data: wire.Data(fmt.Sprint(i))}))
		}
		for i := range 300 {
			want(t, string(take(t, link.got).Data), string(wire.Data(strings.Repeat(fmt.Sprint(i), 1+i*i%3000))))
			m := take(t, h.heard)
			want(t, []string{string(m.Data), string(m.Sender)}, []string{string(wire.Data(fmt.Sprint(i))), "pcp://web1/agent"})
		}
		link.stop()
		await(t, "the broker knows that it went", func() bool { return h.broker.Stats().Connected == 0 })
		want(t, fault.Of(link.Send(wire.Message{Type: "x"})), fault.Unavailable)
		want(t, link.State().Connected, false)
	})
}

func TestLargeMessagesAndLimits(t *testing.T) {
	t.Parallel()
	h := open(t, pkitest.Open(t), "", func(c *websocket.Config) { c.MaxMessageBytes = 2_000_000 })
	c := config(t, "web1", h)
	c.MaxMessageBytes = 3_000_000
	link := run(t, c)
	take(t, link.connected)
	large := wire.Data(strings.Repeat("0123456789", 150_000))
	must(t, link.Send(wire.Message{Type: wire.BlockingResponse, Data: large}))
	want(t, len(take(t, h.heard).Data), len(large))
	must(t, h.broker.Send(t.Context(), wire.Message{Type: "x", Target: "pcp://web1/agent", Data: large}))
	want(t, len(take(t, link.got).Data), len(large))

	err := link.Send(wire.Message{Type: wire.BlockingResponse, Data: wire.Data(strings.Repeat("x", 3_000_000))})
	want(t, fault.Of(err), fault.Invalid) // more than this side's limit
	// More than the server's limit ends the connection, once: then the limit is known.
	between := wire.Message{Type: wire.BlockingResponse, Data: wire.Data(strings.Repeat("x", 2_500_000))}
	_ = link.Send(between)
	take(t, link.connected)
	if err := link.Send(between); fault.Of(err) != fault.Invalid || !strings.Contains(err.Error(), "at most 2000000") {
		t.Errorf("a message that is too large for the server: %v", err)
	}
	if problem := link.State().Problem; !strings.Contains(problem, "1009") {
		t.Errorf("the problem is %q", problem)
	}
	// The other way round this side ends it.
	must(t, h.broker.Send(t.Context(), wire.Message{Type: "x", Target: "pcp://web1/agent", Data: wire.Data(strings.Repeat("x", 3_000_000))}))
	take(t, link.connected)
}

func TestItComesBackToARestartedServer(t *testing.T) {
	t.Parallel()
	ca := pkitest.Open(t)
	h := open(t, ca, "", nil)
	link := run(t, config(t, "web1", h))
	for range 5 {
		take(t, link.connected)
		h.stop()
		await(t, "it knows", func() bool { return !link.State().Connected })
		h = open(t, ca, h.addr, nil)
	}
	take(t, link.connected)
	want(t, link.State().Lost, 5)
}

func TestFailOverAndReturn(t *testing.T) {
	t.Parallel()
	ca := pkitest.Open(t)
	first, second := open(t, ca, "", nil), open(t, ca, "", nil)
	c := config(t, "web1", first, second)
	c.ReturnAfter = 30 * time.Millisecond
	link := run(t, c)
	take(t, link.connected)
	want(t, link.State().Server, first.addr)
	first.stop()
	take(t, link.connected)
	want(t, link.State().Server, second.addr)
	must(t, second.broker.Send(t.Context(), wire.Message{Type: "x", Target: "pcp://web1/agent"}))
	take(t, link.got)

	first = open(t, ca, first.addr, nil)
	take(t, link.connected)
	want(t, link.State().Server, first.addr)
	want(t, link.State().Lost, 1) // moving is no loss
	await(t, "the second server has heard a farewell", func() bool { return second.broker.Stats().Connected == 0 })
	must(t, link.Send(wire.Message{Type: wire.BlockingResponse}))
	take(t, first.heard)
}

// TestTheSecondServerAtOnce: the first never was there.
func TestTheSecondServerAtOnce(t *testing.T) {
	t.Parallel()
	ca := pkitest.Open(t)
	gone, there := open(t, ca, "", nil), open(t, ca, "", nil)
	gone.stop()
	link := run(t, config(t, "web1", gone, there))
	take(t, link.connected)
	want(t, link.State().Server, there.addr)
}

func TestRevokedAndEnrolledAnew(t *testing.T) {
	t.Parallel()
	h := open(t, pkitest.Open(t), "", nil)
	link := run(t, config(t, "web1", h))
	take(t, link.connected)
	must(t, h.ca.Revoke(t.Context(), "web1"))
	await(t, "attempts fail", func() bool { return link.State().Attempts > 2 })
	if problem := link.State().Problem; problem == "" || link.State().Connected {
		t.Errorf("a revoked certificate is connected, or nobody knows why not: %q", problem)
	}
}

// TestEndsWhenItHasJustConnected: nobody stays behind on a connection that was made while the link was told to end.
func TestEndsWhenItHasJustConnected(t *testing.T) {
	t.Parallel()
	h := open(t, pkitest.Open(t), "", nil)
	c := config(t, "web1", h)
	c.Receive = func(wire.Message) {}
	ctx, cancel := context.WithCancel(t.Context())
	c.Connected = cancel
	link, err := connection.New(c)
	must(t, err)
	ran := make(chan error, 1)
	go func() { ran <- link.Run(ctx) }()
	must(t, take(t, ran))
	await(t, "the server has heard a farewell", func() bool { return h.broker.Stats().Connected == 0 })
}

func TestConfigsThatCannotBe(t *testing.T) {
	t.Parallel()
	good := connection.Config{URLs: []string{"ws://x"}, URI: "pcp://web1/agent", Log: quiet}
	for name, c := range map[string]func(*connection.Config){
		"no server":         func(c *connection.Config) { c.URLs = nil },
		"no log":            func(c *connection.Config) { c.Log = nil },
		"no name":           func(c *connection.Config) { c.URI = "" },
		"another protocol":  func(c *connection.Config) { c.URLs = []string{"https://x"} },
		"no host":           func(c *connection.Config) { c.URLs = []string{"wss://:8140"} },
		"a password":        func(c *connection.Config) { c.URLs = []string{"wss://a:b@x"} },
		"a question":        func(c *connection.Config) { c.URLs = []string{"wss://x/pcp2?a"} },
		"TLS without a key": func(c *connection.Config) { c.URLs = []string{"wss://x"} },
	} {
		config := good
		c(&config)
		if _, err := connection.New(config); fault.Of(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := connection.New(good); err != nil {
		t.Errorf("a good one: %v", err)
	}
}

// TestTwoGoroutinesEach runs alone: it counts those of the whole process.
func TestTwoGoroutinesEach(t *testing.T) { //nolint:paralleltest // see above
	h := open(t, pkitest.Open(t), "", nil)
	take(t, run(t, config(t, "first", h)).connected) // the server's own are at work
	before := runtime.NumGoroutine()
	const links = 50
	all := make([]*client, links)
	for i := range all {
		all[i] = run(t, config(t, fmt.Sprintf("node%d", i), h))
	}
	for _, link := range all {
		take(t, link.connected)
	}
	await(t, "goroutines of handshakes have ended", func() bool { return runtime.NumGoroutine() <= before+2*links+5 })
	for _, link := range all {
		link.stop()
	}
	await(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before+5 })
}
