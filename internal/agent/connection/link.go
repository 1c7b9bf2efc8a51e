package connection

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gobwas/ws"
	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire"
)

// Link keeps a connection while Run runs.
type Link struct {
	cfg     Config
	servers []server
	readers sync.WaitGroup

	addresses *addresses // of the goroutine of Run

	receiving chan struct{} // full while Receive is at work: two connections read while a link moves

	mu      sync.Mutex
	current *conn // nil: not connected
	state   State
	largest map[int]int64 // what a server said is its largest message, by its place
}

// State is how a Link stands.
type State struct {
	Connected bool
	Server    string    // HOST:PORT that is connected, or was tried last
	Since     time.Time // of the connection, or of its loss; zero: never connected
	Attempts  int       // that failed, since the last connection
	Problem   string    // why the last attempt or connection ended; empty: none did
	Lost      int       // connections, since the start
}

var errNotConnected = fault.New(fault.Unavailable, "not connected to a server")

// New returns a Link that Run connects.
func New(cfg Config) (*Link, error) {
	cfg = cfg.withDefaults()
	servers, err := cfg.servers()
	if err != nil {
		return nil, err
	}
	return &Link{
		cfg: cfg, servers: servers, receiving: make(chan struct{}, 1), largest: map[int]int64{},
		addresses: &addresses{resolve: cfg.Resolve, dial: cfg.Dial, jitter: cfg.Jitter, last: map[string]string{}},
	}, nil
}

// State may be called at any time.
func (l *Link) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// Run connects, and connects again, until ctx is done. Then it says farewell.
func (l *Link) Run(ctx context.Context) error {
	defer l.readers.Wait()
	course := &course{servers: len(l.servers), first: l.cfg.FirstPause, longest: l.cfg.LongestPause, away: l.cfg.AwayPause}
	for {
		if bound := course.pause(); bound > 0 {
			wait(ctx, l.cfg.Jitter(bound))
		}
		if ctx.Err() != nil {
			return nil
		}
		c, err := l.connect(ctx, course.at)
		switch {
		case err == nil: // also if ctx is done by now: staying ends with the farewell
			c = l.stay(ctx, c)
			course.at = c.at
			course.lost(time.Since(c.since) >= l.cfg.Steady, hopeless(c.err))
		case ctx.Err() == nil:
			l.failed(course.at, err)
			course.failed(hopeless(err), absent(err))
		}
	}
}

