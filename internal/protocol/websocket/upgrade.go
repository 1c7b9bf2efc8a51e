package websocket

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/gobwas/ws"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/wire"
)

// The paths, each also with a slash and with a slash and a client type after it.
const (
	PathV1 = "/pcp"
	PathV2 = "/pcp2"
)

// DefaultType is who connects without saying as what.
const DefaultType = "agent"

// upgradeTime is how long a client may take to accept the answer to its request.
const upgradeTime = 10 * time.Second

// ServeHTTP takes over a connection. Where connections can be parked it returns at once,
// otherwise when the connection has ended.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	version, clientType, found := route(r.URL.EscapedPath())
	switch {
	case !found:
		http.NotFound(w, r)
		return
	case r.ProtoMajor != 1:
		http.Error(w, "PCP needs a websocket, and that HTTP/1.1.", http.StatusHTTPVersionNotSupported)
		return
	case !strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
		http.Error(w, "This is the place of PCP, which needs a websocket.", http.StatusUpgradeRequired)
		return
	case s.shedding.Load():
		http.Error(w, "This server is being emptied: connect to another one.", http.StatusServiceUnavailable)
		return
	}
	raw, buffered, _, err := ws.HTTPUpgrader{Timeout: upgradeTime}.Upgrade(r, w)
	if err != nil {
		s.cfg.Log.DebugContext(r.Context(), "websocket refused", "remote", r.RemoteAddr, "err", err)
		if raw != nil {
			_ = raw.Close() // the answer says why
		}
		return
	}
	early, _ := buffered.Peek(buffered.Reader.Buffered())
	c := newConn(s, raw, version)
	c.forgetPeer() // before anybody else may write: a server that stops says farewell to all who have entered
	if !s.enter(c) {
		_ = raw.Close()
		return
	}
	c.watchEnd()
	c.join(fleet.ActorFrom(r.Context()), clientType, r)
	c.begin(r.Context(), bytes.Clone(early))
}

// route finds the version and the client type in a path.
func route(path string) (version wire.Version, clientType string, found bool) {
	for prefix, version := range map[string]wire.Version{PathV1: wire.V1, PathV2: wire.V2} {
		rest, ok := strings.CutPrefix(path, prefix)
		switch {
		case !ok:
		case rest == "" || rest == "/":
			return version, DefaultType, true
		case rest[0] == '/':
			return version, rest[1:], true
		}
	}
	return 0, "", false
}

// join brings the connection to the broker, or says why not.
func (c *conn) join(actor fleet.Actor, clientType string, r *http.Request) {
	if actor.Kind != fleet.NodeActor {
		c.Close(broker.NoCertificate)
		return
	}
	name := fleet.Certname(strings.Clone(actor.Name))
	uri, err := broker.URIOf(name, clientType)
	if err != nil {
		c.server.cfg.Log.WarnContext(r.Context(), "websocket refused", "remote", r.RemoteAddr, "node", name, "err", err)
		c.Close(broker.Unsuccessful)
		return
	}
	agent := r.UserAgent()
	session, err := c.server.cfg.Broker.Join(broker.Presence{
		URI: uri, Certname: name, Version: c.version, Remote: strings.Clone(r.RemoteAddr), Agent: strings.Clone(agent[:min(len(agent), 128)]),
	}, rbac.Allow(actor, fleet.NodeControl, fleet.Object{}) == nil, c)
	if err != nil {
		f, _ := err.(broker.Farewell) //nolint:errorlint // Join says that it is one
		c.Close(f)
		return
	}
	c.associated(session)
}

// begin reads what came together with the request, and then what follows.
func (c *conn) begin(ctx context.Context, early []byte) {
	if c.park() {
		c.server.readers.add(func(ctx context.Context) {
			if c.take(ctx, early) {
				c.readTurn(ctx)
			}
		})
		return
	}
	if c.take(ctx, early) {
		c.readAll(ctx)
	}
}

// below is what a watched connection has under its TLS.
func below(c net.Conn) any {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok {
		return t.NetConn()
	}
	return c
}
