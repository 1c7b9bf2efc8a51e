package orders

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Handle takes a message that came for this node. Answers go out through the
// connection; what takes time goes on after Handle returned, and after ctx is done.
func (e *Engine) Handle(ctx context.Context, m wire.Message) {
	if e.turns.isClosed() {
		return // who asked asks again, and the next agent answers
	}
	if m.Sender == "" {
		m.Sender = wire.Broker
	}
	switch m.Type {
	case wire.BlockingRequest:
		e.request(ctx, m, true)
	case wire.NonBlockingRequest:
		e.request(ctx, m, false)
	case wire.ErrorMessage:
		text, _ := wire.ParseError(m.Data)
		e.cfg.Log.WarnContext(ctx, "the broker reports an error", "text", text, "in_reply_to", m.InReplyTo)
	default:
		e.cfg.Log.InfoContext(ctx, "message of an unknown type dropped", "type", m.Type, "sender", m.Sender)
	}
}

func (e *Engine) request(ctx context.Context, m wire.Message, blocking bool) {
	if len(m.Data) == 0 || m.Data.Kind() == 'n' {
		e.answers.problem(ctx, m, "no data")
		return
	}
	parse := pxp.ParseNonBlockingRequest
	if blocking {
		parse = pxp.ParseRequest
	}
	req, err := parse(m.Data)
	if err != nil {
		e.cfg.Log.WarnContext(ctx, "request refused", "requester", m.Sender, "err", err)
		e.answers.problem(ctx, m, "invalid data")
		return
	}
	if len(req.Params) == 0 {
		req.Params = []byte("{}")
	}
	o := Order{
		Transaction: req.Transaction, Blocking: blocking, Notify: req.NotifyOutcome, Requester: m.Sender, Caller: req.Caller, Message: m.ID, Module: req.Module,
		Action: req.Action, Params: req.Params,
	}
	if !blocking && e.repeated(ctx, o) {
		return
	}
	e.order(ctx, o)
}

// repeated answers a request whose transaction is known.
func (e *Engine) repeated(ctx context.Context, o Order) bool {
	if why := e.turns.wasRefused(o.Transaction); why != "" {
		e.answers.fail(ctx, o, why)
		return true
	}
	if !e.turns.isActive(o.Transaction) {
		if _, err := e.cfg.Spool.Load(o.Transaction); fault.Of(err) == fault.NotFound {
			return false // any other error means that there is something
		}
	}
	e.again(ctx, o)
	return true
}

func (e *Engine) again(ctx context.Context, o Order) {
	e.audit(ctx, o, "", "repeated", "")
	e.answers.provide(ctx, o)
}

// order decides about a request that is new, and begins what it asks for.
func (e *Engine) order(ctx context.Context, o Order) {
	action, subject, err := e.decide(o)
	if err != nil {
		e.audit(ctx, o, subject, "refused", fault.Detail(err))
		e.answers.send(ctx, e.answers.failure(o, err, fault.Detail(err)))
		return
	}
	if action.Read != nil && o.Blocking {
		e.read(ctx, o, action, subject)
		return
	}
	if action.Answer == nil {
		e.accept(ctx, o, action, subject)
		return
	}
	e.audit(ctx, o, subject, "answered", "")
	results, err := action.Answer(o)
	if err != nil {
		e.answers.fail(ctx, o, e.answers.failed(ctx, o.label(), err))
		return
	}
	e.answers.respond(ctx, o, results)
}

// decide finds the action, or says in the original's words why there is none. Authority
// comes before parameters.
func (e *Engine) decide(o Order) (a Action, subject string, err error) {
	if a, err = e.modules.find(o); err != nil {
		return a, "", err
	}
	if a.Answer != nil && !o.Blocking {
		return a, "", fault.New(fault.Invalid, "the module '%s' supports only blocking PXP requests", o.Module)
	}
	if a.Subject != nil {
		subject = a.Subject(o.Params)
	}
	if err := e.cfg.Policy.Allow(o, subject); err != nil {
		return a, subject, err
	}
	if a.Off {
		if err := e.cfg.Policy.allowOff(o); err != nil {
			return a, subject, err
		}
	}
	return a, subject, a.check(o)
}

