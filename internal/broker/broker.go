package broker

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire"
)

// Conn is what a session needs of its connection. All methods return at
// once, and may be called at any time, also after the connection has ended.
type Conn interface {
	// Wake tells that Session.Next has something to write. It is called again
	// only after Next has said that there is nothing.
	Wake()
	// Close writes what Next still gives, says farewell, and ends the connection.
	Close(f Farewell)
	// Oust ends the connection without a farewell. Whether the client is still there is asked first: alive is called if it is, once.
	// With nil nobody is asked, and it ends at once.
	Oust(alive func())
}

// Handler takes a message that was sent to the broker itself. It is called in the
// order in which its sender sent, and holds up only that sender. What it returns is told to the
// sender, by its Detail.
type Handler func(ctx context.Context, from Presence, m wire.Message) error

// Config is what a Broker needs. Zero limits mean the defaults.
type Config struct {
	Handlers map[string]Handler // by message type
	Rules    []Rule             // nil: DefaultRules
	// Controller tells who may give orders, besides administrators.
	Controller func(fleet.Certname) bool
	// MaxConnections may be open at once; 0: any number.
	MaxConnections int
	// NodeConnections may be open at once with one certificate that is no controller's, of different types; 0: any number.
	// A later one of the same type takes the place of the earlier one in any case.
	NodeConnections int
	// QueueBytes may wait for one client; 16 MiB.
	QueueBytes int64
	// AllQueuesBytes may wait for all of them; 256 MiB.
	AllQueuesBytes int64
	// Joined is told of every session when it is in the inventory. It must not
	// block. Nil: nobody wants to know.
	Joined func(Presence)
	// Left is told of every session that ended and that no later one has replaced, and why. It must not block. Nil: nobody wants to know.
	Left func(Presence, Farewell)
	// Others is the brokers of other servers; nil: this one is alone.
	Others *Others
	// AccessLog tells whether every message is logged.
	AccessLog func() bool
	Log       *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Rules == nil {
		c.Rules = DefaultRules()
	}
	if c.Controller == nil {
		c.Controller = func(fleet.Certname) bool { return false }
	}
	if c.Joined == nil {
		c.Joined = func(Presence) {}
	}
	if c.Left == nil {
		c.Left = func(Presence, Farewell) {}
	}
	c.Others = c.Others.withDefaults()
	if c.AccessLog == nil {
		c.AccessLog = func() bool { return true }
	}
	if c.QueueBytes <= 0 {
		c.QueueBytes = 16 << 20
	}
	if c.AllQueuesBytes <= 0 {
		c.AllQueuesBytes = 256 << 20
	}
	return c
}

// Broker knows every session.
type Broker struct {
	cfg    Config
	queues budget
	stats  counters

	publishing sync.Mutex // held while a subscriber is told something, so that it hears it in order

	mu          sync.Mutex
	sessions    map[wire.URI]*Session
	names       map[fleet.Certname]int // sessions of each certificate
	subscribers map[wire.URI]*subscription
	stopped     bool
	far         elsewhere  // clients of other brokers
	settling    []*Session // that came or left, and the records do not have it yet
	tidyAt      int        // as many of them are looked through

	settle chan struct{}          // there are some
	missed atomic.Bool            // what other brokers told may have been lost
	alive  map[string]bool        // servers that were there at the last look; mu is held
	vain   map[wire.URI]time.Time // senders that the records did not have, and when they were looked up; mu is held
}

// Stats is what a Broker has done since it was made.
type Stats struct {
	Connected   int // now
	QueuedBytes int64
	Received    int64
	Delivered   int64 // queued for a client
	Refused     int64 // answered with an error
	Superseded  int64
	CutOff      int64 // too slow
}

type counters struct{ received, delivered, refused, superseded, cutOff atomic.Int64 }

// New returns a Broker without sessions.
func New(cfg Config) (*Broker, error) {
	if cfg.Log == nil {
		return nil, fault.New(fault.Invalid, "a broker needs a log")
	}
	cfg = cfg.withDefaults()
	return &Broker{
		cfg: cfg, queues: budget{limit: cfg.AllQueuesBytes},
		sessions: map[wire.URI]*Session{}, names: map[fleet.Certname]int{}, subscribers: map[wire.URI]*subscription{},
		far: newElsewhere(), settle: make(chan struct{}, 1), vain: map[wire.URI]time.Time{},
	}, nil
}

// Stats may be called at any time.
func (b *Broker) Stats() Stats {
	b.mu.Lock()
	connected := len(b.sessions)
	b.mu.Unlock()
	return Stats{
		Connected: connected, QueuedBytes: b.queues.used.Load(),
		Received: b.stats.received.Load(), Delivered: b.stats.delivered.Load(), Refused: b.stats.refused.Load(),
		Superseded: b.stats.superseded.Load(), CutOff: b.stats.cutOff.Load(),
	}
}

