package e2e_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gobwas/ws"
	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/wire"
)

// pcp is a websocket of a node, as an agent or a controller has one.
type pcp struct {
	t       *testing.T
	node    *node
	uri     wire.URI
	conn    net.Conn
	in      *bufio.Reader
	version wire.Version
}

// pcp connects to HOST:PORT/path; an empty address is the server's.
func (n *node) pcp(t *testing.T, address, path string, version wire.Version) *pcp {
	t.Helper()
	config := n.client.Transport.(*http.Transport).TLSClientConfig.Clone()
	config.MaxVersion = tls.VersionTLS12 // as the original agent
	if address == "" {
		address = "localhost:" + n.server.port()
	}
	dialer := ws.Dialer{TLSConfig: config, Timeout: patience}
	conn, in, _, err := dialer.Dial(t.Context(), "wss://"+address+path)
	if err != nil {
		t.Fatal(err)
	}
	if in == nil {
		in = bufio.NewReader(conn)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(agentTimeout))
	clientType := path[strings.LastIndex(path, "/")+1:]
	if clientType == "" || strings.HasPrefix(clientType, "pcp") {
		clientType = "agent"
	}
	return &pcp{t, n, wire.NewURI(n.name, clientType), conn, in, version}
}

func (p *pcp) sendFrame(op ws.OpCode, payload []byte) {
	p.t.Helper()
	if _, err := p.conn.Write(ws.MustCompileFrame(ws.MaskFrame(ws.NewFrame(op, true, payload)))); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pcp) opCode() ws.OpCode {
	if p.version.Binary() {
		return ws.OpBinary
	}
	return ws.OpText
}

// send sends a message as this client.
func (p *pcp) send(m wire.Message) wire.Message {
	p.t.Helper()
	m.ID = newUUID()
	if m.Sender == "" {
		m.Sender = p.uri
	}
	payload, err := p.version.Append(nil, m)
	if err != nil {
		p.t.Fatal(err)
	}
	p.sendFrame(p.opCode(), payload)
	return m
}

func (p *pcp) frame() ws.Frame {
	p.t.Helper()
	header, err := ws.ReadHeader(p.in)
	if err != nil {
		p.t.Fatal(err)
	}
	f := ws.Frame{Header: header, Payload: make([]byte, header.Length)}
	if _, err := io.ReadFull(p.in, f.Payload); err != nil {
		p.t.Fatal(err)
	}
	return f
}

func (p *pcp) receive() wire.Message {
	p.t.Helper()
	f := p.frame()
	if f.Header.OpCode != p.opCode() {
		p.t.Fatalf("a frame of kind %x: %q", f.Header.OpCode, f.Payload)
	}
	m, err := p.version.Decode(f.Payload)
	if err != nil {
		p.t.Fatal(err)
	}
	return m
}

// complains expects an error message.
func (p *pcp) complains(inReplyTo, want string) {
	p.t.Helper()
	m := p.receive()
	text, err := wire.ParseError(m.Data)
	if m.Type != wire.ErrorMessage || err != nil || m.InReplyTo != inReplyTo || !strings.HasPrefix(text, want) {
		p.t.Errorf("received %+v, want the error %q in reply to %q", m, want, inReplyTo)
	}
}

// closes expects a close frame, and answers it.
func (p *pcp) closes(want string) {
	p.t.Helper()
	f := p.frame()
	code, reason := ws.ParseCloseFrameData(f.Payload)
	if got := strconv.Itoa(int(code)) + " " + reason; f.Header.OpCode != ws.OpClose || got != want {
		p.t.Errorf("a frame of kind %x, %q; want the close frame %q", f.Header.OpCode, got, want)
	}
	p.sendFrame(ws.OpClose, f.Payload)
}

// associate asks, as clients of PCP 1 do, and so waits until the session is known.
func (p *pcp) associate() *pcp {
	p.t.Helper()
	asked := p.send(wire.Message{Type: wire.AssociateRequest, Target: wire.Broker})
	answer, err := wire.ParseAssociation(p.receive().Data)
	if err != nil || answer != (wire.Association{ID: asked.ID, Success: true}) {
		p.t.Fatalf("association: %+v, %v", answer, err)
	}
	return p
}

