package sim

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
)

// What simulated nodes answer is what the descriptions of the real modules say.
func TestActions(t *testing.T) {
	t.Parallel()
	f := New(Config{Names: []string{"sim-1.test"}})
	modules := map[string]orders.Module{}
	for _, m := range f.nodes[0].actions() {
		modules[m.Name] = m
	}
	for _, c := range []struct{ module, action, input, wrong string }{
		{"service", "status", `{"service":"nginx"}`, ""},
		{"service", "restart", `{"service":"nginx"}`, ""},
		{"rpcutil", "ping", `{}`, ""},
		{"rpcutil", "inventory", `{}`, ""},
		{"service", "status", `{"service":"nothing"}`, "this node has no service nothing"},
		{"service", "restart", `{"service":"nothing"}`, "this node has no service nothing"},
		{"service", "restart", `{"service":"broken"}`, "service restart: the service does not start"},
		{"service", "status", `{"service":"a b"}`, "field service: it must be the name of a service: letters, digits and _ . @ : + - \\"},
	} {
		described, _ := modules[c.module].Description.Find(c.action)
		results, err := perform(t, f.nodes[0], modules[c.module].Actions[c.action], c.input)
		if c.wrong != "" {
			if said := fault.Detail(err); err == nil || err.Error() != c.wrong && said != c.wrong {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		schema, failed := action.Compile(described.Results)
		if failed != nil {
			t.Fatal(failed)
		}
		if misfit := schema.Check(results); err != nil || misfit != nil {
			t.Errorf("%+v: %s, %v, %v", c, results, err, misfit)
		}
	}
}

// perform does an action as the engine does.
func perform(t *testing.T, n *node, a orders.Action, input string) (jsontext.Value, error) {
	t.Helper()
	o := orders.Order{Params: jsontext.Value(input)}
	if err := a.Check(o.Params); err != nil {
		return nil, err
	}
	if a.Read != nil {
		return a.Read(t.Context(), o)
	}
	c, err := a.Prepare(t.Context(), o)
	if err != nil {
		return nil, err
	}
	e := n.effect("t", c)
	return a.Results(orders.Output{Exit: &e.exitCode, Stdout: []byte(e.stdout), Stderr: []byte(e.stderr)})
}
