package orders

import (
	"context"
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
	e.outbox.mu.Lock()
	e.outbox.link = send
	e.outbox.session++
	e.outbox.mu.Unlock()
	e.deliverSoon()
}

// post puts an outcome into the outbox.
func (e *Engine) post(r Record) {
	e.outbox.mu.Lock()
	e.outbox.waiting = append(e.outbox.waiting, r)
	e.outbox.mu.Unlock()
	e.deliverSoon()
}

// deliverSoon delivers, unless somebody does, or nobody can.
func (e *Engine) deliverSoon() {
	o := &e.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.busy || o.link == nil || len(o.waiting) == 0 {
		return
	}
	o.busy = true
	e.works.Go(e.deliver)
}

// deliver sends what waits until nothing does, or the connection does not take it.
func (e *Engine) deliver() {
	ctx := context.Background() // for the log only
	for {
		r, session, ok := e.outbox.next()
		if !ok {
			return
		}
		err := e.deliverOne(ctx, r)
		if err != nil && e.outbox.giveUp(session, e.deliverSoon) {
			e.cfg.Log.InfoContext(ctx, "outcome not delivered, will retry", "transaction", r.Transaction, "err", err)
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
func (e *Engine) deliverOne(ctx context.Context, r Record) error {
	m, err := e.outcomeOf(ctx, r)
	if err != nil { // it was thrown away as too old
		e.cfg.Log.WarnContext(ctx, "outcome dropped, it waited too long", "transaction", r.Transaction, "err", err)
		e.outbox.delivered()
		return nil
	}
	if err := e.outbox.send(m); err != nil {
		return err
	}
	e.outbox.delivered()
	r.Delivered = true
	if err := e.cfg.Spool.Save(r); err != nil { // after a restart it is sent again
		e.cfg.Log.ErrorContext(ctx, "delivery not kept", "transaction", r.Transaction, "err", err)
	}
	return nil
}

// outcomeOf is the outcome of a transaction that is over; its error is that there is none any more.
func (e *Engine) outcomeOf(ctx context.Context, r Record) (wire.Message, error) {
	o := orderOf(r)
	output, err := e.cfg.Spool.Output(r.Transaction)
	switch {
	case fault.Of(err) == fault.NotFound:
		return wire.Message{}, err
	case err != nil:
		return e.failure(o, e.failed(ctx, o.label(), err)), nil
	default:
		return e.outcome(o, r, e.modules[r.Module].Actions[r.Action], output), nil
	}
}

// orderOf is the order of a record, without its parameters.
func orderOf(r Record) Order {
	return Order{
		Transaction: r.Transaction, Blocking: r.Blocking, Notify: r.Notify, Requester: wire.URI(r.Requester), Message: r.RequestID,
		Module: r.Module, Action: r.Action,
	}
}
