package orders

import (
	"context"
	"log/slog"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// answers are what this node says to those who asked.
type answers struct {
	uri    wire.URI // who sends them
	most   int      // bytes of their data
	outbox *outbox
	log    *slog.Logger
}

// send sends a message to whoever asked. One that cannot be sent is lost:
// the requester asks again.
func (w answers) send(ctx context.Context, m wire.Message) {
	if err := w.outbox.send(m); err != nil {
		w.log.WarnContext(ctx, "answer not sent", "type", m.Type, "target", m.Target, "err", err)
	}
}

func (w answers) message(to wire.URI, kind string, data jsontext.Value) wire.Message {
	return wire.Message{ID: uuid.NewString(), Type: kind, Sender: w.uri, Target: to, Data: data}
}

// problem answers a request that nobody can make sense of.
func (w answers) problem(ctx context.Context, m wire.Message, text string) {
	reply := w.message(m.Sender, wire.ErrorMessage, wire.Data(text))
	reply.InReplyTo = m.ID
	w.send(ctx, reply)
}

// provide says that the agent has the transaction.
func (w answers) provide(ctx context.Context, o Order) {
	w.send(ctx, w.message(o.Requester, wire.ProvisionalResponse, pxp.Data(pxp.Provisional{Transaction: o.Transaction})))
}

func (w answers) fail(ctx context.Context, o Order, text string) {
	w.send(ctx, w.failure(o, text))
}

func (w answers) failure(o Order, text string) wire.Message {
	return w.message(o.Requester, wire.RPCError, pxp.Data(pxp.Failure{Transaction: o.Transaction, ID: o.Message, Description: text}))
}

func (w answers) respond(ctx context.Context, o Order, results jsontext.Value) {
	w.send(ctx, w.response(o, results))
}

// response is the message with results; or with an error, if it would be too big.
func (w answers) response(o Order, results jsontext.Value) wire.Message {
	data := pxp.Data(pxp.Response{Transaction: o.Transaction, Results: results})
	if len(data) > w.most {
		return w.failure(o, tooBig(len(data), w.most))
	}
	kind := wire.NonBlockingResponse
	if o.Blocking {
		kind = wire.BlockingResponse
	}
	return w.message(o.Requester, kind, data)
}

// outcome is the message that tells how a transaction ended.
func (w answers) outcome(o Order, r Record, action Action, output Output) wire.Message {
	if r.Error != "" {
		return w.failure(o, r.Error)
	}
	results, err := resultsOf(o.label(), action, output)
	if err != nil {
		return w.failure(o, err.Error())
	}
	return w.response(o, results)
}

// failed logs an error, and returns what its requester is told.
func (w answers) failed(ctx context.Context, label string, err error) string {
	if fault.Detail(err) == "" {
		w.log.ErrorContext(ctx, "order failed", "order", label, "err", err)
	}
	return describe(label, err)
}

// readable makes text of what may be anything.
func readable(b []byte) string {
	return strings.ToValidUTF8(strings.ReplaceAll(string(b), "\x00", "\uFFFD"), "\uFFFD")
}
