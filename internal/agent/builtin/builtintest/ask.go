// Package builtintest asks built-in modules in tests as the agent does: what they take and give is held to their schemas.
package builtintest

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/agent/builtin"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
)

// Ask does an action: its results, or why it was not done and the data that came with it.
func Ask(tb testing.TB, m builtin.Module, action, input string) (results, why string) {
	tb.Helper()
	made, err := builtin.Orders([]builtin.Module{m}, []string{"tutti"})
	if err != nil {
		tb.Fatal(err)
	}
	a, there := made[0].Actions[action]
	if !there {
		tb.Fatalf("%s has no action %s", m.Name, action)
	}
	if err := a.Check(jsontext.Value(input)); err != nil {
		return "", fault.Detail(err)
	}
	if a.Read == nil {
		var out, errs bytes.Buffer
		builtin.Main(tb.Context(), []builtin.Module{m}, m.Name, action, strings.NewReader(input), &out, &errs)
		return out.String(), strings.TrimSuffix(errs.String(), "\n")
	}
	text, err := Read(tb, a, input)
	if aborted, ok := errors.AsType[*orders.Aborted](err); ok {
		return string(aborted.Data), aborted.Message
	}
	if err != nil {
		return "", err.Error()
	}
	return text, ""
}

// Read asks an action that only reads: its results, or the error that the agent gets.
func Read(tb testing.TB, a orders.Action, input string) (results string, err error) {
	tb.Helper()
	if err := a.Check(jsontext.Value(input)); err != nil {
		return "", err
	}
	text, err := a.Read(tb.Context(), orders.Order{Params: jsontext.Value(input)})
	return string(text), err
}

// ReadFields is Read with the results as an object.
func ReadFields(tb testing.TB, a orders.Action, input string) (results map[string]any, err error) {
	tb.Helper()
	text, err := Read(tb, a, input)
	if err != nil {
		return nil, err
	}
	return results, json.Unmarshal([]byte(text), &results)
}

// Fields is Ask with the results as an object.
func Fields(tb testing.TB, m builtin.Module, action, input string) (results map[string]any, why string) {
	tb.Helper()
	text, why := Ask(tb, m, action, input)
	if text == "" {
		return nil, why
	}
	if err := json.Unmarshal([]byte(text), &results); err != nil {
		tb.Fatal(err)
	}
	return results, why
}
