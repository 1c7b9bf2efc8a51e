package websocket_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	gobwas "github.com/gobwas/ws"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/wire"
)

// TestIdleConnectionsHaveNoGoroutines runs alone: it counts those of the whole process.
func TestIdleConnectionsHaveNoGoroutines(t *testing.T) { //nolint:paralleltest // see above
	if runtime.GOOS != "linux" {
		return // connections are parked on Linux only: there is nothing to test
	}
	h := open(t, nil)
	h.agent(t, "first")
	before := goroutinesBesidesWorkers()
	const idle = 50
	clients := make([]*client, idle)
	for i := range clients {
		clients[i] = h.agent(t, fmt.Sprintf("node%d", i))
	}
	await(t, "goroutines of requests have ended", func() bool { return goroutinesBesidesWorkers() < before+idle/5 })
	for _, c := range clients { // and nevertheless they are heard
		c.say(wire.Message{Type: wire.AssociateRequest})
		want(t, c.hear().Type, wire.AssociateResponse)
	}
}

// goroutinesBesidesWorkers leaves out those of the pools: their number does not depend on
// that of the connections, and they may still be starting.
func goroutinesBesidesWorkers() int {
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	n := 0
	for one := range bytes.SplitSeq(stacks, []byte("\n\n")) {
		if !bytes.Contains(one, []byte("(*pool).work(")) && !bytes.Contains(one, []byte("created by sync.(*WaitGroup).Go")) {
			n++
		}
	}
	return n
}

func TestMessagesPassBetweenVersions(t *testing.T) {
	everyWay(t, func(w way) {
		t := w.T
		h := w.open(nil)
		for _, path := range []string{"/pcp", "/pcp2"} {
			ctl := h.controller(t, "ctl"+path[1:], path)
			me := wire.URI("pcp://ctl" + path[1:] + "/controller")
			for name, agentPath := range map[string]string{"one": "/pcp/", "two": "/pcp2/", "three": "/pcp", "four": "/pcp2?x=y", "five": "/pcp/agent"} {
				node := h.dial(t, agentPath, h.enrol(t, name+path[1:]))
				uri := wire.URI("pcp://" + name + path[1:] + "/agent")
				await(t, "it is in the inventory", func() bool { return len(h.broker.Connected(uri)) == 1 }) // 101 comes before that
				ctl.say(wire.Message{Type: wire.BlockingRequest, Sender: me, Target: uri, Data: jsontext.Value(`{"transaction_id":"7"}`)})
				got := node.hear()
				want(t, got, wire.Message{ID: "1-1-1-1-1", Type: wire.BlockingRequest, Sender: me, Target: uri, Data: jsontext.Value(`{"transaction_id":"7"}`)})
				node.say(wire.Message{ID: "2-2-2-2-2", Type: wire.BlockingResponse, Sender: uri, Target: got.Sender, Data: jsontext.Value(`{"results":{}}`)})
				want(t, ctl.hear(), wire.Message{ID: "2-2-2-2-2", Type: wire.BlockingResponse, Sender: uri, Target: me, Data: jsontext.Value(`{"results":{}}`)})
				_ = node.conn.Close()
				await(t, "a client that vanished is out of the inventory", func() bool { return len(h.broker.Connected(uri)) == 0 })
			}
		}
	})
}

