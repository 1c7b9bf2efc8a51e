package agent

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/agent/modules"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/agent/process"
	"github.com/tutti-project/tutti/internal/agent/spool"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Trial is an action of a module to try on this machine, as an agent does it that no server has asked.
type Trial struct {
	Binary    string // this program
	Path      string // of the module: its executable, or folder of executables
	ConfigDir string // of its configuration
	Action    string
	Texts     map[string]string          // the input as text
	Values    map[string]json.RawMessage // and as JSON
	Log       *slog.Logger               // of the module
}

// Tried is what came of a trial.
type Tried struct {
	Module string
	Action action.Action
	Answer action.Answer
	Stderr string // what the program said besides, if it was done
}

// Try loads the module, checks the input, and does the action in an engine of its own. What the action itself did wrong is its answer; errors are
// those of the module and of the input.
func (t Trial) Try(ctx context.Context) (done Tried, err error) {
	cfg := modulesConfig(t.Binary, t.ConfigDir, t.Log)
	module, err := modules.LoadFile(ctx, cfg, t.Path)
	if err != nil {
		return done, err
	}
	var known bool
	if done.Action, known = module.Description.Find(t.Action); !known {
		var names []string
		for _, a := range module.Description.Actions {
			names = append(names, a.Name)
		}
		return done, &fault.Error{
			Kind: fault.Invalid, Detail: pxp.UnknownAction + " '" + t.Action + "' for module '" + module.Name + "'", Hint: fault.DidYouMean(t.Action, names),
		}
	}
	schema, err := action.Compile(done.Action.Input)
	if err != nil {
		return done, err
	}
	input, err := schema.Arguments(t.Texts, t.Values)
	if err != nil {
		return done, fault.Wrap(fault.Of(err), err, "invalid input for '%s %s': %s", module.Name, t.Action, fault.Detail(err))
	}
	done.Module = module.Name
	dir, err := os.MkdirTemp("", "tutti-try-")
	if err != nil {
		return done, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	err = t.do(ctx, dir, module, pxp.Request{Module: module.Name, Action: t.Action, Params: input}, &done)
	return done, err
}

// do gives the order to an engine, and waits for the outcome. When ctx ends the order is cancelled.
func (t Trial) do(ctx context.Context, dir string, module orders.Module, request pxp.Request, done *Tried) error {
	quiet := slog.New(slog.DiscardHandler)
	kept, err := spool.Open(filepath.Join(dir, "spool"), quiet)
	if err != nil {
		return err
	}
	defer func() { _ = kept.Close() }()
	said := make(chan wire.Message, 16)
	engine := orders.New(orders.Config{
		Spool: kept, Runner: process.New(process.Config{Watcher: []string{t.Binary, "errand", "watch"}}), Modules: []orders.Module{module}, Log: quiet,
	})
	defer engine.Close()
	engine.Connected(func(m wire.Message) error { said <- m; return nil })
	life := context.WithoutCancel(ctx)
	request.Transaction, request.NotifyOutcome = uuid.NewString(), true
	engine.Handle(life, order(wire.NonBlockingRequest, request))
	ended := ctx.Done()
	for {
		select {
		case <-ended:
			ended = nil
			engine.Handle(life, order(wire.BlockingRequest, pxp.Request{
				Transaction: uuid.NewString(), Module: pxp.Transaction, Action: pxp.Cancel, Params: pxp.Data(pxp.CancelParams{Transaction: request.Transaction}),
			}))
		case m := <-said:
			if m.Type != wire.NonBlockingResponse && m.Type != wire.RPCError {
				continue
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if output, err := kept.Output(request.Transaction); err == nil {
				done.Stderr = string(output.Stderr)
			}
			done.Answer, err = answerOf(m)
			return err
		}
	}
}

func order(kind string, request pxp.Request) wire.Message {
	return wire.Message{ID: uuid.NewString(), Type: kind, Sender: wire.Broker, Data: pxp.Data(request)}
}

// answerOf is what the engine's message says of the action.
func answerOf(m wire.Message) (a action.Answer, err error) {
	if m.Type == wire.NonBlockingResponse {
		response, err := pxp.ParseResponse(m.Data)
		return action.Answer{Data: response.Results}, err
	}
	var failure pxp.Failure
	if err := json.Unmarshal(m.Data, &failure); err != nil {
		return a, err
	}
	a = action.Answer{Code: action.Code(failure.Code), Message: failure.Description, Data: failure.Results}
	if a.Code == action.Done {
		a.Code = action.Other
	}
	return a, nil
}