// Join makes a session for a connection. URI, Certname, Version, Agent and
// Remote of who are set; admin is said by the certificate. The error is a Farewell.
func (b *Broker) Join(who Presence, admin bool, conn Conn) (*Session, error) {
	who.Since, who.Party = time.Now(), Node
	if admin || b.cfg.Controller(who.Certname) {
		who.Party = Controller
	}
	s := &Session{broker: b, who: who, conn: conn, seated: make(chan struct{}), out: outbox{limit: b.cfg.QueueBytes, all: &b.queues}}
	old, ask, err := b.enter(s)
	if err != nil {
		b.cfg.Log.Warn("connection refused", "uri", who.URI, "remote", who.Remote, "err", err)
		return nil, err
	}
	if old != nil {
		b.stats.superseded.Add(1)
		b.cfg.Log.Info("node connected again, the earlier connection is dropped", "uri", who.URI, "earlier", old.who.Remote, "remote", who.Remote)
		old.oust(supersededWord, ask)
	}
	b.cfg.Log.Info("node connected", "uri", who.URI, "remote", who.Remote, "pcp", int(who.Version), "agent", who.Agent)
	b.cfg.Joined(s.who)
	return s, nil
}

// enter puts a session into the place of an earlier one, and says whether that one's client is asked if it is still there.
func (b *Broker) enter(s *Session) (old *Session, ask bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old = b.sessions[s.who.URI]
	switch {
	case b.stopped:
		return nil, false, NotRunning
	case old == nil && b.cfg.MaxConnections > 0 && len(b.sessions) >= b.cfg.MaxConnections:
		return nil, false, LimitExceeded
	case old == nil && s.who.Party == Node && !s.examines() && b.cfg.NodeConnections > 0 && b.names[s.who.Certname] >= b.cfg.NodeConnections:
		return nil, false, OneEach
	}
	if old != nil {
		b.remove(old)
		s.who.Superseded, s.rivals, s.asked = s.who.Since, old.rivals, old.asked
		if ask = s.who.Since.Sub(s.asked) >= answerTime; ask {
			s.asked = s.who.Since
		}
	}
	if far, there := b.far.seats[s.who.URI]; there { // the other server hears of it when the records have it
		b.far.drop(s.who.URI)
		b.note(s.who.URI, -1)
		s.who.Superseded, s.rivals = s.who.Since, far.Rivals
	}
	b.sessions[s.who.URI] = s
	b.unsettled(s)
	if !s.examines() {
		b.names[s.who.Certname]++
	}
	b.note(s.who.URI, 1)
	return old, ask, nil
}

// leave takes a session out, if it still is the one that is known.
func (b *Broker) leave(s *Session) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sessions[s.who.URI] != s {
		return false
	}
	b.remove(s)
	return true
}

// remove ends what a session has here. The caller holds b.mu.
func (b *Broker) remove(s *Session) {
	delete(b.sessions, s.who.URI)
	delete(b.subscribers, s.who.URI)
	b.unsettled(s)
	if !s.examines() {
		if b.names[s.who.Certname]--; b.names[s.who.Certname] <= 0 {
			delete(b.names, s.who.Certname)
		}
	}
	b.note(s.who.URI, -1)
}

// examines says that this is a look at whether a connection is to be had (tutti agent doctor): it counts as none.
func (s *Session) examines() bool { return s.who.URI.Type() == wire.ExaminerType }

// Send queues a message of the server for its target. An empty sender is the
// broker; an empty ID becomes a new one. ctx bounds the way to another server.
func (b *Broker) Send(ctx context.Context, m wire.Message) error {
	if m.ID == "" {
		m.ID = uuid.NewString()
	}
	if m.Sender == "" {
		m.Sender = wire.Broker
	}
	if err := m.Check(); err != nil {
		return err
	}
	return b.deliver(ctx, m)
}

// deliver queues a message for its target, here or on the server that it is connected to.
func (b *Broker) deliver(ctx context.Context, m wire.Message) error {
	b.mu.Lock()
	to, from := b.sessions[m.Target], b.sessions[m.Sender]
	far, elsewhere := b.far.seats[m.Target]
	b.mu.Unlock()
	switch {
	case to != nil:
		return to.push(m)
	case elsewhere:
		if from != nil {
			from.awaitSeat(ctx)
		}
		err := b.cfg.Others.Pass(ctx, far.Server, m)
		if fault.Is(err, fault.NotFound) { // what is known here is old
			if now := b.find(ctx, m.Target); now != "" && now != far.Server {
				err = b.cfg.Others.Pass(ctx, now, m)
			}
		}
		return err
	}
	return errNotConnected()
}

func errNotConnected() error { return fault.New(fault.NotFound, textNotConnected) }

// Stop refuses newcomers and says farewell to everybody. Sessions end when
// their connections do.
func (b *Broker) Stop() {
	b.mu.Lock()
	b.stopped = true
	all := make([]*Session, 0, len(b.sessions))
	for _, s := range b.sessions {
		all = append(all, s)
	}
	b.mu.Unlock()
	for _, s := range all {
		s.close(Stopping)
	}
}
