package modules

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// metadata is what a module says of itself.
type metadata struct {
	Description   *string        `json:"description"`
	Configuration jsontext.Value `json:"configuration"`
	Actions       []struct {
		Name    string         `json:"name"`
		Input   jsontext.Value `json:"input"`
		Results jsontext.Value `json:"results"`
	} `json:"actions"`
}

func parseMetadata(text []byte) (metadata, error) {
	var m metadata
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("its metadata is not JSON of the right shape: %w", err)
	}
	switch {
	case m.Description == nil:
		return m, errors.New("its metadata has no description")
	case len(m.Actions) == 0:
		return m, errors.New("its metadata has no actions")
	}
	for _, a := range m.Actions {
		if a.Name == "" || len(a.Name) > pxp.MaxNameBytes {
			return m, fmt.Errorf("its metadata has an action whose name is not 1 to %d bytes long", pxp.MaxNameBytes)
		}
		if a.Input.Kind() != '{' || a.Results.Kind() != '{' {
			return m, fmt.Errorf("its metadata gives no schema for input and results of the action %s", a.Name)
		}
	}
	return m, nil
}

// module checks the configuration, compiles the schemas, and makes actions of them.
func (m metadata) module(name string, line []string, configuration []byte) (orders.Module, error) {
	if configuration != nil {
		if err := m.checkConfiguration(configuration); err != nil {
			return orders.Module{}, err
		}
	}
	actions := map[string]orders.Action{}
	for _, a := range m.Actions {
		input, err := compile(a.Input)
		if err != nil {
			return orders.Module{}, fmt.Errorf("its schema for the input of %s: %w", a.Name, err)
		}
		results, err := compile(a.Results)
		if err != nil {
			return orders.Module{}, fmt.Errorf("its schema for the results of %s: %w", a.Name, err)
		}
		x := action{line: line, name: a.Name, configuration: configuration, results: results}
		actions[a.Name] = orders.Action{
			Check:   func(params jsontext.Value) error { return fits(input, params) },
			Prepare: x.prepare, Results: x.checked,
		}
	}
	return orders.Module{Name: name, Actions: actions}, nil
}

func (m metadata) checkConfiguration(text []byte) error {
	if !jsontext.Value(text).IsValid() {
		return errors.New("its configuration is not JSON")
	}
	if m.Configuration == nil {
		return nil
	}
	schema, err := compile(m.Configuration)
	if err != nil {
		return fmt.Errorf("its schema for its configuration: %w", err)
	}
	if err := fits(schema, text); err != nil {
		return fmt.Errorf("its configuration does not fit: %w", err)
	}
	return nil
}

// compile makes a schema usable. It may refer to nothing outside.
func compile(text jsontext.Value) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	const name = "schema.json"
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft4)
	compiler.UseLoader(closed{})
	if err := compiler.AddResource(name, document); err != nil {
		return nil, err
	}
	return compiler.Compile(name)
}

// closed loads nothing.
type closed struct{}

func (closed) Load(url string) (any, error) {
	return nil, fmt.Errorf("it refers to %s, which is outside", url)
}

// fits is an Invalid fault that says where a value does not fit a schema.
func fits(schema *jsonschema.Schema, text []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "it is not JSON")
	}
	err = schema.Validate(value)
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.Invalid, err, "%s", where(err))
}

// where names the places that do not fit, and what is expected there: never the
// values, which may be secret.
func where(err error) string {
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return "it does not fit the schema"
	}
	var places []string
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		for _, cause := range e.Causes {
			walk(cause)
		}
		if len(e.Causes) == 0 && len(places) < 5 {
			places = append(places, fmt.Sprintf("field /%s: does not fit %s of the schema", strings.Join(e.InstanceLocation, "/"), strings.Join(e.ErrorKind.KeywordPath(), "/")))
		}
	}
	walk(invalid)
	return strings.Join(places, "; ")
}

// action is one action of an executable.
type action struct {
	line          []string
	name          string
	configuration jsontext.Value // nil: none
	results       *jsonschema.Schema
}

func (a action) prepare(_ context.Context, o orders.Order) (orders.Command, error) {
	input := struct {
		Input         jsontext.Value `json:"input"`
		Configuration jsontext.Value `json:"configuration,omitzero"`
	}{o.Params, a.configuration}
	args := append(append([]string{}, a.line[1:]...), a.name)
	return orders.Command{Path: a.line[0], Args: args, Input: pxp.Data(input)}, nil
}

// checked are the results that a program printed, if they fit.
func (a action) checked(o orders.Output) (jsontext.Value, error) {
	value, err := orders.Results(o)
	if err != nil {
		return nil, err
	}
	if err := fits(a.results, value); err == nil {
		return value, nil
	}
	if len(bytes.TrimSpace(o.Stdout)) == 0 {
		return nil, errors.New("returned no results on stdout - stderr: " + orders.ErrorText(o))
	}
	return nil, errors.New("returned invalid results on stdout: " + string(o.Stdout) + " - stderr: " + orders.ErrorText(o))
}
