package modules

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// contract fills in how an action is done.
type contract func(a action.Action, results *action.Schema, into *orders.Action)

// module makes orders of what a module says of itself.
func (s state) module(by contract) (orders.Module, error) {
	described, places := s.described, make(chan struct{}, maxReading)
	actions := map[string]orders.Action{}
	for _, a := range described.Actions {
		input, err := action.Compile(a.Input)
		if err != nil {
			return orders.Module{}, err
		}
		results, err := action.Compile(a.Results)
		if err != nil {
			return orders.Module{}, err
		}
		one := orders.Action{Timeout: a.Timeout.Duration(), Check: func(params jsontext.Value) error { return input.Check(params) }}
		by(a, results, &one)
		if a.ReadOnly {
			reads(&one, places)
		}
		actions[a.Name] = one
	}
	return orders.Module{Name: described.Name, Description: &described, Actions: actions}, nil
}

func checkConfiguration(described action.Module, text jsontext.Value) error {
	if !text.IsValid() {
		return errors.New("its configuration is not JSON")
	}
	if described.Configuration == nil {
		return nil
	}
	schema, err := action.Compile(described.Configuration)
	if err != nil {
		return err
	}
	if err := schema.Check(text); err != nil {
		return fmt.Errorf("its configuration does not fit: %s", fault.Detail(err))
	}
	return nil
}

// pxp is pxp-agent's contract.
func (k *kept) pxp(a action.Action, results *action.Schema, into *orders.Action) {
	into.Prepare = func(ctx context.Context, o orders.Order) (orders.Command, error) {
		now, err := k.fresh(ctx)
		if err != nil {
			return orders.Command{}, err
		}
		input := struct {
			Input         jsontext.Value `json:"input"`
			Configuration jsontext.Value `json:"configuration,omitzero"`
		}{o.Params, now.configuration}
		line := commandLine(k.found.program)
		return orders.Command{Path: line[0], Args: append(slices.Clone(line[1:]), a.Name), Input: pxp.Data(input)}, nil
	}
	into.Results = checked(results)
}

// checked makes results of what a program printed, if they fit. If it failed besides, it says itself why; nothing is no result of one that failed.
func checked(schema *action.Schema) func(orders.Output) (jsontext.Value, error) {
	return func(o orders.Output) (jsontext.Value, error) {
		value, err := orders.Results(o)
		printed, failed := len(bytes.TrimSpace(o.Stdout)) > 0, o.Exit != nil && *o.Exit != 0
		if err == nil && (printed || !failed) && schema.Check(value) == nil {
			return value, nil
		}
		if strings.TrimSpace(string(o.Stderr)) != "" {
			if _, why := orders.ActionResults(o); isAborted(why) {
				return nil, why
			}
		}
		switch {
		case err != nil:
			return nil, err
		case !printed:
			return nil, errors.New("returned no results on stdout - stderr: " + orders.ErrorText(o))
		}
		return nil, errors.New("returned invalid results on stdout: " + string(o.Stdout) + " - stderr: " + orders.ErrorText(o))
	}
}

func isAborted(err error) bool {
	_, is := errors.AsType[*orders.Aborted](err)
	return is
}
