package broker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/broker/brokertest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire"
)

const (
	id1 = "00000000-0000-0000-0000-000000000001"
	id2 = "00000000-0000-0000-0000-000000000002"
)

// peer is a session with its connection.
type peer struct {
	*broker.Session
	conn *brokertest.Conn
}

func open(t *testing.T, change func(*broker.Config)) *broker.Broker {
	t.Helper()
	cfg := broker.Config{Log: slog.New(slog.DiscardHandler), Controller: func(n fleet.Certname) bool { return strings.HasPrefix(string(n), "ctl") }}
	if change != nil {
		change(&cfg)
	}
	b, err := broker.New(cfg)
	must(t, err)
	return b
}

func tryJoin(b *broker.Broker, uri wire.URI, version wire.Version) (peer, error) {
	conn := new(brokertest.Conn)
	s, err := b.Join(broker.Presence{URI: uri, Certname: fleet.Certname(uri.Name()), Version: version, Agent: "test/1", Remote: "192.0.2.1:5"}, false, conn)
	return peer{s, conn}, err
}

func join(t *testing.T, b *broker.Broker, uri wire.URI) peer {
	t.Helper()
	p, err := tryJoin(b, uri, wire.V2)
	must(t, err)
	return p
}

// says sends a message as the peer's client does.
func (p peer) says(t *testing.T, m wire.Message) {
	t.Helper()
	if m.ID == "" {
		m.ID = id1
	}
	payload, err := p.Presence().Version.Append(nil, m)
	must(t, err)
	p.Receive(t.Context(), payload, p.Presence().Version.Binary())
}

// reads is all that waits for the peer, without the ids that the broker made up.
func (p peer) reads() []wire.Message {
	all := brokertest.Drain(p.Session)
	for i := range all {
		if all[i].Sender == "" || all[i].Sender == wire.Broker {
			all[i].ID = ""
		}
	}
	return all
}