func TestWhatAClientIsTold(t *testing.T) {
	everyWay(t, func(w way) {
		t := w.T
		h := w.open(nil)
		node := h.dial(t, "/pcp", h.enrol(t, "web1"))
		node.say(wire.Message{Type: wire.AssociateRequest, Sender: "pcp://web1/agent", Target: wire.Broker})
		want(t, node.hear().Data, wire.Data(wire.Association{ID: "1-1-1-1-1", Success: true}))
		who, _ := h.broker.Presence("pcp://web1/agent")
		want(t, []any{who.Agent, who.Version, who.Party}, []any{"test/1.0", wire.V1, broker.Node})

		node.write(frame(gobwas.OpText, true, []byte("{}")))
		want(t, node.complaint(), "Could not decode message: this path takes binary messages only, not text ones")
		node.write(frame(gobwas.OpBinary, true, []byte{2, 1}))
		want(t, node.complaint(), "Could not decode message: the frame does not begin with the version byte 1")
		node.say(wire.Message{Type: "x", Sender: "pcp://web2/agent"})
		want(t, node.complaint(), "Message not authenticated.")
		node.say(wire.Message{Type: "http://example.test/x", Sender: "pcp://web1/agent"})
		want(t, node.complaint(), "Message type http://example.test/x is not handled here.")
		for _, payload := range []string{"", "ping", strings.Repeat("x", 125)} {
			node.write(frame(gobwas.OpPing, true, []byte(payload)))
			f, err := node.frame()
			must(t, err)
			want(t, []any{f.Header.OpCode, string(f.Payload)}, []any{gobwas.OpPong, payload})
		}
		node.say(wire.Message{Type: wire.AssociateRequest, Sender: "pcp://web1/other", Target: wire.Broker})
		want(t, node.hear().Data, wire.Data(wire.Association{ID: "1-1-1-1-1", Reason: "Session already associated."}))
		want(t, node.farewell(), broker.Unsuccessful)
	})
}

func TestNewcomersThatAreRefused(t *testing.T) {
	everyWay(t, func(w way) {
		t := w.T
		h := w.open(func(s *settings) { s.broker.MaxConnections = 1 })
		want(t, h.dial(t, "/pcp2/agent").farewell(), broker.NoCertificate)
		cert := h.enrol(t, "web1")
		for _, path := range []string{"/pcp2/server", "/pcp/*", "/pcp2/a/b", "/pcp2/we%20ird", "/pcp2/" + strings.Repeat("x", 65)} {
			want(t, h.dial(t, path, cert).farewell(), broker.Unsuccessful)
		}
		h.dial(t, "/pcp2/agent", cert)
		await(t, "it is connected", func() bool { return h.broker.Stats().Connected == 1 })
		want(t, h.agent(t, "web2").farewell(), broker.LimitExceeded)
	})
}

func TestRequestsThatAreNoWebsockets(t *testing.T) {
	everyWay(t, func(w way) {
		t := w.T
		h := w.open(nil)
		cert := h.enrol(t, "web1")
		for name, c := range map[string]struct {
			path   string
			header http.Header
			http2  bool
			status int
		}{
			"a page":          {"/pcp2/agent", nil, false, 426},
			"another path":    {"/pcpx/agent", nil, false, 404},
			"a third version": {"/pcp3", nil, false, 404},
			"HTTP/2":          {"/pcp2/agent", nil, true, 505},
			"an old websocket": {
				"/pcp2/agent", http.Header{
					"Upgrade": {"websocket"}, "Connection": {"Upgrade"}, "Sec-Websocket-Key": {"AQIDBAUGBwgJCgsMDQ4PEA=="}, "Sec-Websocket-Version": {"8"},
				}, false, 426,
			},
			"a websocket, no key":  {"/pcp2/agent", http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}, "Sec-Websocket-Version": {"13"}}, false, 400},
			"a half-hearted wish":  {"/pcp2/agent", http.Header{"Upgrade": {"websocket"}}, false, 400},
			"another wish than it": {"/pcp2/agent", http.Header{"Upgrade": {"h2c"}, "Connection": {"Upgrade"}}, false, 426},
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+h.addr+c.path, nil)
			must(t, err)
			r.Header = c.header
			transport := &http.Transport{TLSClientConfig: h.config(cert), Protocols: new(http.Protocols)}
			transport.Protocols.SetHTTP1(!c.http2)
			transport.Protocols.SetHTTP2(c.http2)
			response, err := (&http.Client{Transport: transport, Timeout: patience}).Do(r)
			must(t, err)
			text, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			transport.CloseIdleConnections()
			if response.StatusCode != c.status || len(text) == 0 {
				t.Errorf("%s: %d %q, want %d", name, response.StatusCode, text, c.status)
			}
		}
		want(t, h.broker.Stats().Connected, 0)
	})
}

