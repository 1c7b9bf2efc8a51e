package orders

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// read answers a blocking request for what changes nothing. Nothing is kept of it, so that it costs the disk nothing.
func (e *Engine) read(ctx context.Context, o Order, a Action, subject string) {
	err := e.turns.reads(ctx, o.Transaction, a.limit(e.cfg.MaxRun), func(limited context.Context) { e.answerRead(limited, o, a, subject) })
	if err == nil || errors.Is(err, errClosing) || errors.Is(err, errReading) {
		return // there is one answer, or the next agent gives it when it is asked again
	}
	e.audit(ctx, o, subject, "refused", pxp.Full)
	e.answers.fail(ctx, o, fault.Detail(err))
}

func (e *Engine) answerRead(ctx context.Context, o Order, a Action, subject string) {
	results, err := a.Read(ctx, o)
	switch cause := context.Cause(ctx); {
	case err == nil:
		e.audit(ctx, o, subject, "answered", "")
		e.answers.respond(ctx, o, results)
		return
	case errors.Is(cause, errTooLong):
		err = fault.New(fault.Unavailable, "%s", pxp.TimedOut)
	case cause != nil:
		return // the engine is closed
	}
	text := e.answers.textOf(ctx, o, err)
	e.audit(ctx, o, subject, "failed", text)
	e.answers.send(ctx, e.answers.failure(o, err, text))
}

// textOf is what is told of a question that failed, which is logged.
func (w answers) textOf(ctx context.Context, o Order, err error) string {
	told, ok := errors.AsType[*concluded](err)
	if !ok {
		return w.reason(ctx, o.label(), err)
	}
	if told.err != nil {
		w.logFailure(ctx, o.label(), told.err)
	}
	return told.text
}

// concluded is an error whose text is the whole answer.
type concluded struct {
	text string
	err  error // for the node's log; nil: what a program left is all there is
}

func (c *concluded) Error() string { return c.text }

// Concluded makes the answer to a question of what a program left that was run for it, or of why there is none: in the words in which a
// transaction of the same action is told of. The cause of a ctx that is done is its error.
func (a Action) Concluded(ctx context.Context, o Order, left Output, err error) (jsontext.Value, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, &concluded{describe(o.label(), err), err}
	}
	if a.Ended != nil {
		a.Ended(ctx, left)
	}
	results, err := resultsOf(o.label(), a, left)
	if _, aborted := errors.AsType[*Aborted](err); err == nil || aborted {
		return results, err
	}
	return nil, &concluded{text: err.Error()}
}

// inside is the work that is done inside the agent; nil: a program does it.
func (a Action) inside() func(context.Context, Order) (Output, error) {
	if a.Read == nil || a.Prepare != nil {
		return a.Do
	}
	return func(ctx context.Context, o Order) (Output, error) {
		results, err := a.Read(ctx, o)
		exit := 0
		return Output{Exit: &exit, Stdout: results}, err
	}
}

// results makes the results of what was left; nil: a pxp.Outcome.
func (a Action) results() func(Output) (jsontext.Value, error) {
	if a.Read != nil && a.Prepare == nil {
		return Results
	}
	return a.Results
}
