package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/action/call"
	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/hint/bulk"
	"github.com/tutti-project/tutti/internal/hint/bus"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/store/lease"
	"github.com/tutti-project/tutti/internal/wire"
)

// others is the brokers of other servers, over the bus: broker.Others of this one.
type others struct {
	bus      bus.Bus
	prefix   string // of subjects
	self     string
	broker   func() *broker.Broker
	roll     lease.Roll
	register *broker.Register
	jobs     *job.Service
	calls    *call.Caller
	handlers map[string]broker.Handler // of what their nodes say to this server
	log      *slog.Logger

	mu   sync.Mutex
	mute map[string]time.Time // servers that gave no answer, and until when they are not asked
}

// The words at the end of subjects of one server.
const (
	deliverWord = "deliver" // a message for a client of it
	answerWord  = "answer"  // what a client of another one says to it
	pingWord    = "ping"    // is it there?
)

// The times of messages between servers.
const (
	deliverMay = 2 * time.Second  // until the other broker has queued a message
	largeMay   = 20 * time.Second // the same, for one that goes through the store of content
	answerMay  = 10 * time.Second // until the other server has taken what a node says: it may wait for room
	pingMay    = 500 * time.Millisecond
	muteFor    = time.Second
	// doubted is a server that was seen in the records last before so long, which is later than it says that it is there. If the bus does not
	// know it either, it is dead.
	doubted = 4 * time.Second
)

// openOthers is nil for a server that is alone with its records.
func openOthers(p *parts, in inbox) *others {
	c := p.config.Load()
	if c.Database == "" {
		return nil
	}
	return &others{
		bus: bulk.New(p.bus, p.blobs), prefix: c.NATSPrefix, self: p.id, broker: func() *broker.Broker { return p.broker }, roll: p.store.Leases,
		register: p.register, jobs: p.jobs, calls: p.calls, handlers: in.handlers(), log: p.log.Logger, mute: map[string]time.Time{},
	}
}

// config is broker.Config.Others.
func (o *others) config(roster broker.Roster) *broker.Others {
	if o == nil {
		return nil
	}
	return &broker.Others{
		Server: o.self, Roster: roster, Alive: o.alive, Pass: o.pass, Tell: o.tell, Came: o.came, Went: o.went, Deaf: o.deaf,
	}
}

// deaf says that nothing can be heard of others.
func (o *others) deaf() bool {
	s := o.bus.State()
	return s.Kind != bus.NATS || !s.Up
}

// listen subscribes to what others say. A server has these few subscriptions, however many nodes there are.
func (o *others) listen() error {
	if o == nil || o.bus.State().Kind != bus.NATS {
		return nil
	}
	for _, s := range []bus.Subscriber{
		{Subject: o.prefix + ".presence", Take: o.heard, Gap: o.broker().Missed},
		{Subject: o.subject(o.self, deliverWord), Take: o.deliver},
		{Subject: o.subject(o.self, answerWord), Take: o.answer},
		{Subject: o.subject(o.self, pingWord), Take: func(context.Context, string, []byte) ([]byte, error) { return nil, nil }},
	} {
		if _, err := o.bus.Subscribe(s); err != nil {
			return err
		}
	}
	return nil
}

// subject is one of a server's own.
func (o *others) subject(server, word string) string {
	return o.prefix + ".srv." + bus.Word(server) + "." + word
}

// alive is which servers there are: those that the records saw within the time of a lease, without those that the bus says are dead.
func (o *others) alive(ctx context.Context) (map[string]bool, error) {
	known, err := o.roll.Servers(ctx)
	if err != nil {
		return nil, err
	}
	alive := make(map[string]bool, len(known))
	for _, s := range known {
		alive[s.ID] = s.There() && (s.ID == o.self || s.Silent < doubted || !o.gone(ctx, s.ID))
	}
	return alive, nil
}

// gone says that the bus is there, and a server is not on it.
func (o *others) gone(ctx context.Context, server string) bool {
	if o.deaf() {
		return false
	}
	asking, cancel := context.WithTimeout(ctx, pingMay)
	defer cancel()
	_, err := o.bus.Request(asking, o.subject(server, pingWord), nil)
	return errors.Is(err, bus.ErrNobody)
}

// pass brings a message to the broker of another server. One that did not answer is not asked for a moment: whoever sends to many of its nodes
// must not wait for each.
func (o *others) pass(ctx context.Context, server string, m wire.Message) error {
	text, err := wire.V2.Append(nil, m)
	if err != nil {
		return err
	}
	if o.isMute(server) {
		return o.silent(server, nil)
	}
	may := deliverMay
	if len(text) > bus.MaxBytes {
		may = largeMay
	}
	asking, cancel := context.WithTimeout(ctx, may)
	defer cancel()
	_, err = o.bus.Request(asking, o.subject(server, deliverWord), text)
	switch {
	case errors.Is(err, bulk.ErrStore): // which says nothing of the server
		return err
	case errors.Is(err, bus.ErrNobody), errors.Is(err, context.DeadlineExceeded):
		if ctx.Err() == nil {
			o.setMute(server)
		}
		return o.silent(server, err)
	case fault.Is(err, fault.Invalid):
		return fault.Wrap(fault.Invalid, err, "%s is connected to another server, and a message of %d bytes does not get there", m.Target, len(text))
	}
	return err
}

