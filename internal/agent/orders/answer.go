package orders

import (
	"context"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// answer sends a message of type to whoever asked. One that cannot be sent is lost:
// the requester asks again.
func (e *Engine) answer(ctx context.Context, m wire.Message) {
	if err := e.outbox.send(m); err != nil {
		e.cfg.Log.WarnContext(ctx, "answer not sent", "type", m.Type, "target", m.Target, "err", err)
	}
}

func (e *Engine) message(to wire.URI, kind string, data jsontext.Value) wire.Message {
	return wire.Message{ID: uuid.NewString(), Type: kind, Sender: e.cfg.URI, Target: to, Data: data}
}

// problem answers a request that nobody can make sense of.
func (e *Engine) problem(ctx context.Context, m wire.Message, text string) {
	reply := e.message(m.Sender, wire.ErrorMessage, wire.Data(text))
	reply.InReplyTo = m.ID
	e.answer(ctx, reply)
}

// provide says that the agent has the transaction.
func (e *Engine) provide(ctx context.Context, o Order) {
	e.answer(ctx, e.message(o.Requester, wire.ProvisionalResponse, pxp.Data(pxp.Provisional{Transaction: o.Transaction})))
}

func (e *Engine) fail(ctx context.Context, o Order, text string) {
	e.answer(ctx, e.failure(o, text))
}

func (e *Engine) failure(o Order, text string) wire.Message {
	return e.message(o.Requester, wire.RPCError, pxp.Data(pxp.Failure{Transaction: o.Transaction, ID: o.Message, Description: text}))
}

func (e *Engine) respond(ctx context.Context, o Order, results jsontext.Value) {
	e.answer(ctx, e.response(o, results))
}

// response is the message with results; or with an error, if it would be too big.
func (e *Engine) response(o Order, results jsontext.Value) wire.Message {
	data := pxp.Data(pxp.Response{Transaction: o.Transaction, Results: results})
	if len(data) > e.cfg.MaxMessageBytes {
		return e.failure(o, tooBig(len(data), e.cfg.MaxMessageBytes))
	}
	kind := wire.NonBlockingResponse
	if o.Blocking {
		kind = wire.BlockingResponse
	}
	return e.message(o.Requester, kind, data)
}

// failed logs an error, and returns what its requester is told.
func (e *Engine) failed(ctx context.Context, label string, err error) string {
	if fault.Detail(err) == "" {
		e.cfg.Log.ErrorContext(ctx, "order failed", "order", label, "err", err)
	}
	return describe(label, err)
}

// readable makes text of what may be anything.
func readable(b []byte) string {
	return strings.ToValidUTF8(strings.ReplaceAll(string(b), "\x00", "\uFFFD"), "\uFFFD")
}