func TestFramesAreBoundedAndChecked(t *testing.T) {
	everyWay(t, func(w way) {
		t := w.T
		h := w.open(func(s *settings) { s.ws.MaxMessageBytes, s.ws.PartialBytes = 100_000, 150_000 })
		cert := h.enrol(t, "web1")
		for name, c := range map[string]struct {
			path string
			sent []byte
			want broker.Farewell
		}{
			"oversized text": {
				"/pcp2", frame(gobwas.OpText, true, make([]byte, 300_000)), broker.Farewell{Code: 1009, Reason: "Text message size [300000] exceeds maximum size [100000]"},
			},
			"oversized binary": {
				"/pcp", frame(gobwas.OpBinary, true, make([]byte, 100_001)), broker.Farewell{
					Code: 1009, Reason: "Binary message size [100001] exceeds maximum size [100000]",
				},
			},
			"unmasked": {
				"/pcp2", gobwas.MustCompileFrame(gobwas.NewTextFrame([]byte("{}"))), broker.Farewell{
					Code: 1002, Reason: "Websocket protocol: frames from client to server must be masked.",
				},
			},
			"unknown kind": {"/pcp2", frame(3, true, nil), broker.Farewell{Code: 1002, Reason: "Websocket protocol: use of reserved op code."}},
			"bad close": {
				"/pcp2", frame(gobwas.OpClose, true, []byte{1}), broker.Farewell{Code: 1002, Reason: "Websocket protocol: a close frame of the wrong shape."},
			},
			"good close": {"/pcp2", frame(gobwas.OpClose, true, gobwas.NewCloseFrameBody(1001, "bye")), broker.Farewell{Code: 1001, Reason: "bye"}},
		} {
			t.Run(name, func(t *testing.T) {
				c1 := h.dial(t, c.path, cert)
				c1.write(c.sent)
				want(t, c1.farewell(), c.want)
			})
		}
		greedy := h.dial(t, "/pcp2", h.enrol(t, "greedy"))
		greedy.write(frame(gobwas.OpText, false, make([]byte, 90_000)))
		await(t, "it is there", func() bool { return h.broker.Stats().Connected == 1 })
		late := h.dial(t, "/pcp2", h.enrol(t, "late"))
		late.write(frame(gobwas.OpText, false, make([]byte, 90_000)))
		// Which of the two came first is not known; one has to go.
		refused := make(chan broker.Farewell, 2)
		for _, c := range []*client{greedy, late} {
			go func() {
				f, err := c.frame()
				if code, reason := gobwas.ParseCloseFrameData(f.Payload); err == nil {
					refused <- broker.Farewell{Code: int(code), Reason: reason}
				}
			}()
		}
		want(t, <-refused, broker.Farewell{Code: 1013, Reason: "Too many large messages are on their way; try again later."})
	})
}

func TestMessagesInPiecesAndInHeaps(t *testing.T) {
	everyWay(t, func(w way) {
		t := w.T
		h := w.open(nil)
		node := h.agent(t, "web1")
		whole := node.encoded(wire.Message{Type: wire.AssociateRequest})
		for i := range whole { // a TLS record a byte
			node.write(whole[i : i+1])
		}
		want(t, node.hear().Type, wire.AssociateResponse)
		heap := slices.Repeat(whole, 500)
		for len(heap) > 0 { // and records that end anywhere
			n := min(len(heap), 1777)
			node.write(heap[:n])
			heap = heap[n:]
		}
		for range 500 {
			want(t, node.hear().Type, wire.AssociateResponse)
		}
		text, err := wire.V2.Append(nil, wire.Message{ID: "1-1-1-1-1", Type: wire.AssociateRequest})
		must(t, err)
		node.write(slices.Concat(frame(gobwas.OpText, false, text[:9]), frame(gobwas.OpPing, true, []byte("x")), frame(gobwas.OpContinuation, true, text[9:])))
		pong, err := node.frame()
		must(t, err)
		want(t, pong.Header.OpCode, gobwas.OpPong)
		want(t, node.hear().Type, wire.AssociateResponse)
	})
}

