package orders

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// ownModules are those that need nothing but the engine.
func (e *Engine) ownModules() []Module {
	return []Module{
		{Name: pxp.Ping, Actions: map[string]Action{pxp.Ping: {Check: checked(pxp.ParsePing), Answer: ping}}},
		{Name: pxp.Echo, Actions: map[string]Action{pxp.Echo: {Check: checked(pxp.ParseEcho), Answer: echo}}},
		{Name: pxp.Status, Actions: map[string]Action{pxp.Query: {Check: checked(pxp.ParseStatus), Answer: e.status.query}}},
		{Name: pxp.Transaction, Actions: map[string]Action{pxp.Cancel: {Check: checked(pxp.ParseCancel), Answer: e.cancel}}},
		{Name: pxp.Modules, Actions: map[string]Action{
			pxp.List:     {Check: checked(pxp.ParseList), Answer: e.listModules},
			pxp.Describe: {Check: checked(pxp.ParseDescribe), Answer: e.describeModule},
			pxp.Changed:  {Check: checked(pxp.ParseList), Answer: e.suppliesChanged},
		}},
	}
}

// checked is a parser as a check.
func checked[P any](parse func(jsontext.Value) (P, error)) func(jsontext.Value) error {
	return func(params jsontext.Value) error {
		_, err := parse(params)
		return err
	}
}

func ping(Order) (jsontext.Value, error) {
	return pxp.Data(pxp.PingResults{Hops: []jsontext.Value{}}), nil
}

func echo(o Order) (jsontext.Value, error) {
	p, err := pxp.ParseEcho(o.Params)
	return pxp.Data(pxp.EchoResults{Outcome: p.Argument}), err
}

// cancel stops a transaction: one that waits or prepares ends at once, a program is asked
// to end. Its outcome says so.
func (e *Engine) cancel(o Order) (jsontext.Value, error) {
	p, err := pxp.ParseCancel(o.Params)
	if err != nil {
		return nil, err
	}
	if e.stop(p.Transaction, p.Reason) {
		return pxp.Data(pxp.CancelResults{Transaction: p.Transaction, Status: pxp.Running}), nil
	}
	status, err := e.status.of(p.Transaction)
	return pxp.Data(pxp.CancelResults{Transaction: p.Transaction, Status: status.Status}), err
}

// stop stops an active transaction; false: there is none.
func (e *Engine) stop(transaction, reason string) bool {
	ctx := context.Background() // for the log only
	a, state, withdrawn := e.turns.stop(transaction)
	if a == nil {
		return false
	}
	if reason == "" {
		reason = "no reason was given"
	}
	if err := a.save(e.cfg.Spool, func(r *Record) { r.Stop = reason }); err != nil {
		e.cfg.Log.ErrorContext(ctx, "cancellation not kept", "transaction", transaction, "err", err)
	}
	switch {
	case withdrawn:
		<-a.told
		e.finish(ctx, a, errStopped)
	case state != running:
		a.cancel(errStopped)
	default:
		if err := e.cfg.Runner.Stop(a.order.Place); err != nil {
			e.cfg.Log.ErrorContext(ctx, "program not stopped", "transaction", transaction, "err", err)
		}
	}
	return true
}

// status says how far transactions are.
type status struct {
	spool   Spool
	runner  Runner
	modules *modules
	turns   *turns
}

func (q status) query(o Order) (jsontext.Value, error) {
	p, err := pxp.ParseStatus(o.Params)
	if err != nil {
		return nil, err
	}
	results, err := q.of(p.Transaction)
	return pxp.Data(results), err
}

// of says how far a transaction is. Only what is over has an exit code.
func (q status) of(transaction string) (pxp.StatusResults, error) {
	s := pxp.StatusResults{Transaction: transaction, Status: pxp.Unknown}
	if possible := pxp.CheckTransaction(transaction) == nil; !possible {
		s.Stdout = wrapped("found no results directory")
		return s, nil
	}
	if q.turns.isActive(transaction) {
		s.Status = pxp.Running
		return s, nil
	}
	r, err := q.spool.Load(transaction)
	switch {
	case fault.Of(err) == fault.NotFound:
		s.Stdout = wrapped("found no results directory")
		return s, nil
	case err != nil: // unknown is the answer
		s.Stdout = wrapped("the record of the transaction cannot be read")
		return s, nil //nolint:nilerr // see above
	case !q.modules.has(r.Module):
		s.Stdout = wrapped("the module " + r.Module + " is not there any more")
		return s, nil
	case r.Status == Running:
		return q.unsettled(s, r)
	}
	output, err := q.spool.Output(transaction)
	if err != nil {
		return s, err
	}
	return settled(s, r, output), nil
}

// unsettled is for the moment between the last word of a work that ended and its record.
func (q status) unsettled(s pxp.StatusResults, r Record) (pxp.StatusResults, error) {
	output, err := q.spool.Output(r.Transaction)
	if err != nil {
		return s, err
	}
	switch {
	case output.Exit != nil:
		conclude(&r, orderOf(r).label(), q.modules.of(r), output, nil)
		return settled(s, r, output), nil
	case q.runner.Alive(q.spool.Place(r.Transaction)):
		s.Status = pxp.Running
	case output.Begun:
		s.Stdout = wrapped(pxp.Vanished + ", but no output is available")
	default:
		s.Stdout = wrapped("the PID and output of this task are not available")
	}
	return s, nil
}

// settled is the answer for what is over. An error takes the place of the output.
func settled(s pxp.StatusResults, r Record, o Output) pxp.StatusResults {
	s.Stdout, s.Stderr = readable(o.Stdout), readable(o.Stderr)
	if r.Error != "" {
		s.Stdout = wrapped(r.Error)
	}
	if r.Status == Undetermined {
		return s
	}
	exit := 0
	if o.Exit != nil {
		exit = *o.Exit
	}
	s.ExitCode, s.Status = &exit, pxp.Failed
	if r.Status == Success && exit == 0 {
		s.Status = pxp.Success
	}
	return s
}

// wrapped is an error in place of output.
func wrapped(message string) string {
	type details struct{}
	type problem struct {
		Kind    string  `json:"kind"`
		Details details `json:"details"`
		Message string  `json:"msg"`
	}
	return string(pxp.Data(struct {
		Error problem `json:"_error"`
	}{problem{Kind: "puppetlabs.pxp-agent/execution-error", Message: message}}))
}