// complaint is the text of the one error that waits for the peer.
func (p peer) complaint(t *testing.T) string {
	t.Helper()
	got := p.reads()
	if len(got) != 1 || got[0].Type != wire.ErrorMessage || got[0].Sender != "" || got[0].Target != "" {
		t.Fatalf("got %+v, want one error without sender and target", got)
	}
	text, err := wire.ParseError(got[0].Data)
	must(t, err)
	return text
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

func TestOrdersAndAnswersPass(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	ctl, node := join(t, b, "pcp://ctl/controller"), join(t, b, "pcp://web1/agent")
	order := wire.Message{ID: id1, Type: wire.BlockingRequest, Target: "pcp://web1/agent", Data: jsontext.Value(`{"a":null}`)}
	ctl.says(t, order)
	order.Sender = "pcp://ctl/controller"
	want(t, node.reads(), []wire.Message{order})
	answer := wire.Message{ID: id2, Type: wire.BlockingResponse, Sender: "pcp://web1/agent", Target: "pcp://ctl/controller", Data: jsontext.Value("null")}
	node.says(t, answer)
	want(t, ctl.reads(), []wire.Message{answer})
	want(t, []int{node.conn.Woken(), ctl.conn.Woken()}, []int{1, 1})
}

// TestWhoMaySendWhat is the matrix of the default rules.
func TestWhoMaySendWhat(t *testing.T) {
	t.Parallel()
	types := []string{
		wire.AssociateRequest, wire.InventoryRequest, wire.BlockingRequest, wire.NonBlockingRequest,
		wire.BlockingResponse, wire.NonBlockingResponse, wire.ProvisionalResponse, wire.RPCError, wire.ErrorMessage, "http://example.test/own",
	}
	var got strings.Builder
	for _, from := range []wire.URI{"pcp://web1/agent", "pcp://ctl/controller"} {
		for _, to := range []wire.URI{wire.Broker, "pcp://web2/agent", "pcp://ctl2/controller", "pcp://ctl-away/controller"} {
			fmt.Fprintf(&got, "%s to %s:", from, to)
			for _, messageType := range types {
				b := open(t, func(c *broker.Config) {
					c.Handlers = map[string]broker.Handler{"http://example.test/own": func(context.Context, broker.Presence, wire.Message) error { return nil }}
				})
				sender := join(t, b, from)
				join(t, b, "pcp://web2/agent")
				join(t, b, "pcp://ctl2/controller")
				data := jsontext.Value(`{"query":[]}`)
				if messageType == wire.ErrorMessage {
					data = wire.Data("x")
				}
				refusedBefore := b.Stats().Refused
				sender.says(t, wire.Message{Type: messageType, Target: to, Data: data})
				mark := "+"
				if b.Stats().Refused != refusedBefore {
					mark = "-"
				}
				fmt.Fprintf(&got, " %s%s", mark, messageType[strings.LastIndex(messageType, "/")+1:])
			}
			got.WriteString("\n")
		}
	}
	// A minus is also: not connected, or no handler.
	want(t, got.String(), `pcp://web1/agent to pcp:///server: +associate_request -inventory_request -rpc_blocking_request -rpc_non_blocking_request -rpc_blocking_response -rpc_non_blocking_response -rpc_provisional_response -rpc_error_message +error_message +own
pcp://web1/agent to pcp://web2/agent: -associate_request -inventory_request -rpc_blocking_request -rpc_non_blocking_request -rpc_blocking_response -rpc_non_blocking_response -rpc_provisional_response -rpc_error_message -error_message -own
pcp://web1/agent to pcp://ctl2/controller: -associate_request -inventory_request -rpc_blocking_request -rpc_non_blocking_request +rpc_blocking_response +rpc_non_blocking_response +rpc_provisional_response +rpc_error_message +error_message -own
pcp://web1/agent to pcp://ctl-away/controller: -associate_request -inventory_request -rpc_blocking_request -rpc_non_blocking_request -rpc_blocking_response -rpc_non_blocking_response -rpc_provisional_response -rpc_error_message -error_message -own
pcp://ctl/controller to pcp:///server: +associate_request +inventory_request -rpc_blocking_request -rpc_non_blocking_request -rpc_blocking_response -rpc_non_blocking_response -rpc_provisional_response -rpc_error_message +error_message +own
pcp://ctl/controller to pcp://web2/agent: +associate_request +inventory_request +rpc_blocking_request +rpc_non_blocking_request +rpc_blocking_response +rpc_non_blocking_response +rpc_provisional_response +rpc_error_message +error_message +own
pcp://ctl/controller to pcp://ctl2/controller: +associate_request +inventory_request +rpc_blocking_request +rpc_non_blocking_request +rpc_blocking_response +rpc_non_blocking_response +rpc_provisional_response +rpc_error_message +error_message +own
pcp://ctl/controller to pcp://ctl-away/controller: -associate_request -inventory_request -rpc_blocking_request -rpc_non_blocking_request -rpc_blocking_response -rpc_non_blocking_response -rpc_provisional_response -rpc_error_message -error_message -own
`)
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from wire.URI
		m    wire.Message
		want string
	}{
		"forged name":        {"pcp://ctl/x", wire.Message{Type: "x", Sender: "pcp://web2/x", Target: "pcp://web1/agent"}, "Message not authenticated."},
		"forged type":        {"pcp://ctl/x", wire.Message{Type: "x", Sender: "pcp://ctl/y", Target: "pcp://web1/agent"}, "Message not authenticated."},
		"forged broker":      {"pcp://web1/agent", wire.Message{Type: "x", Sender: wire.Broker, Target: "pcp://ctl/x"}, "Message not authenticated."},
		"odd message type":   {"pcp://ctl/x", wire.Message{Type: "x\x00y", Target: "pcp://web1/agent"}, "Message not authorized."},
		"odd target":         {"pcp://ctl/x", wire.Message{Type: "x", Target: "pcp://we b1/agent"}, "Message not authorized."},
		"an agent's order":   {"pcp://web1/agent", wire.Message{Type: wire.BlockingRequest, Target: "pcp://web2/agent"}, "Message not authorized."},
		"wildcard":           {"pcp://ctl/x", wire.Message{Type: "x", Target: "pcp://*/agent"}, "Multiple recipients no longer supported."},
		"nobody":             {"pcp://ctl/x", wire.Message{Type: "x", Target: "pcp://away/agent"}, "Not connected."},
		"unknown type":       {"pcp://web1/agent", wire.Message{Type: "http://x/y"}, "Message type http://x/y is not handled here."},
		"query without data": {"pcp://ctl/x", wire.Message{Type: wire.InventoryRequest}, "field data: it is missing"},
		"handler's refusal":  {"pcp://web1/agent", wire.Message{Type: "refuse"}, "field x: mend it"},
		"handler's secret":   {"pcp://web1/agent", wire.Message{Type: "fail"}, "Internal error; the server's log has more under this message's id."},
		"handler's panic":    {"pcp://web1/agent", wire.Message{Type: "panic"}, "Internal error; the server's log has more under this message's id."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, func(c *broker.Config) {
				c.Handlers = map[string]broker.Handler{
					"refuse": func(context.Context, broker.Presence, wire.Message) error {
						return fault.New(fault.Invalid, "field x: mend it")
					},
					"fail":  func(context.Context, broker.Presence, wire.Message) error { return errors.New("the password is 42") },
					"panic": func(context.Context, broker.Presence, wire.Message) error { panic("no") },
				}
			})
			for _, uri := range []wire.URI{"pcp://web1/agent", "pcp://web2/agent"} {
				if uri != c.from {
					join(t, b, uri)
				}
			}
			from := join(t, b, c.from)
			from.says(t, c.m)
			got := brokertest.Drain(from.Session)
			if len(got) != 1 || got[0].InReplyTo != id1 {
				t.Fatalf("got %+v, want one answer to the message", got)
			}
			text, err := wire.ParseError(got[0].Data)
			must(t, err)
			want(t, text, c.want)
		})
	}
}

func TestMessagesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	two := join(t, b, "pcp://web2/agent")
	one, err := tryJoin(b, "pcp://web1/agent", wire.V1)
	must(t, err)
	for _, c := range []struct {
		peer    peer
		payload string
		binary  bool
		want    string
	}{
		{two, "hello", false, "Could not decode message: the message: it is not the JSON object it has to be"},
		{two, `{"id":"1"}`, false, `Could not decode message: field id: "1" is not a UUID`},
		{two, "\x01", true, "Could not decode message: this path takes text messages only, not binary ones"},
		{one, "{}", false, "Could not decode message: this path takes binary messages only, not text ones"},
		{one, "\x02\x01", true, "Could not decode message: the frame does not begin with the version byte 1"},
		{one, "\x01\x01\x00", true, "Could not decode message: the frame ends inside a chunk's header"},
	} {
		c.peer.Receive(t.Context(), []byte(c.payload), c.binary)
		if got := c.peer.complaint(t); !strings.HasPrefix(got, c.want) {
			t.Errorf("%q: %q, want %q", c.payload, got, c.want)
		}
	}
	if _, there := b.Presence("pcp://web1/agent"); !there {
		t.Error("a message that cannot be read ended the session")
	}
}

func TestErrorsAreNotAnsweredWithErrors(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	ctl := join(t, b, "pcp://ctl/controller")
	ctl.says(t, wire.Message{Type: wire.ErrorMessage, Target: "pcp://away/agent", Data: wire.Data("x")})
	ctl.says(t, wire.Message{Type: wire.ErrorMessage, Data: wire.Data("x")})
	want(t, ctl.reads(), []wire.Message(nil))
}

func TestSeveralTargetsOfPCP1(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	ctl, err := tryJoin(b, "pcp://ctl/controller", wire.V1)
	must(t, err)
	ctl.says(t, wire.Message{Type: "x", Sender: "pcp://ctl/controller", Target: "pcp://a/b", Others: []wire.URI{"pcp://c/d"}})
	want(t, ctl.complaint(t), "Multiple recipients no longer supported.")
}

func TestAssociation(t *testing.T) {
	t.Parallel()
	for _, version := range []wire.Version{wire.V1, wire.V2} {
		for name, c := range map[string]struct {
			sender wire.URI
			want   wire.Association
		}{
			"as itself":    {"pcp://web1/agent", wire.Association{ID: id1, Success: true}},
			"other type":   {"pcp://web1/other", wire.Association{ID: id1, Reason: "Session already associated."}},
			"other name":   {"pcp://web2/agent", wire.Association{ID: id1, Reason: "Message not authenticated."}},
			"as the ghost": {"pcp:///server", wire.Association{ID: id1, Reason: "Message not authenticated."}},
		} {
			b := open(t, nil)
			p, err := tryJoin(b, "pcp://web1/agent", version)
			must(t, err)
			for range 2 { // again on an associated session
				p.says(t, wire.Message{Type: wire.AssociateRequest, Sender: c.sender, Target: wire.Broker})
			}
			answer := wire.Message{Type: wire.AssociateResponse, Sender: wire.Broker, Target: "pcp://web1/agent", InReplyTo: id1, Data: wire.Data(c.want)}
			farewell, closed := p.conn.Farewell()
			if c.want.Success {
				want(t, p.reads(), []wire.Message{answer, answer})
				want(t, closed, false)
			} else {
				want(t, p.reads(), []wire.Message{answer}) // the second one came too late
				want(t, farewell, broker.Unsuccessful)
				_, there := b.Presence("pcp://web1/agent")
				want(t, there, false)
			}
			_ = name
		}
	}
}

func TestNewcomersThatAreRefused(t *testing.T) {
	t.Parallel()
	b := open(t, func(c *broker.Config) { c.MaxConnections = 1 })
	first := join(t, b, "pcp://web1/agent")
	_, err := tryJoin(b, "pcp://web2/agent", wire.V2)
	want(t, err, error(broker.LimitExceeded))
	join(t, b, "pcp://web1/agent") // in the place of the first
	want(t, first.conn.Ousted(), true)
	first.says(t, wire.Message{Type: "x"})
	want(t, b.Stats().Received, int64(0)) // it speaks for nobody any more
	b.Stop()
	_, err = tryJoin(b, "pcp://web1/agent", wire.V2)
	want(t, err, error(broker.NotRunning))
}

