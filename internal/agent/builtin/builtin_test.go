package builtin_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/agent/builtin"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
)

type lamp struct{ Name string }

func lamps() []builtin.Module {
	schema := `{"type":"object","additionalProperties":false,"required":["name"],"properties":{"name":{"type":"string"}}}`
	results := `{"type":"object","required":["state"],"properties":{"state":{"type":"string"}}}`
	type state struct {
		State any `json:"state"`
	}
	return []builtin.Module{{
		Name: "lamp",
		Metadata: []byte(`{"description":"Lamps","actions":[
			{"name":"status","read_only":true,"timeout":5,"input":` + schema + `,"results":` + results + `},
			{"name":"on","timeout":7,"input":` + schema + `,"results":` + results + `},
			{"name":"spin","timeout":9,"input":` + schema + `,"results":` + results + `}]}`),
		Programs: map[string]orders.Action{"spin": {
			Lane:  orders.PuppetRun,
			Check: func(jsontext.Value) error { return fault.New(fault.Invalid, "it is fixed") },
			Prepare: func(context.Context, orders.Order) (orders.Command, error) {
				return orders.Command{Path: "/bin/spin"}, nil
			},
		}},
		Calls: map[string]builtin.Call{
			"status": builtin.Typed(func(_ context.Context, l lamp) (any, error) {
				switch l.Name {
				case "broken":
					return nil, errors.New("secret wiring")
				case "wrong":
					return state{1}, nil
				}
				return state{"off"}, nil
			}),
			"on": builtin.Typed(func(_ context.Context, l lamp) (any, error) {
				if l.Name == "dead" {
					return nil, builtin.AbortWith(state{"off"}, "the lamp %s has no bulb", l.Name)
				}
				return state{"on"}, nil
			}),
		},
	}}
}

func TestOrders(t *testing.T) {
	t.Parallel()
	modules, err := builtin.Orders(lamps(), []string{"/bin/tutti", "errand", "action"})
	if err != nil || len(modules) != 1 || modules[0].Description.Name != "lamp" {
		t.Fatalf("%v, %v", modules, err)
	}
	status, on := modules[0].Actions["status"], modules[0].Actions["on"]
	if status.Read == nil || status.Prepare != nil || on.Read != nil || on.Prepare == nil || status.Timeout.Seconds() != 5 || on.Timeout.Seconds() != 7 {
		t.Errorf("status %+v, on %+v", status, on)
	}
	if err := status.Check(jsontext.Value(`{}`)); fault.Detail(err) != "field name: it is missing" {
		t.Error(err)
	}
	results, err := status.Read(t.Context(), orders.Order{Params: jsontext.Value(`{"name":"a"}`)})
	if err != nil || string(results) != `{"state":"off"}` {
		t.Errorf("%s, %v", results, err)
	}
	if _, err := status.Read(t.Context(), orders.Order{
		Params: jsontext.Value(`{"name":"wrong"}`),
	}); fault.Detail(err) != "what lamp status gives does not fit its schema: field state: it must be of the type string" {
		t.Errorf("results that do not fit: %v", err)
	}
	spin := modules[0].Actions["spin"]
	program, err := spin.Prepare(t.Context(), orders.Order{})
	if err != nil || program.Path != "/bin/spin" || spin.Lane != orders.PuppetRun || spin.Timeout.Seconds() != 9 {
		t.Errorf("spin %+v, %+v, %v", spin, program, err)
	}
	if err := spin.Check(jsontext.Value(`{}`)); fault.Detail(err) != "it is fixed" {
		t.Error(err)
	}
	command, err := on.Prepare(t.Context(), orders.Order{Params: jsontext.Value(`{"name":"a"}`)})
	want := orders.Command{Path: "/bin/tutti", Args: []string{"errand", "action", "lamp", "on"}, Input: []byte(`{"name":"a"}`)}
	if diff := cmp.Diff(want, command); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestOneActionInAProcess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		module, action, input string
		done                  bool
		out, errs             string
	}{
		{"lamp", "on", `{"name":"a"}`, true, `{"state":"on"}`, ""},
		{"lamp", "on", `{"name":"dead"}`, false, `{"state":"off"}`, "the lamp dead has no bulb\n"},
		{"lamp", "on", `{}`, false, "", "field name: it is missing\n"},
		{"lamp", "status", `{"name":"broken"}`, false, "", "secret wiring\n"},
		{"lamp", "spin", `{"name":"a"}`, false, "", "lamp spin is done by another program\n"},
		{"lamp", "off", `{}`, false, "", "unknown action 'off' for module 'lamp'\n"},
		{"fan", "on", `{}`, false, "", "unknown module: fan\n"},
	} {
		var out, errs bytes.Buffer
		done := builtin.Main(t.Context(), lamps(), c.module, c.action, strings.NewReader(c.input), &out, &errs)
		if done != c.done || out.String() != c.out || errs.String() != c.errs {
			t.Errorf("%+v: %v, out %q, errs %q", c, done, out.String(), errs.String())
		}
		exit := 0
		if !done {
			exit = 1
		}
		results, err := orders.ActionResults(orders.Output{Exit: &exit, Stdout: out.Bytes(), Stderr: errs.Bytes()})
		aborted, _ := errors.AsType[*orders.Aborted](err)
		if c.done && string(results) != c.out || !c.done && (aborted == nil || aborted.Message != strings.TrimSpace(c.errs) || string(aborted.Data) != c.out) {
			t.Errorf("%+v: the engine reads %s, %v", c, results, err)
		}
	}
}
