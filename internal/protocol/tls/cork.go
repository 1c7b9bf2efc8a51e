package tls

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// net/http writes an answer through a buffer of 4 KB. One of 10 KB becomes two
// TLS records and two calls of the kernel, each of which also wakes the client.
// A cork keeps the records of one answer until it is complete.

const (
	// corkBytes is the most that a cork holds back; more goes out as it comes.
	corkBytes = 80 << 10
	// maxWhole is the largest body that fits with its head and what TLS adds.
	maxWhole = corkBytes - 8<<10
)

// corkTime is how long a client may take to accept an answer.
const corkTime = 2 * time.Minute

var corkBuffers = sync.Pool{New: func() any { return new([corkBytes]byte) }}

type connKey struct{}

// withConn lets WriteWhole find the connection of a request.
func withConn(ctx context.Context, raw net.Conn) context.Context {
	if t, ok := raw.(*tls.Conn); ok {
		if c, ok := t.NetConn().(*conn); ok {
			return context.WithValue(ctx, connKey{}, c)
		}
	}
	return ctx
}

// WriteWhole writes a body that is the whole of an answer, whose header is set
// and announces its length. Head and body leave together. A client that does not
// accept them in time loses its connection.
func WriteWhole(w http.ResponseWriter, r *http.Request, body []byte) (int, error) {
	c, ok := r.Context().Value(connKey{}).(*conn)
	if !ok || r.ProtoMajor != 1 || len(body) > maxWhole { // HTTP/2 has other answers on the connection
		return w.Write(body)
	}
	c.cork()
	n, err := w.Write(body)
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	if out := c.uncork(); out != nil {
		_ = c.Close() // half an answer must not wait for the rest
		return n, out
	}
	return n, err
}

// corked is what a conn holds back.
type corked struct {
	mu   sync.Mutex // held while bytes go out, so that they stay in order
	held *[corkBytes]byte
	n    int
	err  error // a write that failed half-way: nothing may follow it
}

// cork starts to hold back what is written.
func (c *conn) cork() {
	_ = c.SetWriteDeadline(time.Now().Add(corkTime)) // net/http takes it back after the answer
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if c.out.held == nil {
		c.out.held = corkBuffers.Get().(*[corkBytes]byte)
	}
}

// uncork lets out what was held back, and everything that follows.
func (c *conn) uncork() error {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if c.out.held == nil {
		return c.out.err
	}
	err := c.letOut()
	corkBuffers.Put(c.out.held)
	c.out.held = nil
	return err
}

// letOut writes what is held. The caller holds out.mu.
func (c *conn) letOut() error {
	if c.out.err == nil && c.out.n > 0 {
		_, c.out.err = c.Conn.Write(c.out.held[:c.out.n])
	}
	c.out.n = 0
	return c.out.err
}

// Write holds bytes back while the conn is corked.
func (c *conn) Write(p []byte) (int, error) {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if c.out.err != nil {
		return 0, c.out.err
	}
	if c.out.held == nil {
		return c.Conn.Write(p)
	}
	if len(p) > corkBytes-c.out.n {
		if err := c.letOut(); err != nil {
			return 0, err
		}
	}
	if len(p) > corkBytes {
		return c.Conn.Write(p)
	}
	c.out.n += copy(c.out.held[c.out.n:], p)
	return len(p), nil
}
