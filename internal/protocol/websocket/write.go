package websocket

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/gobwas/ws"

	"github.com/tutti-project/tutti/internal/broker"
)

// turnBytes is about what one turn of writing writes before others have theirs.
const turnBytes = 32 << 10

// pieceBytes is the most that is written under one deadline.
const pieceBytes = 256 << 10

// keptBytes is the largest buffer that is worth keeping.
const keptBytes = 2 * turnBytes

var writeBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// writeTurn writes some of what there is to write: first a pong and a ping, then messages, then the
// farewell. It queues the next turn if there may be more.
func (c *conn) writeTurn(context.Context) {
	out := writeBuffers.Get().(*bytes.Buffer)
	defer func() {
		if out.Cap() <= keptBytes {
			out.Reset()
			writeBuffers.Put(out)
		}
	}()
	idle, last := c.collect(out)
	if !c.write(out.Bytes()) {
		return
	}
	c.mu.Lock()
	c.said = c.said || last
	over, deaf := c.said && c.answered, last && c.broken
	switch {
	case over || c.ended:
	case !idle || c.again:
		c.again = false
		c.server.writers.add(c.writeTurn)
	default:
		c.writing = false
	}
	c.mu.Unlock()
	if half, ok := c.raw.(interface{ CloseWrite() error }); ok && deaf {
		_ = half.CloseWrite() // its answer would not be understood; its end will be
	}
	if over {
		c.end(broker.Farewell{})
		_ = c.raw.Close()
	}
}

// collect puts frames into out. idle says that there is no more; last, that the
// close frame is among them.
func (c *conn) collect(out *bytes.Buffer) (idle, last bool) {
	c.mu.Lock()
	pong, session, said := c.pong, c.session, c.said
	ping := c.alive != nil && !c.pinged
	c.pong, c.pinged = nil, c.pinged || ping
	c.mu.Unlock()
	if said {
		return true, false // nothing follows a close frame
	}
	if pong != nil {
		putFrame(out, ws.OpPong, pong)
	}
	if ping {
		putFrame(out, ws.OpPing, []byte(ousted))
	}
	for session != nil && out.Len() < turnBytes {
		m, ok := session.Next()
		if !ok {
			session = nil
			break
		}
		text, err := c.version.Append(nil, m)
		if err != nil { // the broker checks what it takes
			c.server.cfg.Log.Error("message cannot be written, it is left out", "message_type", m.Type, "message_id", m.ID, "err", err)
			continue
		}
		putFrame(out, c.opCode(), text)
	}
	if session != nil {
		return false, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.word != nil {
		putFrame(out, ws.OpClose, closeBody(*c.word))
	}
	return true, c.word != nil
}

func (c *conn) opCode() ws.OpCode {
	if c.version.Binary() {
		return ws.OpBinary
	}
	return ws.OpText
}

func putFrame(out *bytes.Buffer, op ws.OpCode, payload []byte) {
	_ = ws.WriteHeader(out, ws.Header{Fin: true, OpCode: op, Length: int64(len(payload))}) // a buffer takes everything
	out.Write(payload)
}

// closeBody is what a close frame holds. Codes that must not be sent are left out.
func closeBody(f broker.Farewell) []byte {
	if !mayBeSent(f.Code) {
		return nil
	}
	return ws.NewCloseFrameBody(ws.StatusCode(f.Code), f.Reason[:min(len(f.Reason), broker.MaxReasonBytes)]) //nolint:gosec // four digits
}

// mayBeSent tells which codes a close frame can have: those registered for RFC 6455, and those
// that are left to applications.
func mayBeSent(code int) bool {
	return code >= 1000 && code <= 1014 && (code < 1004 || code > 1006) || code >= 3000 && code < 5000
}

// write writes all of it, or ends the connection.
func (c *conn) write(p []byte) bool {
	for len(p) > 0 {
		piece := p[:min(len(p), pieceBytes)]
		err := c.raw.SetWriteDeadline(time.Now().Add(c.server.cfg.WriteTimeout))
		if err == nil {
			_, err = c.raw.Write(piece)
		}
		if err != nil {
			c.drop()
			return false
		}
		p = p[len(piece):]
	}
	return c.raw.SetWriteDeadline(time.Time{}) == nil // crypto/tls may have to write by itself
}
