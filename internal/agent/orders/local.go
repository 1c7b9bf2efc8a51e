package orders

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// Begin does what the node itself wants, in the same lanes as what it is told by others. Nobody is answered, and the
// policy, which is about others, does not count. What is wanted goes on as any transaction does; Await says
// what came of it. The order needs a transaction, module, action and parameters.
//
// Errors: NotFound and Invalid for what cannot be done, Conflict for a transaction that is there, Unavailable when
// it cannot be kept or its lane is full. Then nothing was begun.
func (e *Engine) Begin(ctx context.Context, o Order) error {
	if e.turns.isClosed() {
		return fault.Wrap(fault.Unavailable, errClosing, "the agent ends")
	}
	o.Blocking, o.Notify, o.Requester = false, false, e.cfg.URI
	action, err := e.modules.find(o)
	if err == nil {
		err = action.check(o)
	}
	if err != nil {
		return err
	}
	if action.Answer != nil {
		return fault.New(fault.Invalid, "%s %s is only for others to ask", o.Module, o.Action)
	}
	r := Record{
		Transaction: o.Transaction, Requester: string(o.Requester), Module: o.Module, Action: o.Action,
		Start: time.Now().UTC(), Status: Running, Delivered: true,
	}
	if o.Place, err = e.cfg.Spool.Begin(r); err != nil {
		return err
	}
	a, life := e.newActive(ctx, o, action, r)
	close(a.told)
	start, ok := e.turns.enter(a)
	if !ok {
		e.audit(ctx, o, "", "refused", "its lane is full")
		err := e.turns.full(action.Lane)
		e.finish(life, a, err)
		return err
	}
	e.audit(ctx, o, "", "accepted", "")
	if start {
		e.turns.begin(a)
	}
	return nil
}

// Await waits until a transaction is over, whoever ordered it, and says how it ended. NotFound: there is none;
// Unavailable: it was not over when the engine was closed.
func (e *Engine) Await(ctx context.Context, transaction string) (Record, Output, error) {
	a := e.turns.find(transaction)
	var r Record
	var err error
	if a == nil {
		r, err = e.cfg.Spool.Load(transaction)
	} else {
		select {
		case <-a.over:
			r = a.concluded()
		case <-e.turns.ended:
			r = a.concluded() // perhaps it is over
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		return r, Output{}, err
	}
	if !r.Status.Over() {
		return r, Output{}, fault.New(fault.Unavailable, "the agent ended before the transaction %s did", transaction)
	}
	output, err := e.cfg.Spool.Output(transaction)
	return r, output, err
}

// concluded is the record of one that is over: also when it could not be kept.
func (a *active) concluded() Record {
	a.saving.Lock()
	defer a.saving.Unlock()
	return a.record
}