// An operator's controller orders two agents, one of each version of PCP, over the
// second port; it watches them come and go, and each is told what it did wrong.
func TestControllersReachAgentsOverPCP(t *testing.T) {
	begin(t)
	second := steadyAddress(t)
	s := startServer(t, "--autosign", "all", "--broker-controllers", "ctl", "--broker-listen", second,
		"--broker-max-message-bytes", "1000000")
	_, port, _ := net.SplitHostPort(second)
	ctl := enrol(t, s, "ctl").pcp(t, "localhost:"+port, "/pcp2/controller", wire.V2).associate()
	old := enrol(t, s, "old").pcp(t, "", "/pcp/", wire.V1).associate()
	ctl.awaits("pcp://old/agent")
	asked := ctl.send(wire.Message{Type: wire.InventoryRequest, Data: wire.Data(wire.Query{Query: []wire.URI{"pcp://*/agent"}, Subscribe: true})})
	inventory := ctl.receive()
	if diff := cmp.Diff(`{"uris":["pcp://old/agent"]}`, string(inventory.Data)); diff != "" || inventory.InReplyTo != asked.ID {
		t.Errorf("inventory (-want +got):\n%s", diff)
	}
	fresh := enrol(t, s, "fresh").pcp(t, "", "/pcp2/agent", wire.V2).associate()
	if diff := cmp.Diff(`{"changes":[{"client":"pcp://fresh/agent","change":1}]}`, string(ctl.receive().Data)); diff != "" {
		t.Errorf("update (-want +got):\n%s", diff)
	}
	for _, agent := range []*pcp{old, fresh} {
		order := ctl.send(wire.Message{
			Type: wire.BlockingRequest, Target: agent.uri, Data: jsontext.Value(`{"transaction_id":"7","module":"ping","action":"ping","params":{}}`),
		})
		if diff := cmp.Diff(order, agent.receive()); diff != "" {
			t.Errorf("order at %s (-want +got):\n%s", agent.uri, diff)
		}
		answer := agent.send(wire.Message{Type: wire.BlockingResponse, Target: order.Sender, Data: jsontext.Value(`{"transaction_id":"7","results":{"x":[1]}}`)})
		if diff := cmp.Diff(answer, ctl.receive()); diff != "" {
			t.Errorf("answer of %s (-want +got):\n%s", agent.uri, diff)
		}
	}
	mistakes(t, ctl, old, fresh)
	s.logged(t, "pcp access", "outcome=AUTHENTICATION_FAILURE", "node=fresh")
	s.logged(t, "path=/pcp2/agent", "status=101", "actor=node:fresh")

	fresh.node.must(t, http.MethodPut, "/puppet/v3/facts/fresh?environment=production", "application/json", factsJSON("fresh", nil))
	shows(t, s, "connected to ", "(PCP 2)")
	s.tutti(t, "ca", "revoke", "fresh")
	if _, err := fresh.in.ReadByte(); err == nil {
		t.Error("a revoked node's connection goes on")
	}
	if diff := cmp.Diff(`{"changes":[{"client":"pcp://fresh/agent","change":-1}]}`, string(ctl.receive().Data)); diff != "" {
		t.Errorf("update (-want +got):\n%s", diff)
	}
	shows(t, s, "not connected")
	stopped := make(chan error, 1)
	go func() { stopped <- s.stop() }()
	for _, client := range []*pcp{old, ctl} {
		client.closes("1001 The server is stopping.")
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// awaits asks until a client is known to this one's server: it may be connected to another server.
func (p *pcp) awaits(client wire.URI) {
	p.t.Helper()
	eventually(p.t, patience, string(client)+" is known", func() bool {
		p.send(wire.Message{Type: wire.InventoryRequest, Data: wire.Data(wire.Query{Query: []wire.URI{client}})})
		known, err := wire.ParseInventory(p.receive().Data)
		return err == nil && slices.Contains(known.URIs, client)
	})
}

// shows waits until a server shows of the node fresh whether it is connected: of several, until the one that is asked has heard of it.
func shows(t *testing.T, s *server, words ...string) {
	t.Helper()
	text := ""
	ok := func() bool {
		text = s.tutti(t, "node", "show", "fresh")
		return holdsAll(text, words)
	}
	if len(s.pids()) == 1 && !ok() || !within(patience, ok) {
		t.Errorf("node show does not say %q:\n%s", words, text)
	}
}

// mistakes is what each of them may not do, and what it hears.
func mistakes(t *testing.T, ctl, old, fresh *pcp) {
	t.Helper()
	fresh.complains(fresh.send(wire.Message{Type: wire.BlockingRequest, Target: old.uri}).ID, "Message not authorized.")
	fresh.complains(fresh.send(wire.Message{Type: wire.InventoryRequest, Data: wire.Data(wire.Query{Query: []wire.URI{}})}).ID, "Message not authorized.")
	fresh.complains(fresh.send(wire.Message{Type: wire.BlockingResponse, Sender: old.uri, Target: ctl.uri}).ID, "Message not authenticated.")
	ctl.complains(ctl.send(wire.Message{Type: wire.BlockingRequest, Target: "pcp://away/agent"}).ID, "Not connected.")
	ctl.complains(ctl.send(wire.Message{Type: wire.BlockingRequest, Target: "pcp://*/agent"}).ID, "Multiple recipients no longer supported.")
	ctl.complains(ctl.send(wire.Message{Type: "http://example.test/odd"}).ID, "Message type http://example.test/odd is not handled here.")
	old.sendFrame(ws.OpText, []byte("{}"))
	old.complains("", "Could not decode message: this path takes binary messages only")
	old.sendFrame(ws.OpBinary, []byte{2})
	old.complains("", "Could not decode message: the frame does not begin with the version byte 1")
	old.sendFrame(ws.OpPing, []byte("still there?"))
	if f := old.frame(); f.Header.OpCode != ws.OpPong || !bytes.Equal(f.Payload, []byte("still there?")) {
		t.Errorf("a ping is answered with %x %q", f.Header.OpCode, f.Payload)
	}
	if len(ctl.node.server.pids()) == 1 { // each server counts for itself
		fresh.node.pcp(t, "", "/pcp2/second", wire.V2).closes("1008 This certificate is connected as another client type (broker_connections_per_node).")
	}
	again := ctl.node.pcp(t, "", "/pcp2/second", wire.V2) // a controller may have several
	again.sendFrame(ws.OpText, make([]byte, 1_000_001))
	again.closes("1009 Text message size [1000001] exceeds maximum size [1000000]")
	fresh.node.pcp(t, "", "/pcp2/server", wire.V2).closes("4002 Association unsuccessful.")
	anonymous(t, ctl.node.server).pcp(t, "", "/pcp2/agent", wire.V2).closes("4003 No client certificate.")
}