func TestAFrameTogetherWithTheRequest(t *testing.T) {
	everyWay(t, func(w way) {
		t := w.T
		h := w.open(nil)
		d := &tls.Dialer{Config: h.config(h.enrol(t, "web1"))}
		conn, err := d.DialContext(t.Context(), "tcp", h.addr)
		must(t, err)
		defer func() { _ = conn.Close() }()
		must(t, conn.SetDeadline(time.Now().Add(patience)))
		c := &client{t, conn, bufio.NewReader(conn), wire.V2}
		c.write(append([]byte("GET /pcp2/agent HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"+
			"Sec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA==\r\n\r\n"), slices.Repeat(c.encoded(wire.Message{Type: wire.AssociateRequest}), 40)...))
		response, err := http.ReadResponse(c.in, nil)
		must(t, err)
		_ = response.Body.Close()
		want(t, response.StatusCode, http.StatusSwitchingProtocols)
		for range 40 {
			want(t, c.hear().Type, wire.AssociateResponse)
		}
	})
}

func TestLargeMessages(t *testing.T) {
	everyWay(t, func(w way) {
		t := w.T
		h := w.open(nil)
		ctl, node := h.controller(t, "ctl", "/pcp2"), h.agent(t, "web1")
		await(t, "both are there", func() bool { return h.broker.Stats().Connected == 2 })
		data := wire.Data(strings.Repeat("0123456789", 500_000))
		go ctl.say(wire.Message{Type: wire.BlockingRequest, Target: "pcp://web1/agent", Data: data})
		got := node.hear()
		if string(got.Data) != string(data) {
			t.Errorf("%d bytes came, want %d", len(got.Data), len(data))
		}
	})
}

func TestALaterConnectionSupersedes(t *testing.T) {
	everyWay(t, func(w way) {
		t := w.T
		h := w.open(nil)
		cert := h.enrol(t, "web1")
		var last *client
		for range 5 {
			next := h.dial(t, "/pcp2", cert)
			if last != nil {
				last.ousted()
			}
			next.say(wire.Message{Type: wire.AssociateRequest})
			want(t, next.hear().Type, wire.AssociateResponse)
			last = next
		}
		want(t, h.broker.Stats().Connected, 1)
		who, _ := h.broker.Presence("pcp://web1/agent")
		want(t, []any{who.Rivals.Count, who.Shared(time.Now())}, []any{4, "two agents share its certificate, both at 127.0.0.1"})
	})
}

// Of a client that left its connection, and of one that says anything but the answer, it cannot be known that it was there.
func TestWhoLeftIsNoRival(t *testing.T) {
	everyWay(t, func(w way) {
		t := w.T
		h := w.open(func(s *settings) { s.ws.CloseTimeout = 200 * time.Millisecond })
		for name, act := range map[string]func(*client){
			"gone": func(c *client) { _ = c.conn.Close() },
			"mute": func(c *client) {
				c.write(frame(gobwas.OpPong, true, []byte("x")))
				c.say(wire.Message{Type: wire.AssociateRequest})
				_, err := io.Copy(io.Discard, c.in)
				want(t, isTimeout(err), false)
			},
		} {
			cert := h.enrol(t, name)
			first := h.dial(t, "/pcp2", cert)
			await(t, "the first is there", func() bool { _, there := h.broker.Presence(wire.NewURI(name, "agent")); return there })
			before := h.broker.Stats().Superseded
			h.dial(t, "/pcp2", cert)
			await(t, "the second has its place", func() bool { return h.broker.Stats().Superseded > before })
			act(first)
			who, there := h.broker.Presence(wire.NewURI(name, "agent"))
			want(t, there, true)
			want(t, who.Rivals, broker.Rivals{})
			want(t, who.Superseded.IsZero(), false)
		}
	})
}

