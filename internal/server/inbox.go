package server

import (
	"context"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/call"
	"github.com/tutti-project/tutti/internal/action/catalogue"
	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// inbox takes what the broker brings from agents.
type inbox struct {
	jobs     *job.Service
	events   *event.Service
	register *broker.Register
	calls    *call.Caller
	// catalogue knows what agents told of themselves, and asks them for more.
	catalogue *catalogue.Service
	others    *others // servers that may have asked what is answered; nil: there are none
}

// handlers is what becomes of messages that agents send to this server, by their
// type. What is not in here is answered with an error.
func (i inbox) handlers() map[string]broker.Handler {
	return map[string]broker.Handler{
		wire.ProvisionalResponse: i.accepted,
		wire.NonBlockingResponse: i.response(job.Response),
		wire.BlockingResponse:    i.response(job.Reply),
		wire.RPCError:            i.failure,
		wire.RunEvents:           i.happened,
		wire.AgentTold:           i.told,
	}
}

// joined hints that an agent is there.
func (i inbox) joined(who broker.Presence) {
	if who.URI == agentOf(who.Certname) {
		i.register.Came(who)
		i.jobs.Came(who.Certname)
		i.calls.Came(who.Certname)
		i.events.Agent(who.Certname, event.Connect, who.Agent)
	}
}

// left hints that an agent is gone. A server that stops knows nothing of its agents.
func (i inbox) left(who broker.Presence, why broker.Farewell) {
	if who.URI != agentOf(who.Certname) {
		return
	}
	i.register.Went(who, time.Now())
	i.jobs.Went(who.Certname)
	i.calls.Went(who.Certname)
	if why.Ends() {
		i.events.Agent(who.Certname, event.Shutdown, who.Agent)
	}
	if why != broker.Stopping {
		i.events.Agent(who.Certname, event.Disconnect, why.Reason)
	}
}

// accepted takes the word of an agent that it has an order.
func (i inbox) accepted(ctx context.Context, from broker.Presence, m wire.Message) error {
	said, err := pxp.ParseProvisional(m.Data)
	if err != nil {
		return err
	}
	return i.jobs.Observe(ctx, job.Answer{Node: from.Certname, Kind: job.Provisional, Transaction: said.Transaction})
}

// response takes results.
func (i inbox) response(kind job.AnswerKind) broker.Handler {
	return func(ctx context.Context, from broker.Presence, m wire.Message) error {
		said, err := pxp.ParseResponse(m.Data)
		if err != nil {
			return err
		}
		if theirs, err := i.others.forward(ctx, from, m, said.Transaction); theirs {
			return err
		}
		if strings.HasPrefix(said.Transaction, hinted) ||
			i.calls.Answered(ctx, call.Reply{Node: from.Certname, Transaction: said.Transaction, Results: said.Results}) ||
			i.catalogue.Answered(ctx, from.Certname, said.Transaction, said.Results) {
			return nil
		}
		return i.jobs.Observe(ctx, job.Answer{Node: from.Certname, Kind: kind, Transaction: said.Transaction, Results: said.Results})
	}
}

// failure takes the word of an agent that it did not do what it was asked.
func (i inbox) failure(ctx context.Context, from broker.Presence, m wire.Message) error {
	said, err := pxp.ParseFailure(m.Data)
	if err != nil {
		return err
	}
	if theirs, err := i.others.forward(ctx, from, m, said.Transaction); theirs {
		return err
	}
	// An agent that knows no hints asks on its schedule.
	if strings.HasPrefix(said.Transaction, hinted) ||
		i.catalogue.Refused(ctx, from.Certname, said.Transaction, said.Description) {
		return nil
	}
	reply := call.Reply{
		Node: from.Certname, Transaction: said.Transaction, Results: said.Results, Failed: true, Description: said.Description, Code: said.Code,
	}
	if i.calls.Answered(ctx, reply) {
		return nil
	}
	return i.jobs.Observe(ctx, job.Answer{
		Node:        from.Certname,
		Kind:        job.Failure,
		Transaction: said.Transaction,
		Description: said.Description,
		Aborted:     said.Code == uint8(action.Aborted),
	})
}

// happened takes events of a run of the node that sends them.
func (i inbox) happened(ctx context.Context, from broker.Presence, m wire.Message) error {
	if from.URI != agentOf(from.Certname) {
		return fault.New(fault.Denied, "events of runs are taken from agents only")
	}
	said, err := pxp.ParseRunEvents(m.Data)
	if err != nil {
		return err
	}
	return i.events.Take(ctx, event.Batch{Node: from.Certname, Run: said.Run, Events: said.Events}, len(m.Data))
}

// told takes what an agent says of itself.
func (i inbox) told(_ context.Context, from broker.Presence, m wire.Message) error {
	if from.URI != agentOf(from.Certname) {
		return fault.New(fault.Denied, "only agents tell what they are")
	}
	said, err := pxp.ParseAgentTold(m.Data)
	if err != nil {
		return err
	}
	if said.Begun {
		i.events.Agent(from.Certname, event.Startup, ownAgent+said.Version)
	}
	return i.catalogue.Told(from.Certname, said)
}
