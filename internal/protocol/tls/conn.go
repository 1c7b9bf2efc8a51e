package tls

import (
	"crypto/tls"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// conn is the TCP connection below a tls.Conn. Until the hands are shaken it
// holds a turn whenever TLS computes, and none while it waits for bytes.
type conn struct {
	net.Conn
	front  *Front
	above  *tls.Conn
	serial string // these four are guarded by front.mu
	before *conn  // of the same serial
	after  *conn
	left   bool

	proxied *proxied        // nil: nobody passes it on
	place   place           // how it is counted
	records records         // of what is read; by the one goroutine that reads
	raw     syscall.RawConn // set while reads do not wait; see park.go

	closed chan struct{} // so that waiting for a turn ends when the connection does
	out    corked

	mu      sync.Mutex
	timer   *time.Timer // of the handshake; nil after it
	until   time.Time   // when it fires
	begun   bool        // it has had a turn
	shaking bool
	holding bool
	over    bool
	hook    func() // see OnClose
}

func newConn(f *Front, raw net.Conn, p *proxied) *conn {
	c := &conn{Conn: raw, front: f, proxied: p, shaking: true, closed: make(chan struct{})}
	c.above = tls.Server(c, f.base)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Now().Add(f.cfg.HandshakeTimeout)
	c.timer = time.AfterFunc(f.cfg.HandshakeTimeout, func() { _ = c.end(false) }) // it took too long
	return c
}

// Read gives the turn back, waits for bytes, and takes a turn to work on them.
func (c *conn) Read(p []byte) (int, error) {
	shaking := c.pause()
	if shaking && c.proxied != nil {
		if err := c.introduce(); err != nil {
			return 0, err
		}
	}
	n, err := c.receive(p[:min(len(p), c.records.most())])
	if shaking && c.records == (records{}) && saysProxy(p[:n]) {
		c.front.tellRefused(c.Conn.RemoteAddr(), errProxyUnasked.Error())
		return 0, errProxyUnasked
	}
	c.records.saw(p[:n])
	if err != nil || !shaking {
		return n, err
	}
	return n, c.resume()
}

// pause tells whether the handshake goes on, and gives back the turn.
func (c *conn) pause() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.giveBack()
	return c.shaking
}

func (c *conn) giveBack() {
	if c.holding {
		c.holding = false
		c.front.turns.giveBack()
	}
}

// resume takes a turn. To wait for it is no fault of the client: it does not count.
func (c *conn) resume() error {
	c.mu.Lock()
	begun, began := c.begun, time.Now()
	if c.timer != nil {
		c.timer.Stop()
	}
	c.mu.Unlock()
	if err := c.front.turns.take(begun, c.closed); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun, c.holding = true, true
	if !c.shaking || c.over { // closed meanwhile: nobody would give it back
		c.giveBack()
	}
	if c.timer != nil {
		c.until = c.until.Add(time.Since(began))
		c.timer.Reset(time.Until(c.until))
	}
	return nil
}

// shaken ends what holds for handshakes only.
func (c *conn) shaken() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shaking = false
	c.stopTimer()
	c.giveBack()
}

// stopTimer is called with mu held.
func (c *conn) stopTimer() {
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
}

// Close may be called often; the first time counts. A client whose handshake was
// refused is given a moment to read why.
func (c *conn) Close() error { return c.end(true) }

func (c *conn) end(mayLinger bool) error {
	c.mu.Lock()
	first, refused, hook := !c.over, c.shaking, c.hook
	c.over = true
	c.stopTimer()
	c.giveBack()
	c.mu.Unlock()
	if !first {
		return c.Conn.Close()
	}
	close(c.closed)
	if refused && mayLinger && !c.front.ended() {
		c.linger()
	}
	err := c.Conn.Close()
	c.front.gone(c)
	if hook != nil {
		hook()
	}
	return err
}

// The bounds of a farewell.
const (
	lingerTime  = time.Second
	lingerBytes = 64 << 10
)

// linger ends our half and reads what the client has sent meanwhile: its request
// is often on its way before it knows that it is refused. Closing a socket with
// unread bytes resets it, and throws away the alert that says why.
func (c *conn) linger() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
}

func (c *conn) serialText() string {
	c.front.mu.Lock()
	defer c.front.mu.Unlock()
	return c.serial
}