// Try connects once to the first server, and leaves it again. It is not for a Link that runs.
func (l *Link) Try(ctx context.Context) error {
	defer l.readers.Wait()
	c, err := l.connect(ctx, 0)
	if err != nil {
		return err
	}
	c.leave(ws.StatusNormalClosure, "")
	return nil
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// connect opens a connection to a server, and returns when it is associated.
func (l *Link) connect(ctx context.Context, at int) (*conn, error) {
	dialing, cancel := context.WithTimeout(ctx, l.cfg.ConnectTimeout)
	defer cancel()
	raw, in, err := l.dial(dialing, l.servers[at])
	if err != nil {
		return nil, l.cfg.Explain(ctx, l.servers[at].address, err)
	}
	c := &conn{
		link: l, at: at, raw: raw, in: in, request: uuid.NewString(),
		associated: make(chan struct{}), ended: make(chan struct{}), turn: make(chan struct{}, 1),
	}
	c.pass()
	l.readers.Go(c.read)
	if err := l.associate(dialing, c); err != nil {
		c.drop()
		<-c.ended
		return nil, err
	}
	if ctx.Err() == nil {
		l.cfg.Log.InfoContext(ctx, "connected", "server", l.servers[at].address, "uri", l.cfg.URI)
		l.cfg.Connected()
	}
	return c, nil
}

// associate asks, and waits for the answer.
func (l *Link) associate(ctx context.Context, c *conn) error {
	request, err := l.frame(wire.Message{ID: c.request, Type: wire.AssociateRequest, Sender: l.cfg.URI, Target: wire.Broker}, l.cfg.MaxMessageBytes)
	if err != nil {
		return err
	}
	if err := c.write(request); err != nil {
		select {
		case <-c.ended: // it knows better why
			return c.err
		default:
			return err
		}
	}
	select {
	case <-c.associated:
		return nil
	case <-c.ended:
		select {
		case <-c.associated: // it was a connection, though a short one
			return nil
		default:
			return c.err
		}
	case <-ctx.Done():
		return fmt.Errorf("the server did not answer the association within %s", fault.Duration(l.cfg.ConnectTimeout))
	}
}

// stay keeps a connection until it ends, or ctx is done. It returns the last one: away from
// the first server it may move there.
func (l *Link) stay(ctx context.Context, c *conn) *conn {
	pulse := time.NewTimer(l.cfg.Jitter(l.cfg.PingInterval)) // those who came together do not ping together
	defer pulse.Stop()
	home := time.NewTimer(l.untilReturn())
	defer home.Stop()
	var asked time.Time // when a ping went out that has not been looked after
	for {
		select {
		case <-ctx.Done():
			c.leave(ws.StatusGoingAway, "")
			return c
		case <-c.ended:
			return c
		case <-pulse.C:
			if !asked.IsZero() && c.silentSince(asked) {
				c.quiet.Store(true)
				c.drop()
				<-c.ended
				return c
			}
			asked = l.beat(c, asked, pulse)
		case <-home.C:
			home.Reset(l.untilReturn())
			if c.at == 0 {
				continue
			}
			first, err := l.connect(ctx, 0)
			if err != nil {
				l.cfg.Log.DebugContext(ctx, "the first server is not back", "server", l.servers[0].address, "why", err)
				continue
			}
			l.cfg.Log.InfoContext(ctx, "moved back to the first server", "server", l.servers[0].address, "from", l.servers[c.at].address)
			c.leave(ws.StatusNormalClosure, "")
			c, asked = first, time.Time{}
		}
	}
}

// beat sends a ping, or takes note that the last one was answered; it sets when to look again.
func (l *Link) beat(c *conn, asked time.Time, pulse *time.Timer) time.Time {
	if !asked.IsZero() {
		pulse.Reset(max(l.cfg.PingInterval-l.cfg.PongTimeout, time.Millisecond))
		return time.Time{}
	}
	asked = time.Now()
	pulse.Reset(l.cfg.PongTimeout)
	_ = c.write(controlFrame(ws.OpPing, nil)) // if it cannot be written, the connection ends
	return asked
}

func (l *Link) untilReturn() time.Duration {
	return l.cfg.ReturnAfter/2 + l.cfg.Jitter(l.cfg.ReturnAfter)
}

// Send writes a message to the connection. It waits until the system has taken it, at most as long as
// the connection may stand still. An empty sender is this client, an empty ID a new one.
func (l *Link) Send(m wire.Message) error {
	if m.ID == "" {
		m.ID = uuid.NewString()
	}
	if m.Sender == "" {
		m.Sender = l.cfg.URI
	}
	l.mu.Lock()
	c, limit := l.current, l.cfg.MaxMessageBytes
	if c != nil && l.largest[c.at] > 0 {
		limit = min(limit, l.largest[c.at])
	}
	l.mu.Unlock()
	if c == nil {
		return errNotConnected
	}
	frame, err := l.frame(m, limit)
	if err != nil {
		return err
	}
	return c.write(frame)
}

func (l *Link) frame(m wire.Message, limit int64) ([]byte, error) {
	op := ws.OpText
	if l.cfg.Version.Binary() {
		op = ws.OpBinary
	}
	return frameOf(op, limit, func(dst []byte) ([]byte, error) { return l.cfg.Version.Append(dst, m) })
}

// receive hands a message over, one at a time.
func (l *Link) receive(m wire.Message) {
	l.receiving <- struct{}{}
	defer func() { <-l.receiving }()
	l.cfg.Receive(m)
}

// adopt makes a connection that is associated the one that is written to.
func (l *Link) adopt(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current = c
	l.state.Connected, l.state.Server, l.state.Since, l.state.Attempts = true, l.servers[c.at].address, c.since, 0
}

// ended is told by its reader that a connection is over.
func (l *Link) ended(c *conn) {
	l.mu.Lock()
	f, said := errors.AsType[farewell](c.err)
	if said && f.largest() > 0 {
		l.largest[c.at] = f.largest()
	}
	lost := l.current == c
	if lost {
		l.current = nil
		l.state.Connected, l.state.Since, l.state.Problem = false, time.Now(), c.err.Error()
		l.state.Lost++
	}
	l.mu.Unlock()
	if lost && !c.left.Load() {
		l.cfg.Log.Warn("connection ended", "server", l.servers[c.at].address, "lasted", time.Since(c.since).Round(time.Millisecond), "why", c.err)
	}
}

// failed takes note of an attempt.
func (l *Link) failed(at int, err error) {
	l.mu.Lock()
	l.state.Attempts++
	l.state.Server, l.state.Problem = l.servers[at].address, err.Error()
	attempts := l.state.Attempts
	l.mu.Unlock()
	l.cfg.Log.Warn("cannot connect, will try again", "server", l.servers[at].address, "attempts", attempts, "why", err)
}