// A node has one connection, of whatever client type; a controller may have several.
func TestOneConnectionForEachNode(t *testing.T) {
	t.Parallel()
	b := open(t, func(c *broker.Config) {
		c.NodeConnections = 1
		c.Controller = func(name fleet.Certname) bool { return name == "ctl" }
	})
	first := join(t, b, "pcp://web1/agent")
	_, err := tryJoin(b, "pcp://web1/other", wire.V2)
	want(t, err, error(broker.OneEach))
	want(t, len(broker.OneEach.Reason) <= broker.MaxReasonBytes, true)
	join(t, b, "pcp://web1/doctor")         // a look takes nobody's place
	later := join(t, b, "pcp://web1/agent") // in the place of the first
	want(t, first.conn.Ousted(), true)
	first.Leave(broker.Farewell{Code: 1006}) // its end comes late, and counts once
	_, err = tryJoin(b, "pcp://web1/other", wire.V2)
	want(t, err, error(broker.OneEach))
	join(t, b, "pcp://ctl/agent")
	join(t, b, "pcp://ctl/controller")
	later.Leave(broker.Farewell{Code: 1000})
	join(t, b, "pcp://web1/other")
}

func TestClientTypes(t *testing.T) {
	t.Parallel()
	for clientType, good := range map[string]bool{
		"agent": true, "ruby-pcp-client-77": true, "a.b_c:d": true,
		"": false, "server": false, "*": false, "a*": false, "a/b": false, "we%20ird": false, "we ird": false, "ä": false, strings.Repeat("a", 65): false,
	} {
		uri, err := broker.URIOf("web1", clientType)
		if (err == nil) != good || good && uri != wire.URI("pcp://web1/"+clientType) {
			t.Errorf("%q: %v, %v", clientType, uri, err)
		}
	}
}

func TestStopSaysFarewellToAll(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	node := join(t, b, "pcp://web1/agent")
	must(t, b.Send(t.Context(), wire.Message{Type: "x", Target: "pcp://web1/agent"}))
	b.Stop()
	got, _ := node.conn.Farewell()
	want(t, got, broker.Stopping)
	want(t, len(node.reads()), 1) // what was queued still goes
	want(t, b.Stats().Connected, 0)
	want(t, fault.Of(b.Send(t.Context(), wire.Message{Type: "x", Target: "pcp://web1/agent"})), fault.NotFound)
}

func TestAccessLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := open(t, func(c *broker.Config) {
		c.Log = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
	})
	node := join(t, b, "pcp://web1/agent")
	out.Reset()
	node.says(t, wire.Message{Type: wire.AssociateRequest})
	node.says(t, wire.Message{Type: wire.BlockingRequest, Target: "pcp://web2/agent"})
	node.says(t, wire.Message{Type: "x", Sender: "pcp://web2/agent"})
	node.Receive(t.Context(), []byte("secret"), false)
	want(t, out.String(), `level=INFO msg="pcp access" outcome=AUTHORIZATION_SUCCESS remote=192.0.2.1:5 node=web1 sender=pcp://web1/agent message_type=http://puppetlabs.com/associate_request message_id=`+id1+` target=pcp:///server
level=WARN msg="pcp access" outcome=AUTHORIZATION_FAILURE remote=192.0.2.1:5 node=web1 sender=pcp://web1/agent message_type=http://puppetlabs.com/rpc_blocking_request message_id=`+id1+` target=pcp://web2/agent
level=WARN msg="pcp access" outcome=AUTHENTICATION_FAILURE remote=192.0.2.1:5 node=web1 sender=pcp://web2/agent message_type=x message_id=`+
		id1+` target=pcp:///server
level=WARN msg="pcp access" outcome=DESERIALIZATION_ERROR remote=192.0.2.1:5 node=web1 sender="" message_type="" message_id="" target=""
`)
}

func TestHandlersSeeWhoAndWhat(t *testing.T) {
	t.Parallel()
	var who broker.Presence
	var what wire.Message
	b := open(t, func(c *broker.Config) {
		c.Handlers = map[string]broker.Handler{wire.RPCError: func(_ context.Context, p broker.Presence, m wire.Message) error {
			who, what = p, m
			return nil
		}}
	})
	node := join(t, b, "pcp://web1/agent")
	m := wire.Message{ID: id2, Type: wire.RPCError, Data: jsontext.Value(`{"id":"7"}`)}
	node.says(t, m)
	m.Sender, m.Target = "pcp://web1/agent", wire.Broker
	want(t, what, m)
	want(t, who, node.Presence())
	want(t, b.Presences(), []broker.Presence{who})
}
