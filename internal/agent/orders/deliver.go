package orders

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire"
)

// outbox is the connection, and the outcomes that wait for it.
type outbox struct {
	mu      sync.Mutex
	closed  bool
	link    func(wire.Message) error // nil: there was no connection yet
	session int                      // counts connections
	waiting []Record
	busy    bool        // somebody delivers
	retry   *time.Timer // while outcomes wait after a connection did not take one
}

// retrying is when an outcome is tried again that a connection did not take, if no
// new connection comes before.
const retrying = 30 * time.Second

// send passes m to the connection.
func (o *outbox) send(m wire.Message) error {
	o.mu.Lock()
	link := o.link
	if o.closed {
		link = nil
	}
	o.mu.Unlock()
	if link == nil {
		return fault.New(fault.Unavailable, "not connected")
	}
	return link(m)
}

func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	if o.retry != nil {
		o.retry.Stop()
	}
}

// Connected is called when there is a (new) connection. send writes a message to
// it, or returns an error if it cannot; it may be called concurrently, also after the connection is gone.
// Outcomes that were not delivered are sent, in the order in which they came about.
func (e *Engine) Connected(send func(wire.Message) error) {
	e.outcomes.connected(send)
}

// outcomes are of transactions that are over: each is delivered, now or when there is a connection.
type outcomes struct {
	outbox  *outbox
	answers answers
	spool   Spool
	modules *modules
	works   *sync.WaitGroup // of the engine
	log     *slog.Logger
}

func (t *outcomes) connected(send func(wire.Message) error) {
	t.outbox.mu.Lock()
	t.outbox.link = send
	t.outbox.session++
	t.outbox.mu.Unlock()
	t.deliverSoon()
}

// post puts an outcome into the outbox.
func (t *outcomes) post(r Record) {
	t.outbox.mu.Lock()
	t.outbox.waiting = append(t.outbox.waiting, r)
	t.outbox.mu.Unlock()
	t.deliverSoon()
}

// deliverSoon delivers, unless somebody does, or nobody can.
func (t *outcomes) deliverSoon() {
	o := t.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.busy || o.link == nil || len(o.waiting) == 0 {
		return
	}
	o.busy = true
	t.works.Go(t.deliver)
}

// deliver sends what waits until nothing does, or the connection does not take it.
func (t *outcomes) deliver() {
	ctx := context.Background() // for the log only
	for {
		r, session, ok := t.outbox.next()
		if !ok {
			return
		}
		err := t.deliverOne(ctx, r)
		if err != nil && t.outbox.giveUp(session, t.deliverSoon) {
			t.log.InfoContext(ctx, "outcome not delivered, will retry", "transaction", r.Transaction, "err", err)
			return
		}
	}
}

// next is the outcome to deliver; when there is none, delivering ends.
func (o *outbox) next() (r Record, session int, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || len(o.waiting) == 0 {
		o.busy = false
		return r, 0, false
	}
	return o.waiting[0], o.session, true
}

// giveUp ends delivering until later; false: there is a newer connection to try.
func (o *outbox) giveUp(session int, later func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.session != session && !o.closed {
		return false
	}
	o.busy = false
	if !o.closed {
		o.retry = time.AfterFunc(retrying, later)
	}
	return true
}

func (o *outbox) delivered() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = o.waiting[1:]
}

// deliverOne sends an outcome, and then keeps that it was.
func (t *outcomes) deliverOne(ctx context.Context, r Record) error {
	m, err := t.outcomeOf(ctx, r)
	if err != nil { // it was thrown away as too old
		t.log.WarnContext(ctx, "outcome dropped, it waited too long", "transaction", r.Transaction, "err", err)
		t.outbox.delivered()
		return nil
	}
	if err := t.outbox.send(m); err != nil {
		return err
	}
	t.outbox.delivered()
	r.Delivered = true
	if err := t.spool.Save(r); err != nil { // after a restart it is sent again
		t.log.ErrorContext(ctx, "delivery not kept", "transaction", r.Transaction, "err", err)
	}
	return nil
}

// outcomeOf is the outcome of a transaction that is over; its error is that there is none any more.
func (t *outcomes) outcomeOf(ctx context.Context, r Record) (wire.Message, error) {
	o := orderOf(r)
	output, err := t.spool.Output(r.Transaction)
	switch {
	case fault.Of(err) == fault.NotFound:
		return wire.Message{}, err
	case err != nil:
		return t.answers.failure(o, nil, t.answers.failed(ctx, o.label(), err)), nil
	default:
		return t.answers.outcome(o, r, t.modules.of(r), output), nil
	}
}

// orderOf is the order of a record, without its parameters.
func orderOf(r Record) Order {
	return Order{
		Transaction: r.Transaction, Blocking: r.Blocking, Notify: r.Notify, Requester: wire.URI(r.Requester), Caller: r.Caller, Message: r.RequestID,
		Module: r.Module, Action: r.Action,
	}
}
