package connection

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/gobwas/ws"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire"
)

// conn is one websocket.
type conn struct {
	link    *Link
	at      int // of the server
	raw     net.Conn
	in      input
	request string // the id of the associate request

	associated chan struct{} // closed when the server has said yes
	ended      chan struct{} // closed when nothing more comes
	since      time.Time     // of the association; set before associated is closed
	err        error         // why it ended; set before ended is closed

	heard atomic.Int64 // when the last frame came, in Unix nanoseconds
	busy  atomic.Bool  // a message is being received
	quiet atomic.Bool  // it was given up because nothing came
	left  atomic.Bool  // it ends because we go

	waiting atomic.Int64  // bytes that want to be written
	turn    chan struct{} // holds one: whoever has it may write
	said    bool          // a close frame is out; of whoever has the turn
}

// read reads until the connection ends. It is a goroutine.
func (c *conn) read() {
	var err error
	for err == nil {
		err = c.in.next(c.control, c.message)
	}
	if errors.Is(err, errTooLarge) {
		c.say(ws.StatusMessageTooBig, "max_message_bytes")
	}
	_ = c.raw.Close()
	if c.err = plain(err); c.quiet.Load() {
		c.err = errSilent
	}
	c.link.ended(c)
	close(c.ended)
}

var errSilent = errors.New("the server did not answer a ping")

// plain is the end of a connection in words.
func plain(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the server closed the connection without a word (it restarted, or another client uses the same certificate)")
	}
	return err
}

// control answers a control frame; the error of a close frame is the farewell.
func (c *conn) control(op ws.OpCode, payload []byte) error {
	c.heard.Store(time.Now().UnixNano())
	switch op { //nolint:exhaustive // the others are no control frames
	case ws.OpPing:
		return c.write(controlFrame(ws.OpPong, payload))
	case ws.OpClose:
		code, reason := ws.ParseCloseFrameData(payload)
		if code.Empty() || !utf8.ValidString(reason) {
			code, reason = ws.StatusNormalClosure, ""
		}
		c.say(code, "")
		return farewell{int(code), reason}
	}
	return nil
}

// message takes a message that came. An error ends the connection.
func (c *conn) message(payload []byte, binary bool) error {
	c.heard.Store(time.Now().UnixNano())
	c.busy.Store(true)
	defer c.busy.Store(false)
	l := c.link
	if binary != l.cfg.Version.Binary() {
		l.cfg.Log.Warn("message of the wrong kind is passed over", "bytes", len(payload), "binary", binary)
		return nil
	}
	m, err := l.cfg.Version.Decode(payload)
	if err != nil {
		l.cfg.Log.Warn("message cannot be read, it is passed over", "message_id", m.ID, "message_type", m.Type, "err", err)
		return nil
	}
	if ours, err := c.association(m); ours || err != nil {
		return err
	}
	c.associate() // who is sent messages has been let in
	l.receive(m)
	c.heard.Store(time.Now().UnixNano()) // what came meanwhile has not been looked at
	return nil
}

// association takes what belongs to the associate request. An error is the server's no.
func (c *conn) association(m wire.Message) (ours bool, err error) {
	switch {
	case m.Type == wire.AssociateResponse:
		answer, unread := wire.ParseAssociation(m.Data)
		switch {
		case unread != nil || answer.ID != c.request: // to nothing that was asked
		case !answer.Success:
			return true, refusal{answer.Reason}
		default:
			c.associate()
		}
		return true, nil //nolint:nilerr // what cannot be read answers nothing
	case m.Type == wire.ErrorMessage && m.InReplyTo == c.request:
		text, _ := wire.ParseError(m.Data)
		return true, fmt.Errorf("the server answers the association with an error: %.200s", text)
	}
	return false, nil
}

// associate makes the connection the link's own, once.
func (c *conn) associate() {
	select {
	case <-c.associated:
	default:
		c.since = time.Now()
		c.link.adopt(c)
		close(c.associated)
	}
}

// say writes a close frame, once.
func (c *conn) say(code ws.StatusCode, reason string) {
	<-c.turn
	defer c.pass()
	if c.said {
		return
	}
	c.said = true
	_ = c.writeAll(controlFrame(ws.OpClose, ws.NewCloseFrameBody(code, reason))) // it ends, one way or the other
}

// write writes a frame, after those that others write. It returns when the
// system has it.
func (c *conn) write(frame []byte) error {
	defer c.waiting.Add(-int64(len(frame)))
	if before := c.waiting.Add(int64(len(frame))) - int64(len(frame)); before > 0 && before+int64(len(frame)) > c.link.cfg.QueueBytes {
		return fault.New(fault.Unavailable, "%d bytes wait to be written to the server, more are not taken", before)
	}
	<-c.turn // whoever has it gives up after WriteTimeout
	defer c.pass()
	if c.said {
		return errNotConnected
	}
	if err := c.writeAll(frame); err != nil {
		_ = c.raw.Close() // half a frame may be out; the reader notices
		return fault.Wrap(fault.Unavailable, err, "the connection to the server broke while writing")
	}
	return nil
}

func (c *conn) pass() { c.turn <- struct{}{} }

// pieceBytes is the most that is written under one deadline.
const pieceBytes = 256 << 10

// writeAll is called by whoever has the turn.
func (c *conn) writeAll(p []byte) error {
	for len(p) > 0 {
		piece := p[:min(len(p), pieceBytes)]
		if err := c.raw.SetWriteDeadline(time.Now().Add(c.link.cfg.WriteTimeout)); err != nil {
			return err
		}
		if _, err := c.raw.Write(piece); err != nil {
			return err
		}
		p = p[len(piece):]
	}
	return c.raw.SetWriteDeadline(time.Time{}) // crypto/tls may have to write by itself
}

// silentSince tells that nothing came since a time, though it was listened.
func (c *conn) silentSince(t time.Time) bool {
	return !c.busy.Load() && c.heard.Load() < t.UnixNano()
}

// drop ends the connection without a word.
func (c *conn) drop() { _ = c.raw.Close() }

// leave says farewell and waits, not for long, for the server's.
func (c *conn) leave(code ws.StatusCode, reason string) {
	limit := time.AfterFunc(c.link.cfg.CloseTimeout, c.drop)
	defer limit.Stop()
	c.left.Store(true)
	c.say(code, reason)
	<-c.ended
}