func (o *others) silent(server string, err error) error {
	if o.bus.State().Kind != bus.NATS {
		return fault.Wrap(fault.Unavailable, err, "the node is connected to the server %s, which can be reached over NATS only, and there is none: set nats_url",
			server)
	}
	return fault.Wrap(fault.Unavailable, err, "the server %s, to which the node is connected, cannot be reached over NATS; it is tried again", server)
}

// unreachable is why nothing can be sent to a server for now; empty: it can, as far as is known.
func (o *others) unreachable(server string) string {
	switch {
	case server == "":
		return ""
	case o.deaf(), o.isMute(server):
		return fault.Detail(o.silent(server, nil))
	}
	return ""
}

func (o *others) isMute(server string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Now().Before(o.mute[server])
}

func (o *others) setMute(server string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mute[server] = time.Now().Add(muteFor)
}

// deliver takes a message for a client of this server.
func (o *others) deliver(ctx context.Context, _ string, text []byte) ([]byte, error) {
	m, err := wire.V2.Decode(text)
	if err != nil {
		return nil, err
	}
	return nil, o.broker().Take(ctx, m)
}

// tell implements broker.Others' Tell.
func (o *others) tell(m broker.Moves) {
	if o.deaf() {
		return
	}
	text, err := json.Marshal(m)
	if err == nil {
		err = o.bus.Publish(o.prefix+".presence", text)
	}
	if err != nil {
		o.log.Debug("other servers were not told who came and left, they compare", "err", err)
	}
}

func (o *others) heard(_ context.Context, _ string, text []byte) ([]byte, error) {
	var m broker.Moves
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	o.broker().Heard(m)
	return nil, nil
}

// came hints that an agent is connected to another server.
func (o *others) came(who broker.Presence) {
	if who.URI == agentOf(who.Certname) {
		o.register.Heard(who, time.Time{})
		o.jobs.Came(who.Certname)
		o.calls.Came(who.Certname)
	}
}

// went hints that an agent is not connected to another server any more.
func (o *others) went(who broker.Presence) {
	if who.URI == agentOf(who.Certname) {
		o.register.Heard(who, time.Now())
		o.jobs.Went(who.Certname)
		o.calls.Went(who.Certname)
	}
}

// said is what a client says to another server than the one that it is connected to.
type said struct {
	From    broker.Presence
	Message json.RawMessage // as of PCP 2
}

// forward hands what a node says to the server that asked it; false: it was this one.
func (o *others) forward(ctx context.Context, from broker.Presence, m wire.Message, transaction string) (bool, error) {
	asker := askerOf(transaction)
	if o == nil || asker == "" || asker == bus.Word(o.self) {
		return false, nil
	}
	text, err := wire.V2.Append(nil, m)
	if err != nil {
		return true, err
	}
	data, err := json.Marshal(said{from, text})
	if err != nil {
		return true, err
	}
	asking, cancel := context.WithTimeout(ctx, answerMay)
	defer cancel()
	_, err = o.bus.Request(asking, o.prefix+".srv."+asker+"."+answerWord, data)
	if err != nil {
		o.log.WarnContext(ctx, "an answer did not reach the server that asked", "node", from.Certname, "bytes", len(data), "err", err)
	}
	return true, nil // the node did what it should
}

// answer takes what a client of another server says to this one.
func (o *others) answer(ctx context.Context, _ string, data []byte) ([]byte, error) {
	var told said
	if err := json.Unmarshal(data, &told); err != nil {
		return nil, err
	}
	m, err := wire.V2.Decode(told.Message)
	if err != nil {
		return nil, err
	}
	handler := o.handlers[m.Type]
	if handler == nil {
		return nil, fault.New(fault.Invalid, "Message type %s is not handled here.", m.Type)
	}
	return nil, handler(ctx, told.From, m)
}

// askID makes ids of transactions that tell which server asks: an agent answers to the server that it is connected to.
func askID(server string) func() string {
	return func() string { return uuid.NewString() + askedBy + bus.Word(server) }
}

// askedBy goes before the server in the id of a transaction.
const askedBy = "_by_"

func askerOf(transaction string) string {
	_, server, _ := strings.Cut(transaction, askedBy)
	return server
}

// connectedElsewhere is the agents that are connected to other servers which are there.
func connectedElsewhere(ctx context.Context, self string, roll lease.Roll, roster broker.Roster) (map[fleet.Certname]bool, error) {
	there := map[fleet.Certname]bool{}
	known, err := roll.Servers(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range known {
		if s.ID == self || !s.There() {
			continue
		}
		seats, err := roster.Seats(ctx, s.ID)
		if err != nil {
			return nil, err
		}
		for _, seat := range seats {
			if seat.URI == agentOf(seat.Certname) {
				there[seat.Certname] = true
			}
		}
	}
	return there, nil
}
