package broker

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire"
)

// Session is one connection as the broker sees it.
type Session struct {
	broker *Broker
	who    Presence
	conn   Conn
	out    outbox
	over   atomic.Bool // nothing more is accepted

	// Of all connections of this client; the broker's mu is held.
	rivals Rivals
	asked  time.Time // when one was last asked whether it is still there; zero: it has answered

	// Of the records; the broker's mu is held.
	number int64         // see Seat; 0: they do not have it
	rival  *Seat         // of the same client on another server, heard of before there was a number
	seated chan struct{} // closed when there was a number first
	once   sync.Once
	waited atomic.Bool // a message waited for the number, in vain
}

// Presence is who this is.
func (s *Session) Presence() Presence { return s.who }

// Receive takes one message as it came over the connection. It keeps nothing of payload.
func (s *Session) Receive(ctx context.Context, payload []byte, binary bool) {
	b := s.broker
	if s.over.Load() {
		return // who was superseded or refused speaks for nobody
	}
	b.stats.received.Add(1)
	if binary != s.who.Version.Binary() {
		s.undecodable(ctx, "this path takes "+kind(s.who.Version.Binary())+" messages only, not "+kind(binary)+" ones")
		return
	}
	m, err := s.who.Version.Decode(payload)
	if err != nil {
		s.undecodable(ctx, fault.Detail(err))
		return
	}
	if m.Sender == "" {
		m.Sender = s.who.URI
	}
	if m.Target == "" {
		m.Target = wire.Broker
	}
	if m.Type == wire.AssociateRequest && m.Target == wire.Broker && len(m.Others) == 0 {
		s.associate(ctx, m)
		return
	}
	outcome := judge(b.cfg.Rules, s.who, m, b.partyOf(m.Target))
	s.access(ctx, outcome, m)
	if outcome != Accepted {
		s.complain(m, texts[outcome])
		return
	}
	if err := s.pass(ctx, m); err != nil {
		s.refuse(ctx, m, err)
	}
}

func kind(binary bool) string {
	if binary {
		return "binary"
	}
	return "text"
}

// undecodable answers what has no id to refer to.
func (s *Session) undecodable(ctx context.Context, detail string) {
	s.access(ctx, Undecodable, wire.Message{})
	s.complain(wire.Message{}, textUndecodable+": "+detail)
}

// associate answers the question of PCP 1 whether the session is good.
func (s *Session) associate(ctx context.Context, m wire.Message) {
	answer, outcome := associate(s.who, m)
	s.access(ctx, outcome, m)
	s.answer(wire.Message{Type: wire.AssociateResponse, Sender: wire.Broker, Target: s.who.URI, InReplyTo: m.ID, Data: wire.Data(answer)})
	if !answer.Success {
		s.close(Unsuccessful)
	}
}

// pass brings a message to where it belongs.
func (s *Session) pass(ctx context.Context, m wire.Message) error {
	switch {
	case m.Target != wire.Broker:
		return s.broker.deliver(ctx, m)
	case m.Type == wire.InventoryRequest:
		return s.broker.inventory(s, m)
	case s.broker.cfg.Handlers[m.Type] != nil:
		return s.handle(ctx, s.broker.cfg.Handlers[m.Type], m)
	case m.Type == wire.ErrorMessage: // there is nothing to say to it
		return nil
	default:
		return fault.New(fault.Invalid, "Message type %s is not handled here.", m.Type)
	}
}

// handle keeps a handler's mistake from taking the process down.
func (s *Session) handle(ctx context.Context, handler Handler, m wire.Message) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.broker.cfg.Log.ErrorContext(ctx, "handler panicked", "panic", p, "message_type", m.Type, "uri", s.who.URI, "stack", string(debug.Stack()))
			err = fault.New(fault.Internal, "panic")
		}
	}()
	return handler(ctx, s.who, m)
}

// refuse tells the sender why a message went nowhere. Causes stay in the log.
func (s *Session) refuse(ctx context.Context, m wire.Message, err error) {
	text := fault.Detail(err)
	if text == "" {
		s.broker.cfg.Log.ErrorContext(ctx, "message not handled", "uri", s.who.URI, "message_type", m.Type, "message_id", m.ID, "err", err)
		text = "Internal error; the server's log has more under this message's id."
	}
	s.complain(m, text)
}

