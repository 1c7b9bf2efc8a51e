package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/agent/builtin"
	"github.com/tutti-project/tutti/internal/agent/builtin/self"
	"github.com/tutti-project/tutti/internal/agent/builtin/service"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
)

// actionPath is the program that does actions of a simulated node's modules.
const actionPath = "/simulated/action"

// simulatedActions are what simulated nodes can do of the modules of real ones, as their descriptions have it: they are answered from memory.
var simulatedActions = map[string][]string{service.Name: {"status", "restart"}, self.Name: {"ping", "inventory", "get_data"}}

// descriptions are read once for all nodes.
var descriptions = sync.OnceValue(func() map[string]*action.Module {
	all := map[string]*action.Module{}
	for name, text := range map[string][]byte{service.Name: service.Metadata(), self.Name: self.Metadata()} {
		described, err := builtin.Module{Name: name, Metadata: text}.Describe()
		if err != nil {
			panic(err) // a test has seen it
		}
		described.Actions = slices.DeleteFunc(described.Actions, func(a action.Action) bool { return !slices.Contains(simulatedActions[name], a.Name) })
		described.Version = simulatedVersion
		all[name] = &described
	}
	return all
})

// simulatedVersion is older than that of any real module: a simulated one has a part of its actions, and what the fleet shows is the whole.
const simulatedVersion = "0.1.0"

// actions are a node's modules with actions.
func (n *node) actions() []orders.Module {
	simulated := map[string]func(jsontext.Value) (jsontext.Value, error){
		"service status": n.serviceStatus, "rpcutil ping": pong, "rpcutil inventory": n.inventory, "rpcutil get_data": n.data,
	}
	var all []orders.Module
	for name, described := range descriptions() {
		m := orders.Module{Name: name, Description: described, Actions: map[string]orders.Action{}}
		for _, a := range described.Actions {
			one := orders.Action{Timeout: a.Limit(), Check: a.CheckInput}
			if a.ReadOnly {
				answer := simulated[name+" "+a.Name]
				one.Read = func(_ context.Context, o orders.Order) (jsontext.Value, error) { return answer(o.Params) }
			} else {
				one.Results = orders.ActionResults
				one.Prepare = func(_ context.Context, o orders.Order) (orders.Command, error) {
					return orders.Command{Path: actionPath, Args: []string{name, a.Name}, Input: o.Params}, nil
				}
			}
			m.Actions[a.Name] = one
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b orders.Module) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// services are what a simulated node has if its fleet does not say so.
var services = []string{"cron", "nginx", "puppet", "ssh"}

// serviceStatus is that of a service: nodes have few, and they run; those that are called broken fail.
func (n *node) serviceStatus(input jsontext.Value) (jsontext.Value, error) {
	var in struct {
		Service string `json:"service"`
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, unfit()
	}
	has := services
	if n.fleet.cfg.Services != nil {
		has = n.fleet.cfg.Services(n.name)
	}
	if in.Service == "broken" {
		return jsontext.Value(`{"status":"stopped","enabled":"enabled","provider":"simulated"}`), nil
	}
	if !slices.Contains(has, in.Service) {
		return nil, &orders.Aborted{Message: "this node has no service " + in.Service}
	}
	return jsontext.Value(`{"status":"running","enabled":"enabled","provider":"simulated"}`), nil
}

func unfit() error { return fault.New(fault.Invalid, "the input is not what the action takes") }

// data answers what a condition asks of services, the one source that simulated nodes have.
func (n *node) data(input jsontext.Value) (jsontext.Value, error) {
	var in struct{ Source, Query string }
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, unfit()
	}
	if in.Source != service.Name {
		return nil, &orders.Aborted{Message: "this agent has no data source " + in.Source}
	}
	asked, err := asJSON(map[string]string{"service": in.Query})
	if err != nil {
		return nil, err
	}
	state, err := n.serviceStatus(asked)
	if _, absent := errors.AsType[*orders.Aborted](err); absent {
		return jsontext.Value(`{"status":"absent","provider":"simulated"}`), nil
	}
	return state, err
}

// act is the program that restarts a service.
func (n *node) act(args []string, input []byte) effect {
	results, err := n.serviceStatus(input)
	e := effect{takes: 50 * time.Millisecond, stdout: string(results)}
	switch {
	case err != nil:
		e.stderr, e.exitCode = err.Error(), 1
	case strings.Contains(e.stdout, `"stopped"`):
		e.stderr, e.exitCode = strings.Join(args, " ")+": the service does not start", 1
	}
	return e
}

func pong(jsontext.Value) (jsontext.Value, error) {
	return asJSON(map[string]any{"pong": time.Now().Unix()})
}

func (n *node) inventory(jsontext.Value) (jsontext.Value, error) {
	facts := n.fleet.cfg.Facts(n.name)
	versions := map[string]string{}
	for name, described := range descriptions() {
		versions[name] = described.Version
	}
	return asJSON(map[string]any{
		"agents": []string{self.Name, service.Name}, "versions": versions, "facts": facts, "classes": []any{"settings", facts["role"]},
		"version": n.fleet.cfg.UserAgent, "data_plugins": []string{service.Name},
	})
}

func asJSON(of any) (jsontext.Value, error) {
	text, err := json.Marshal(of)
	return text, err
}