// check holds an order's parameters to what the action takes.
func (a Action) check(o Order) error {
	if a.Check == nil {
		return nil
	}
	if err := a.Check(o.Params); err != nil {
		return fault.Wrap(fault.Invalid, err, "%s %s: %s", pxp.InvalidInput, o.label(), fault.Detail(err)) // what is missing has a code of its own
	}
	return nil
}

// accept keeps an order and puts it into its lane.
func (e *Engine) accept(ctx context.Context, o Order, action Action, subject string) {
	r := Record{
		Transaction: o.Transaction, Requester: string(o.Requester), Caller: o.Caller, RequestID: o.Message, Module: o.Module, Action: o.Action,
		Blocking: o.Blocking, Notify: o.Notify, Start: time.Now().UTC(), Status: Running, Delivered: !o.Notify,
	}
	if o.Blocking {
		r.Transaction = "blocking-" + uuid.NewString()
	}
	place, err := e.cfg.Spool.Begin(r)
	switch {
	case fault.Of(err) == fault.Conflict && !o.Blocking:
		e.again(ctx, o)
		return
	case err != nil:
		e.refuse(ctx, o, subject, err)
		return
	}
	o.Place = place
	a, life := e.newActive(ctx, o, action, r)
	start, ok := e.turns.enter(a)
	if !ok {
		e.audit(ctx, o, subject, "refused", pxp.Full)
		e.overfull(life, a)
		return
	}
	e.audit(ctx, o, subject, "accepted", "")
	if !o.Blocking {
		e.answers.provide(ctx, o)
	}
	close(a.told)
	if start {
		e.turns.begin(a)
	}
}

// newActive is an order that is kept, and its life: longer than ctx.
func (e *Engine) newActive(ctx context.Context, o Order, action Action, r Record) (*active, context.Context) {
	a := &active{order: o, action: action, record: r, told: make(chan struct{}), over: make(chan struct{})}
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	a.cancel = cancel
	a.start = func() { e.perform(life, a) }
	return a, life
}

// overfull ends a transaction for which there is no room. It stays known: a
// copy of the request that is still on its way must not run.
func (e *Engine) overfull(ctx context.Context, a *active) {
	a.record.Delivered = false // nobody was told that it is there, so the error is the answer
	e.finish(ctx, a, e.turns.full(a.action.Lane))
}

// refuse answers that an order cannot be kept, and so not be run.
func (e *Engine) refuse(ctx context.Context, o Order, subject string, err error) {
	e.cfg.Log.ErrorContext(ctx, "transaction not kept", "transaction", o.Transaction, "err", err)
	text := e.answers.failed(ctx, o.label(), err)
	e.audit(ctx, o, subject, "refused", text)
	if !o.Blocking {
		e.turns.refuse(o.Transaction, text)
	}
	e.answers.fail(ctx, o, text)
}

// audit writes what was asked for, by whom, and what was decided: never its parameters.
func (e *Engine) audit(ctx context.Context, o Order, subject, decision, reason string) {
	args := append([]any{"decision", decision}, o.asked()...)
	if subject != "" {
		args = append(args, "subject", subject)
	}
	if reason != "" {
		args = append(args, "reason", reason)
	}
	e.cfg.Audit.InfoContext(ctx, "order", args...)
}

// asked says for a log who asked for what.
func (o Order) asked() []any {
	args := []any{"requester", o.Requester}
	if o.Caller != "" {
		args = append(args, "caller", o.Caller)
	}
	return append(args, "module", o.Module, "action", o.Action, "transaction", o.Transaction, "blocking", o.Blocking)
}

// auditEnd writes how an order ended that was kept, and its exit code where there is one.
func (e *Engine) auditEnd(ctx context.Context, o Order, r Record, output Output) {
	args := append(o.asked(), "status", string(r.Status))
	if output.Exit != nil {
		args = append(args, "exit", *output.Exit)
	}
	if output.Ended != "" {
		args = append(args, "ended", output.Ended)
	}
	if r.Error != "" {
		line, _, _ := strings.Cut(r.Error, "\n") // below it may be what a program printed
		args = append(args, "reason", fmt.Sprintf("%.300s", line))
	}
	e.cfg.Audit.InfoContext(ctx, "order ended", args...)
}
