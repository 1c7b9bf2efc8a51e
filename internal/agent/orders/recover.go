package orders

import (
	"context"
	"fmt"

	"github.com/tutti-project/tutti/internal/fault"
)

// Start looks after what an earlier process left in the spool: programs that run
// are adopted, what ended is concluded, what did not begin is ended. It comes before the
// first Handle, and returns without waiting for programs. ctx's end does not end them; Close lets go of them.
func (e *Engine) Start(ctx context.Context) error {
	records, err := e.cfg.Spool.List()
	if err != nil {
		return fmt.Errorf("read the spool: %w", err)
	}
	for _, r := range records {
		switch {
		case r.Status.Over() && r.Delivered:
		case r.Status.Over():
			e.outcomes.post(r)
		default:
			e.resume(ctx, r)
		}
	}
	return nil
}

// resume goes on with a transaction that an earlier process began.
func (e *Engine) resume(ctx context.Context, r Record) {
	a := &active{order: orderOf(r), action: e.modules.of(r), record: r, state: running, over: make(chan struct{})}
	a.order.Place = e.cfg.Spool.Place(r.Transaction)
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	a.cancel, a.stopping = cancel, r.Blocking || r.Stop != ""
	if e.isAlive(a) {
		e.cfg.Log.InfoContext(ctx, "program of an earlier agent adopted", "transaction", r.Transaction, "module", r.Module)
		a.start = func() { e.adopted(life, a) }
		e.turns.adopt(a)
		e.turns.begin(a)
		return
	}
	e.settle(life, a, nil)
}

// isAlive looks twice: who watches over a program may have come to life just now, after
// the agent that started it was killed.
func (e *Engine) isAlive(a *active) bool {
	if e.cfg.Runner.Alive(a.order.Place) {
		return true
	}
	output, err := e.cfg.Spool.Output(a.record.Transaction)
	return err == nil && output.Begun && output.Exit == nil && e.cfg.Runner.Alive(a.order.Place)
}

func interrupted(action Action) string {
	if action.Do != nil {
		return "the agent was restarted while it worked on this; what it had done stays"
	}
	return "the agent was restarted before this began; it will not begin any more"
}

// adopted waits for a program that an earlier process started.
func (e *Engine) adopted(ctx context.Context, a *active) {
	err := e.watch(ctx, a)
	if context.Cause(ctx) != nil {
		return
	}
	e.settle(ctx, a, err)
	if next := e.turns.leave(a.action.Lane); next != nil {
		e.turns.begin(next)
	}
}

// settle concludes a transaction of an earlier process. Nobody waits for a blocking
// one any more: its requester saw the connection end.
func (e *Engine) settle(ctx context.Context, a *active, err error) {
	if !a.record.Blocking {
		output, readErr := e.cfg.Spool.Output(a.record.Transaction)
		if err == nil && readErr == nil && !output.Begun && output.Exit == nil { // its order did not arrive whole, if it was given at all
			err = fault.New(fault.Unavailable, "%s", interrupted(a.action))
		}
		e.finish(ctx, a, err)
		return
	}
	defer a.cancel(nil)
	lost := a.record
	lost.Status, lost.Error = Undetermined, "the agent was restarted, and nobody waits for the answer any more"
	e.auditEnd(ctx, a.order, lost, Output{})
	if err := e.cfg.Spool.Remove(a.record.Transaction); err != nil {
		e.cfg.Log.ErrorContext(ctx, "transaction not removed", "transaction", a.record.Transaction, "err", err)
	}
	e.turns.forget(a)
}
