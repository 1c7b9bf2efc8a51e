package websocket

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/gobwas/ws"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/wire"
)

// conn is one websocket. It is the broker's Conn.
type conn struct {
	server  *Server
	raw     net.Conn
	version wire.Version
	frames  frames       // of whoever reads
	spot    *spot        // where it is parked; nil: it has a goroutine
	heard   atomic.Int64 // when the last whole frame came, in Unix nanoseconds

	mu       sync.Mutex
	session  *broker.Session // nil: not associated
	writing  bool            // a turn of writing is queued or under way
	again    bool            // something came meanwhile
	pong     []byte          // to send; nil: none
	alive    func()          // to call when the peer answers a ping: its place was taken; nil: it was not
	pinged   bool            // that ping is out
	word     *broker.Farewell
	said     bool // the close frame is out
	answered bool // the peer's close frame is here
	broken   bool // what comes makes no sense any more
	ended    bool
	held     int64 // bytes of an unfinished message
	admitted int64 // of the room for large messages
	limit    *time.Timer
}

var _ broker.Conn = (*conn)(nil)

func newConn(s *Server, raw net.Conn, version wire.Version) *conn {
	c := &conn{server: s, raw: raw, version: version}
	c.heard.Store(time.Now().UnixNano())
	c.frames.max = s.cfg.MaxMessageBytes
	return c
}

// watchEnd hears of it when the connection is closed from below, as protocol/tls does
// with a revoked certificate's.
func (c *conn) watchEnd() {
	if b, ok := below(c.raw).(interface{ OnClose(hook func()) }); ok {
		b.OnClose(func() { c.end(broker.Farewell{Code: 1006, Reason: "The connection was closed by this server."}) })
	}
}

// forgetPeer lets go of the client's certificate: who it is is known, and the connection
// may live for months.
func (c *conn) forgetPeer() {
	if b, ok := below(c.raw).(interface{ ForgetPeer() }); ok {
		b.ForgetPeer()
	}
}

// associated makes the session known. What the broker said to it meanwhile counts.
func (c *conn) associated(s *broker.Session) {
	c.mu.Lock()
	c.session = s
	ended := c.ended
	c.mu.Unlock()
	if ended {
		s.Leave(broker.Farewell{Code: 1006})
		return
	}
	c.Wake()
}

// Wake is the broker's word that there is something to write.
func (c *conn) Wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wake()
}

// wake is called with mu held.
func (c *conn) wake() {
	switch {
	case c.ended:
	case c.writing:
		c.again = true
	default:
		c.writing = true
		c.server.writers.add(c.writeTurn)
	}
}

// Close says farewell after what the session still has.
func (c *conn) Close(f broker.Farewell) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.word != nil || c.ended {
		return
	}
	c.word = &f
	c.limit = time.AfterFunc(c.server.cfg.CloseTimeout, c.drop)
	c.wake()
}

// Oust ends the connection as soon as its peer has answered a ping, or has not in CloseTimeout. Nothing else that comes counts: it
// may have been on its way when a client that went left its connection.
func (c *conn) Oust(alive func()) {
	c.mu.Lock()
	ask := alive != nil && c.word == nil && !c.ended
	if ask {
		c.alive = alive
		c.limit = time.AfterFunc(c.server.cfg.CloseTimeout, c.drop)
		c.wake()
	}
	c.mu.Unlock()
	if !ask {
		c.drop()
	}
}

// ousted is the payload of the ping that a superseded client gets: a pong with another payload is no answer to it.
const ousted = "are you there?"

// stillThere takes the answer to that ping.
func (c *conn) stillThere() {
	c.mu.Lock()
	alive := c.alive
	if c.ended {
		alive = nil
	}
	c.mu.Unlock()
	if alive != nil {
		alive()
		c.drop()
	}
}

// drop closes the connection without a word.
func (c *conn) drop() {
	c.end(broker.Farewell{Code: 1006, Reason: "Dropped."})
	if n, ok := below(c.raw).(net.Conn); ok {
		_ = n.Close()
	}
}

