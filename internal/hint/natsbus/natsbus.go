package natsbus

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/hint/bus"
)

// The times of a connection. A write that a silent NATS does not take in time breaks the connection; a ping that it does not answer, too.
const (
	dialMay    = 2 * time.Second
	writeMay   = 2 * time.Second
	pingEvery  = 2 * time.Second
	pingsMay   = 2
	againAfter = 250 * time.Millisecond
)

// outgoing is how many messages may wait to be written.
const outgoing = 4096

// Bus is a connection with NATS.
type Bus struct {
	config  Config
	log     *slog.Logger
	conn    *nats.Conn
	ctx     context.Context //nolint:containedctx // of what is taken, which begins in no call of anybody
	end     context.CancelFunc
	out     chan *nats.Msg
	last    chan struct{}  // closed when nothing more comes into out
	running sync.WaitGroup // write
	taking  sync.WaitGroup // each message that is being taken

	sent, received, lost, refused, gaps atomic.Int64

	mu            sync.Mutex
	subscriptions map[*subscription]bool
	state         bus.State
	closed        bool
	said          string // the problem that was logged last
}

// subscription is what brings messages to a subscriber.
type subscription struct {
	bus.Subscriber
	of       *nats.Subscription
	dropped  int // of all that came, as far as was looked at
	lostOnce sync.Once
}

// Open makes a connection, or goes on trying. Invalid: a file that the settings name cannot be used.
func Open(config Config, log *slog.Logger) (*Bus, error) {
	options, err := config.options()
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	b := &Bus{
		config: config, log: log, ctx: ctx, end: end, out: make(chan *nats.Msg, outgoing), last: make(chan struct{}), subscriptions: map[*subscription]bool{},
		state: bus.State{Kind: bus.NATS, Since: time.Now(), Problem: "it was not reached since this server's start"},
	}
	options = append(options,
		nats.Name(config.Name), nats.CustomInboxPrefix(config.Prefix+".inbox"), nats.NoEcho(),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(againAfter), nats.ReconnectJitter(againAfter, againAfter),
		nats.Timeout(dialMay), nats.FlusherTimeout(writeMay), nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(pingsMay),
		nats.ConnectHandler(b.up), nats.ReconnectHandler(b.up),
		nats.DisconnectErrHandler(b.down), nats.ReconnectErrHandler(b.down), nats.ErrorHandler(b.trouble),
	)
	if b.conn, err = nats.Connect(config.URL, options...); err != nil {
		end()
		return nil, fault.Wrap(fault.Invalid, err, "NATS cannot be used (%v)", err)
	}
	if b.conn.IsConnected() {
		b.up(b.conn)
	} else {
		b.down(b.conn, b.conn.LastError())
	}
	b.running.Go(b.write)
	return b, nil
}

// up notes that there is a connection. What was published before that has not come here.
func (b *Bus) up(conn *nats.Conn) {
	b.mu.Lock()
	if b.state.Up || b.closed {
		b.mu.Unlock()
		return
	}
	was := b.state.Problem
	b.state.Up, b.state.Since, b.state.Problem, b.state.Place, b.said = true, time.Now(), "", conn.ConnectedAddr(), ""
	place, told := b.state.Place, slices.Collect(maps.Keys(b.subscriptions))
	b.mu.Unlock()
	b.log.Info("connected with NATS", "place", place, "before", was)
	if most := conn.MaxPayload(); most < bus.MaxBytes {
		b.log.Warn("NATS takes smaller messages than servers send: larger orders do not reach nodes of other servers; set max_payload there", "max_payload",
			most, "want", bus.MaxBytes)
	}
	for _, s := range told {
		b.tellGap(s)
	}
}

// down notes that there is none, and why.
func (b *Bus) down(_ *nats.Conn, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	problem := "the connection ended"
	if err != nil {
		problem = err.Error()
	}
	if b.state.Up {
		b.state.Up, b.state.Since = false, time.Now()
	}
	b.state.Problem = problem
	if b.said == "" { // one line for an outage: it may last
		b.log.Warn("no connection with NATS, will go on trying; servers hear of each other later, by the database", "url", b.config.URL, "err", problem)
		b.said = problem
	}
}

// trouble is told of what NATS refuses, and of slow subscribers.
func (b *Bus) trouble(_ *nats.Conn, of *nats.Subscription, err error) {
	if errors.Is(err, nats.ErrSlowConsumer) {
		return // take sees it
	}
	subject := ""
	if of != nil {
		subject = of.Subject
	}
	b.log.Warn("NATS refuses something; a server needs to publish and subscribe below its prefix", "prefix", b.config.Prefix, "subject", subject, "err", err)
}

func (b *Bus) tellGap(s *subscription) {
	b.gaps.Add(1)
	if s.Gap != nil {
		s.Gap()
	}
}

func (b *Bus) isUp() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.Up && !b.closed
}

func errAway() error { return fault.New(fault.Unavailable, "NATS cannot be reached") }

// Publish implements bus.Bus.
func (b *Bus) Publish(subject string, data []byte) error {
	if err := bus.CheckSize(subject, data); err != nil {
		return err
	}
	if b.isUp() {
		select {
		case b.out <- &nats.Msg{Subject: subject, Data: slices.Clone(data)}:
			return nil
		default: // NATS takes nothing for now
		}
	}
	b.refused.Add(1)
	return errAway()
}

// write writes what was published: a connection may be silent for a while, and who publishes must not wait.
func (b *Bus) write() {
	for {
		select {
		case m := <-b.out:
			b.writeOne(m)
		case <-b.last:
			b.writeRest()
			return
		}
	}
}