func TestRevokedCertificatesAreClosed(t *testing.T) {
	everyWay(t, func(w way) {
		t := w.T
		h := w.open(nil)
		bad, good := h.agent(t, "bad"), h.agent(t, "good")
		await(t, "both are there", func() bool { return h.broker.Stats().Connected == 2 })
		must(t, h.ca.Revoke(t.Context(), "bad"))
		bad.gone()
		await(t, "it is out of the inventory", func() bool { return len(h.broker.Connected("pcp://bad/*")) == 0 })
		good.say(wire.Message{Type: wire.AssociateRequest})
		want(t, good.hear().Type, wire.AssociateResponse)
	})
}

func TestSilentConnectionsEnd(t *testing.T) {
	everyWay(t, func(w way) {
		t := w.T
		const idle = time.Second
		h := w.open(func(s *settings) { s.ws.IdleTimeout = idle })
		one, other := h.enrol(t, "alive"), h.enrol(t, "silent")
		for {
			began := time.Now()
			alive, silent := h.dial(t, "/pcp2", one), h.dial(t, "/pcp2", other)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				want(t, silent.farewell(), broker.Farewell{Code: 1001, Reason: "Idle timeout."})
			}()
			heard := alive.ping(began, ended)
			<-ended
			left := h.broker.Connected("pcp://*/*")
			if len(left) == 0 && time.Since(heard) > idle { // the machine stood still, and no ping came in time
				continue
			}
			want(t, left, []wire.URI{"pcp://alive/agent"}) // pings are enough
			return
		}
	})
}

// ping pings until something has ended, or no pong comes. It returns when the last ping left that was answered.
func (c *client) ping(began time.Time, ended <-chan struct{}) (heard time.Time) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for heard = began; ; {
		select {
		case <-ended:
			return heard
		case <-tick.C:
		}
		asked := time.Now()
		if _, err := c.conn.Write(frame(gobwas.OpPing, true, nil)); err != nil {
			return heard
		}
		if f, err := c.frame(); err != nil || f.Header.OpCode != gobwas.OpPong {
			return heard
		}
		heard = asked
	}
}

// TestASlowReaderHoldsUpNobody sends more than the system buffers to a client
// that reads nothing.
func TestASlowReaderHoldsUpNobody(t *testing.T) {
	everyWay(t, func(w way) {
		t := w.T
		h := w.open(func(s *settings) { s.broker.QueueBytes, s.ws.CloseTimeout = 1<<20, 100*time.Millisecond })
		h.agent(t, "slow")
		quick := h.agent(t, "quick")
		await(t, "both are there", func() bool { return h.broker.Stats().Connected == 2 })
		data := wire.Data(strings.Repeat("x", 100_000))
		for sent := 0; len(h.broker.Connected("pcp://slow/agent")) > 0; sent++ {
			if sent > 1000 {
				t.Fatal("100 MB were taken by nobody")
			}
			_ = h.broker.Send(t.Context(), wire.Message{Type: "x", Target: "pcp://slow/agent", Data: data})
			must(t, h.broker.Send(t.Context(), wire.Message{Type: "x", Target: "pcp://quick/agent"}))
			want(t, quick.hear().Type, "x")
		}
		want(t, h.broker.Stats().CutOff, int64(1))
		await(t, "nothing waits", func() bool { return h.broker.Stats().QueuedBytes == 0 })
	})
}

// TestListenersThatCannotBeWatched: without protocol/tls below it a connection has a goroutine.
func TestListenersThatCannotBeWatched(t *testing.T) {
	t.Parallel()
	h := open(t, func(s *settings) { s.plain = true })
	node := h.agent(t, "web1")
	node.say(wire.Message{Type: wire.AssociateRequest})
	want(t, node.hear().Type, wire.AssociateResponse)
	h.broker.Stop()
	want(t, node.farewell(), broker.Stopping)
}