// farewell ends a connection for a reason found here.
func (c *conn) farewell(f broker.Farewell) {
	if s := c.whose(); s != nil {
		s.Leave(f)
	}
	c.Close(f)
}

func (c *conn) whose() *broker.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// end takes note, once, that the connection ends. It comes before the closing itself, which
// would tell of it, too, but not why.
func (c *conn) end(f broker.Farewell) {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return
	}
	c.ended = true
	if c.limit != nil {
		c.limit.Stop()
	}
	if c.word != nil {
		f = *c.word
	}
	session := c.session
	c.giveBack()
	c.mu.Unlock()
	c.leaveRoom()
	if session != nil {
		session.Leave(f)
	}
	c.unpark()
	c.server.leave(c)
}

// reserve asks for room for n more bytes of an unfinished message.
func (c *conn) reserve(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	c.held += int64(n)
	return c.server.partial.Add(int64(n)) <= c.server.cfg.PartialBytes
}

func (c *conn) release() {
	c.mu.Lock()
	c.giveBack()
	c.mu.Unlock()
	c.leaveRoom()
}

// giveBack is called with mu held.
func (c *conn) giveBack() {
	c.server.partial.Add(-c.held)
	c.held = 0
}

// silentSince tells whether no whole frame came after limit.
func (c *conn) silentSince(limit time.Time) bool { return c.heard.Load() < limit.UnixNano() }

// take makes sense of bytes that came. False says that the connection has ended.
func (c *conn) take(ctx context.Context, data []byte) bool {
	c.mu.Lock()
	over, deaf, closing := c.ended, c.broken, c.word != nil || c.alive != nil
	c.mu.Unlock()
	if over || deaf || len(data) == 0 {
		return !over
	}
	f := &c.frames
	f.skip = f.skip || closing
	f.reserve, f.release, f.refuse = c.reserve, c.release, c.farewell
	f.control = c.control
	f.admit = func(bytes int64) bool { return c.admit(ctx, bytes) }
	f.message = func(payload []byte, binary bool) {
		c.heard.Store(time.Now().UnixNano())
		if s := c.whose(); s != nil {
			s.Receive(ctx, payload, binary)
		}
	}
	err := f.feed(data)
	f.reserve, f.release, f.refuse, f.control, f.message, f.admit = nil, nil, nil, nil, nil, nil // an idle connection keeps no closures
	if err == nil {
		return true
	}
	c.mu.Lock()
	c.broken = true
	c.mu.Unlock()
	if why, ok := errors.AsType[broker.Farewell](err); ok {
		c.farewell(why)
	}
	return true
}

// control answers a control frame.
func (c *conn) control(f ws.Frame) {
	c.heard.Store(time.Now().UnixNano())
	switch f.Header.OpCode { //nolint:exhaustive // the others are no control frames
	case ws.OpPing:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.pong = append([]byte{}, f.Payload...)
		c.wake()
	case ws.OpPong:
		if string(f.Payload) == ousted {
			c.stillThere()
		}
	case ws.OpClose:
		c.partingWord(f.Payload)
	}
}

// partingWord answers the peer's close frame with its own code.
func (c *conn) partingWord(payload []byte) {
	word := broker.Farewell{Code: int(ws.StatusNormalClosure)}
	if len(payload) > 0 {
		code, reason := ws.ParseCloseFrameData(payload)
		if !mayBeSent(int(code)) || !utf8.ValidString(reason) {
			code, reason = ws.StatusProtocolError, "Websocket protocol: a close frame of the wrong shape."
		}
		word = broker.Farewell{Code: int(code), Reason: reason}
	}
	c.mu.Lock()
	c.answered = true
	c.wake() // the close frame may be out already
	c.mu.Unlock()
	c.farewell(word)
}

// lost takes the error of a read.
func (c *conn) lost(err error) {
	reason := "The connection was lost: " + err.Error()
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		reason = "The client went without a word."
	}
	c.end(broker.Farewell{Code: 1006, Reason: reason})
	_ = c.raw.Close()
}

// isNothing tells that a read found nothing to read.
func isNothing(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
