package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Call does what an action is for. Its input fits the schema of the action; its results are written as JSON and must fit theirs. ctx ends
// when the action's time is over.
type Call func(ctx context.Context, input jsontext.Value) (results any, err error)

// Module is a module of the agent.
type Module struct {
	Name     string
	Metadata []byte // its description, JSON
	Calls    map[string]Call
	Off      []string // actions that the node's owner has to allow by name: see orders.Policy
	// Programs are those of its acting actions that another program does than Main. Their Check, if there is one, comes before that of the
	// description, which also says their Timeout.
	Programs map[string]orders.Action
}

// Data answers one question of get_data with fields. It changes nothing, and that something is not there is an answer, too.
type Data func(ctx context.Context, query string) (fields any, err error)

// Typed is a Call whose input is a type.
func Typed[Input any](do func(context.Context, Input) (any, error)) Call {
	return func(ctx context.Context, text jsontext.Value) (any, error) {
		var input Input
		if err := json.Unmarshal(text, &input); err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "the input is not what the action takes")
		}
		return do(ctx, input)
	}
}

// Abort is the error of an action that could not do what it was asked for, in one sentence.
func Abort(format string, args ...any) error {
	return &orders.Aborted{Message: fmt.Sprintf(format, args...)}
}

// AbortWith is Abort with data for whoever asked.
func AbortWith(data any, format string, args ...any) error {
	return &orders.Aborted{Message: fmt.Sprintf(format, args...), Data: pxp.Data(data)}
}

// Describe is the description of a module.
func (m Module) Describe() (action.Module, error) {
	described, err := action.Decode(m.Name, m.Metadata)
	described.Provider = action.BuiltIn
	return described, err
}

// Orders makes modules for the engine. program starts the agent's binary so that it does Main.
func Orders(modules []Module, program []string) ([]orders.Module, error) {
	var made []orders.Module
	for _, m := range modules {
		described, err := m.Describe()
		if err != nil {
			return nil, fmt.Errorf("built-in module %s: %w", m.Name, err)
		}
		one := orders.Module{Name: m.Name, Description: &described, Actions: map[string]orders.Action{}}
		for _, a := range described.Actions {
			made := m.order(a, program)
			made.Off = slices.Contains(m.Off, a.Name)
			one.Actions[a.Name] = made
		}
		made = append(made, one)
	}
	return made, nil
}

func (m Module) order(a action.Action, program []string) orders.Action {
	if a.ReadOnly {
		return orders.Action{Check: a.CheckInput, Timeout: a.Limit(), Read: func(ctx context.Context, o orders.Order) (jsontext.Value, error) {
			return m.call(ctx, a, o.Params)
		}}
	}
	if own, ok := m.Programs[a.Name]; ok {
		first := own.Check
		own.Timeout, own.Check = a.Limit(), func(input jsontext.Value) error {
			if first != nil {
				if err := first(input); err != nil {
					return err
				}
			}
			return a.CheckInput(input)
		}
		return own
	}
	return orders.Action{
		Check: a.CheckInput, Timeout: a.Limit(), Results: orders.ActionResults,
		Prepare: func(_ context.Context, o orders.Order) (orders.Command, error) {
			args := append(slices.Clone(program[1:]), m.Name, a.Name)
			return orders.Command{Path: program[0], Args: args, Input: o.Params}, nil
		},
	}
}

// call does an action, and holds its results to their schema.
func (m Module) call(ctx context.Context, a action.Action, input jsontext.Value) (jsontext.Value, error) {
	results, err := m.Calls[a.Name](ctx, input)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(results)
	if err != nil {
		return nil, err
	}
	schema, err := action.Compile(a.Results)
	if err != nil {
		return nil, err
	}
	if err := schema.Check(text); err != nil {
		return nil, fault.New(fault.Unavailable, "what %s %s gives does not fit its schema: %s", m.Name, a.Name, fault.Detail(err))
	}
	return text, nil
}

// maxInputBytes bounds what a process reads for one action.
const maxInputBytes = pxp.MaxParamsBytes

// Main does one action in a process of its own: input on in, results on out. When it returns false the action was not done, out has
// what orders.ActionResults reads, and errs says why.
func Main(ctx context.Context, modules []Module, module, name string, in io.Reader, out, errs io.Writer) bool {
	results, err := perform(ctx, modules, module, name, in)
	if err == nil {
		_, err = out.Write(results)
	}
	if err == nil {
		return true
	}
	aborted, ok := errors.AsType[*orders.Aborted](err)
	if !ok {
		aborted = &orders.Aborted{Message: fault.Detail(err)}
		if aborted.Message == "" {
			aborted.Message = err.Error()
		}
	}
	_, _ = fmt.Fprintln(errs, aborted.Message) // the watcher keeps both
	_, _ = out.Write(aborted.Data)
	return false
}

func perform(ctx context.Context, modules []Module, module, name string, in io.Reader) (jsontext.Value, error) {
	i := slices.IndexFunc(modules, func(m Module) bool { return m.Name == module })
	if i < 0 {
		return nil, fault.New(fault.NotFound, "%s: %s", pxp.UnknownModule, module)
	}
	described, err := modules[i].Describe()
	if err != nil {
		return nil, err
	}
	a, found := described.Find(name)
	if found && modules[i].Calls[name] == nil {
		return nil, fault.New(fault.NotFound, "%s %s is done by another program", module, name)
	}
	if !found {
		return nil, fault.New(fault.NotFound, "%s '%s' for module '%s'", pxp.UnknownAction, name, module)
	}
	input, err := io.ReadAll(io.LimitReader(in, maxInputBytes))
	if err != nil {
		return nil, err
	}
	if err := a.CheckInput(input); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, a.Limit())
	defer cancel()
	return modules[i].call(limited, a, input)
}
