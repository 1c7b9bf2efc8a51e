package orders

import (
	"context"
	"errors"
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
	w.send(ctx, w.failure(o, nil, text))
}

// failure is the message that says why there are no results: text, unless err is an action's own word.
func (w answers) failure(o Order, err error, text string) wire.Message {
	return w.message(o.Requester, wire.RPCError, pxp.Data(failureOf(o, err, text)))
}

func (w answers) respond(ctx context.Context, o Order, results jsontext.Value) {
	w.send(ctx, w.response(o, results))
}

// response is the message with results; or with an error, if it would be too big.
func (w answers) response(o Order, results jsontext.Value) wire.Message {
	data := pxp.Data(pxp.Response{Transaction: o.Transaction, Results: results})
	if len(data) > w.most {
		return w.failure(o, nil, tooBig(len(data), w.most))
	}
	kind := wire.NonBlockingResponse
	if o.Blocking {
		kind = wire.BlockingResponse
	}
	return w.message(o.Requester, kind, data)
}

// outcome is the message that tells how a transaction ended.
func (w answers) outcome(o Order, r Record, action Action, output Output) wire.Message {
	results, err := jsontext.Value(nil), error(nil)
	if r.Error == "" || output.Exit != nil {
		results, err = resultsOf(o.label(), action, output)
	}
	if err == nil && r.Aborted {
		err = &Aborted{Message: r.Error}
	}
	if r.Error != "" {
		return w.failure(o, err, r.Error)
	}
	if err != nil {
		return w.failure(o, err, err.Error())
	}
	return w.response(o, results)
}

// failed logs an error, and returns what its requester is told.
func (w answers) failed(ctx context.Context, label string, err error) string {
	w.logFailure(ctx, label, err)
	return describe(label, err)
}

// reason is failed for who asked a question: it is told the reason alone.
func (w answers) reason(ctx context.Context, label string, err error) string {
	w.logFailure(ctx, label, err)
	if detail := fault.Detail(err); detail != "" {
		return detail
	}
	return describe(label, err)
}

// logFailure logs what only the log of the node may have.
func (w answers) logFailure(ctx context.Context, label string, err error) {
	if _, aborted := errors.AsType[*Aborted](err); !aborted && fault.Detail(err) == "" {
		w.log.ErrorContext(ctx, "order failed", "order", label, "err", err)
	}
}

// readable makes text of what may be anything.
func readable(b []byte) string {
	return strings.ToValidUTF8(strings.ReplaceAll(string(b), "\x00", "\uFFFD"), "\uFFFD")
}
