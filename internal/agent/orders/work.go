package orders

import (
	"context"
	"errors"
	"time"
)

// What ended an order's context.
var (
	errStopped = errors.New("it was cancelled")
	errTooLong = errors.New("it took too long")
)

// perform is the life of an order that has its turn.
func (e *Engine) perform(ctx context.Context, a *active) {
	<-a.told
	err := e.work(ctx, a)
	if errors.Is(context.Cause(ctx), errClosing) {
		return // the next engine sees what there is
	}
	e.finish(ctx, a, err)
	if next := e.turns.leave(a.action.Lane); next != nil {
		e.turns.begin(next)
	}
}

// work does what was ordered; what a program left is in the spool then.
func (e *Engine) work(ctx context.Context, a *active) error {
	limit := a.action.limit(e.cfg.MaxRun)
	limited, stop := context.WithTimeoutCause(ctx, limit, errTooLong)
	defer stop()
	end := time.Now().Add(limit)
	o := a.order
	o.Params = a.drop()
	if do := a.action.inside(); do != nil {
		output, err := do(limited, o)
		if err != nil {
			return because(limited, err)
		}
		return e.cfg.Spool.Write(a.record.Transaction, output)
	}
	c, err := a.action.Prepare(limited, o)
	if err != nil {
		return because(limited, err)
	}
	if !e.turns.commit(a) {
		return errStopped
	}
	c.Timeout = max(time.Until(end), time.Second)
	if err := e.cfg.Runner.Start(ctx, o.Place, c); err != nil {
		return because(ctx, err)
	}
	return e.watch(ctx, a)
}

// watch waits for a program to end.
func (e *Engine) watch(ctx context.Context, a *active) error {
	if e.turns.isStopping(a) { // while it was being started
		if err := e.cfg.Runner.Stop(a.order.Place); err != nil {
			e.cfg.Log.ErrorContext(ctx, "program not stopped", "transaction", a.record.Transaction, "err", err)
		}
	}
	return e.cfg.Runner.Wait(ctx, a.order.Place)
}

// because prefers the reason why a context ended over what came of that.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// finish concludes a transaction: its record says how it ended from here on.
func (e *Engine) finish(ctx context.Context, a *active, err error) {
	defer a.cancel(nil)
	output, readErr := e.cfg.Spool.Output(a.record.Transaction)
	if err == nil {
		err = readErr
	}
	if err != nil && !errors.Is(err, errStopped) && !errors.Is(err, errTooLong) {
		e.answers.logFailure(ctx, a.order.label(), err)
	}
	saveErr := a.save(e.cfg.Spool, func(r *Record) { conclude(r, a.order.label(), a.action, output, err) })
	if saveErr != nil { // its outcome is sent all the same; after a restart it is concluded, and sent, again
		e.cfg.Log.ErrorContext(ctx, "end of a transaction not kept", "transaction", a.record.Transaction, "err", saveErr)
	}
	if a.action.Ended != nil && output.Begun {
		a.action.Ended(ctx, output)
	}
	e.auditEnd(ctx, a.order, a.record, output)
	if a.record.Blocking {
		e.answers.send(ctx, e.answers.outcome(a.order, a.record, a.action, output))
		if err := e.cfg.Spool.Remove(a.record.Transaction); err != nil {
			e.cfg.Log.ErrorContext(ctx, "transaction not removed", "transaction", a.record.Transaction, "err", err)
		}
	}
	e.turns.forget(a)
	if !a.record.Blocking && !a.record.Delivered {
		e.outcomes.post(a.record)
	}
}
