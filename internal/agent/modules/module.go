package modules

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// external is a module that is an executable.
type external struct {
	line          []string
	configuration jsontext.Value // nil: none
}

// module checks the configuration and makes actions of what the module says of itself.
func (x external) module(described action.Module) (orders.Module, error) {
	described.Provider = action.External
	if x.configuration != nil {
		if err := checkConfiguration(described, x.configuration); err != nil {
			return orders.Module{}, err
		}
	}
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
		actions[a.Name] = orders.Action{
			Timeout: a.Timeout.Duration(),
			Check:   func(params jsontext.Value) error { return input.Check(params) },
			Prepare: x.prepare(a.Name), Results: checked(results),
		}
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

func (x external) prepare(name string) func(context.Context, orders.Order) (orders.Command, error) {
	return func(_ context.Context, o orders.Order) (orders.Command, error) {
		input := struct {
			Input         jsontext.Value `json:"input"`
			Configuration jsontext.Value `json:"configuration,omitzero"`
		}{o.Params, x.configuration}
		return orders.Command{Path: x.line[0], Args: append(slices.Clone(x.line[1:]), name), Input: pxp.Data(input)}, nil
	}
}

// checked makes results of what a program printed, if they fit.
func checked(schema *action.Schema) func(orders.Output) (jsontext.Value, error) {
	return func(o orders.Output) (jsontext.Value, error) {
		value, err := orders.Results(o)
		if err != nil {
			return nil, err
		}
		misfit := schema.Check(value)
		switch {
		case misfit == nil:
			return value, nil
		case len(bytes.TrimSpace(o.Stdout)) == 0:
			return nil, errors.New("returned no results on stdout - stderr: " + orders.ErrorText(o))
		}
		return nil, errors.New("returned invalid results on stdout: " + string(o.Stdout) + " - stderr: " + orders.ErrorText(o))
	}
}