// writeRest writes what waits. A silent connection breaks at the first write, so that it takes no longer than that.
func (b *Bus) writeRest() {
	for {
		select {
		case m := <-b.out:
			b.writeOne(m)
		default:
			return
		}
	}
}

func (b *Bus) writeOne(m *nats.Msg) {
	if err := b.conn.PublishMsg(m); err != nil {
		b.refused.Add(1)
	} else {
		b.sent.Add(1)
	}
}

// The headers of an answer that is an error; its data is the sentence.
const (
	kindHeader = "Tutti-Fault"
	hintHeader = "Tutti-Hint"
)

// Request implements bus.Bus.
func (b *Bus) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	if err := bus.CheckSize(subject, data); err != nil {
		return nil, err
	}
	if !b.isUp() {
		b.refused.Add(1)
		return nil, errAway()
	}
	type answer struct {
		msg *nats.Msg
		err error
	}
	answered := make(chan answer, 1)
	m := &nats.Msg{Subject: subject, Data: slices.Clone(data)}
	either, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.ctx, cancel)() //nolint:contextcheck // it ends with the bus, or with ctx
	go func() {                              // it may be held up by a write
		got, err := b.conn.RequestMsgWithContext(either, m)
		answered <- answer{got, err}
	}()
	select {
	case a := <-answered:
		if a.err != nil {
			return nil, b.explain(ctx, subject, a.err)
		}
		b.sent.Add(1)
		if kind, text := a.msg.Header.Get(kindHeader), string(a.msg.Data); kind != "" {
			return nil, &fault.Error{Kind: fault.ParseKind(kind), Detail: text, Hint: a.msg.Header.Get(hintHeader)}
		}
		return a.msg.Data, nil
	case <-either.Done():
		return nil, b.explain(ctx, subject, context.Cause(either))
	}
}

// explain is what became of a request that has no answer.
func (b *Bus) explain(ctx context.Context, subject string, err error) error {
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return bus.Nobody(subject)
	case ctx.Err() != nil:
		return bus.Silent(ctx, subject)
	case errors.Is(err, nats.ErrMaxPayload):
		return fault.Wrap(fault.Invalid, err, "a message to %s is larger than NATS takes (max_payload)", subject)
	}
	b.refused.Add(1)
	return fault.Wrap(fault.Unavailable, err, "NATS cannot be reached")
}

// Subscribe implements bus.Bus.
func (b *Bus) Subscribe(s bus.Subscriber) (stop func(), err error) {
	one := &subscription{Subscriber: s}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil, errAway()
	}
	b.subscriptions[one] = true
	b.mu.Unlock()
	one.of, err = b.conn.QueueSubscribe(s.Subject, s.Group, func(m *nats.Msg) { b.take(one, m) })
	if err == nil {
		err = one.of.SetPendingLimits(bus.WaitingMessages, bus.WaitingBytes)
	}
	if err != nil {
		b.mu.Lock()
		delete(b.subscriptions, one)
		b.mu.Unlock()
		return nil, fault.Wrap(fault.Invalid, err, "NATS does not know the subject %s", s.Subject)
	}
	if b.isUp() { // what is published from now on comes here; without NATS it is known there when NATS is back
		_ = b.conn.FlushTimeout(writeMay)
	}
	return sync.OnceFunc(func() {
		b.mu.Lock()
		delete(b.subscriptions, one)
		b.mu.Unlock()
		_ = one.of.Unsubscribe() // a connection that is away forgets it, too
	}), nil
}

// take brings a message to its subscriber.
func (b *Bus) take(s *subscription, m *nats.Msg) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return
	}
	b.taking.Add(1)
	b.mu.Unlock()
	defer b.taking.Done()
	b.received.Add(1)
	data, err := s.Take(b.ctx, m.Subject, m.Data)
	if m.Reply != "" {
		b.answer(m.Reply, data, err)
	}
	// Messages are dropped while others wait, so that the one behind a gap, or the last one before it, sees it here.
	if dropped, err := m.Sub.Dropped(); err == nil && dropped > s.dropped {
		b.lost.Add(int64(dropped - s.dropped))
		s.dropped = dropped
		s.lostOnce.Do(func() {
			b.log.Warn("a subscriber of NATS was too slow and lost messages; what it was not told it finds in the database", "subject", s.Subject, "lost", dropped)
		})
		b.tellGap(s)
	}
}

// answer sends the answer of a request, or the error of it.
func (b *Bus) answer(to string, data []byte, err error) {
	m := &nats.Msg{Subject: to, Data: data}
	if err == nil {
		err = bus.CheckSize(to, data)
	}
	if err != nil {
		told := bus.Told(err)
		m.Header = nats.Header{kindHeader: {told.Kind.String()}, hintHeader: {told.Hint}}
		m.Data = []byte(told.Detail)
	}
	select {
	case b.out <- m:
	default:
		b.refused.Add(1)
	}
}

// State implements bus.Bus.
func (b *Bus) State() bus.State {
	b.mu.Lock()
	s := b.state
	b.mu.Unlock()
	s.Sent, s.Received, s.Lost, s.Refused, s.Gaps = b.sent.Load(), b.received.Load(), b.lost.Load(), b.refused.Load(), b.gaps.Load()
	return s
}

// Close implements bus.Bus.
func (b *Bus) Close() error {
	b.mu.Lock()
	was := b.closed
	b.closed, b.state.Up, b.state.Problem = true, false, "it was closed"
	b.mu.Unlock()
	if was {
		return nil
	}
	b.end()
	b.taking.Wait()
	close(b.last)
	b.running.Wait()
	b.conn.Close()
	return nil
}