// complain answers m with an error message, which has neither sender nor target.
// An error is not answered with an error: two could go on for ever.
func (s *Session) complain(m wire.Message, text string) {
	s.broker.stats.refused.Add(1)
	if m.Type == wire.ErrorMessage {
		return
	}
	s.answer(wire.Message{Type: wire.ErrorMessage, InReplyTo: m.ID, Data: wire.Data(text)})
}

// answer queues a message of the broker for this session. One that cannot be queued has ended the session.
func (s *Session) answer(m wire.Message) {
	m.ID = uuid.NewString()
	_ = s.push(m)
}

// push queues a message for this session, and cuts it off if it is too slow.
func (s *Session) push(m wire.Message) error {
	wake, why := s.out.push(m)
	return s.pushed(wake, why)
}

// pushed does what has to follow when no lock is held.
func (s *Session) pushed(wake bool, why refusal) error {
	switch why {
	case taken:
		s.broker.stats.delivered.Add(1)
		if wake {
			s.conn.Wake()
		}
		return nil
	case full:
		s.broker.stats.cutOff.Add(1)
		s.cut(tooSlow)
		return fault.New(fault.Unavailable, "Target does not read what it is sent; its connection was closed.")
	case crowded:
		return fault.New(fault.Unavailable, "Too many messages are waiting for their targets; try again later.")
	case closed:
	}
	return errNotConnected()
}

// Next gives the next message to write; false when there is none.
func (s *Session) Next() (wire.Message, bool) { return s.out.next() }

// Leave ends a session whose connection has ended, with what is known of why.
func (s *Session) Leave(f Farewell) {
	s.over.Store(true)
	s.out.drop()
	s.goodbye(f)
}

// close says farewell after what is queued. Nothing more is delivered.
func (s *Session) close(f Farewell) {
	s.over.Store(true)
	s.out.close()
	s.goodbye(f)
	s.conn.Close(f)
}

// cut says farewell instead of what is queued.
func (s *Session) cut(f Farewell) {
	s.over.Store(true)
	s.out.drop()
	s.goodbye(f)
	s.conn.Close(f)
}

// oust ends a session that is out of the inventory already. If its client is still there it is not the one that took its place.
func (s *Session) oust(f Farewell, ask bool) {
	s.over.Store(true)
	s.out.drop()
	s.log(f)
	if !ask {
		s.conn.Oust(nil)
		return
	}
	s.conn.Oust(func() { s.broker.rivalry(s.who) })
}

// goodbye takes the session out of the inventory, once.
func (s *Session) goodbye(f Farewell) {
	if s.broker.leave(s) {
		s.log(f)
		s.broker.cfg.Left(s.who, f)
	}
}

func (s *Session) log(f Farewell) {
	s.broker.cfg.Log.Info("node disconnected", "uri", s.who.URI, "remote", s.who.Remote, "code", f.Code, "reason", f.Reason)
}

// access writes a line of the access log. What could not be decoded is not shown.
func (s *Session) access(ctx context.Context, outcome Outcome, m wire.Message) {
	if !s.broker.cfg.AccessLog() {
		return
	}
	level := slog.LevelInfo
	if outcome != Accepted {
		level = slog.LevelWarn
	}
	s.broker.cfg.Log.LogAttrs(ctx, level, "pcp access", slog.String("outcome", string(outcome)), slog.String("remote", s.who.Remote),
		slog.String("node", string(s.who.Certname)), slog.String("sender", string(m.Sender)), slog.String("message_type", m.Type),
		slog.String("message_id", m.ID), slog.String("target", string(m.Target)))
}

// partyOf is what a target is. Whoever is not connected is a node or, by its name, a controller.
func (b *Broker) partyOf(target wire.URI) Party {
	if target == wire.Broker {
		return Server
	}
	if who, ok := b.Presence(target); ok {
		return who.Party
	}
	if b.cfg.Controller(fleet.Certname(target.Name())) {
		return Controller
	}
	return Node
}
