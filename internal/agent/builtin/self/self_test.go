package self_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/agent/builtin"
	"github.com/tutti-project/tutti/internal/agent/builtin/builtintest"
	"github.com/tutti-project/tutti/internal/agent/builtin/self"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
)

const facts = `{"os":{"family":"Debian","release":{"major":"12"}},"a.b":{"c.d":1},"a":{"x":true},"list":[10,{"y":"z"}],"zone":null,"kernel":"Linux"}`

func config() self.Config {
	return self.Config{
		Version: "1.2.3", ConfigFile: "/etc/tutti-agent/agent.yaml", Started: time.Unix(1700000000, 0),
		Facts:   func(context.Context) (json.RawMessage, error) { return json.RawMessage(facts), nil },
		Classes: func() ([]string, error) { return []string{"settings", "ntp"}, nil },
		Modules: func() []action.Module {
			return []action.Module{{Name: "task"}, {Name: "lamp", Version: "2.0", Description: "Lamps", Author: "us", Provider: action.BuiltIn}}
		},
		Counts: func() (self.Counts, error) { return self.Counts{Kept: 4, Running: 1, Waiting: 2, Undelivered: 3}, nil },
		Data: map[string]builtin.Data{"service": func(_ context.Context, query string) (any, error) {
			return map[string]string{"status": "running", "of": query}, nil
		}},
	}
}

// ask does an action as the engine does: input and results are held to their schemas.
func ask(t *testing.T, cfg self.Config, name, input string) (string, error) {
	t.Helper()
	modules, err := builtin.Orders([]builtin.Module{self.Module(cfg)}, []string{"tutti"})
	if err != nil {
		t.Fatal(err)
	}
	return builtintest.Read(t, modules[0].Actions[name], input)
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ action, input, want string }{
		{"inventory", `{}`, `{"agents":["lamp","task"],"versions":{"lamp":"2.0"},"facts":` + facts +
			`,"classes":["settings","ntp"],"version":"1.2.3","data_plugins":["agent","fact","service"]}`},
		{"agent_inventory", `{}`, `{"agents":[{"agent":"lamp","version":"2.0","description":"Lamps","author":"us","provider":"built-in"},{"agent":"task"}]}`},
		{"get_fact", `{"fact":"os.release.major"}`, `{"fact":"os.release.major","value":"12"}`},
		{"get_fact", `{"fact":"os"}`, `{"fact":"os","value":{"family":"Debian","release":{"major":"12"}}}`},
		{"get_fact", `{"fact":"a.b.c.d"}`, `{"fact":"a.b.c.d","value":1}`},
		{"get_fact", `{"fact":"a.x"}`, `{"fact":"a.x","value":true}`},
		{"get_fact", `{"fact":"list.1.y"}`, `{"fact":"list.1.y","value":"z"}`},
		{"get_fact", `{"fact":"list.2"}`, `{"fact":"list.2","value":null}`},
		{"get_fact", `{"fact":"os.nothing"}`, `{"fact":"os.nothing","value":null}`},
		{"get_facts", `{"facts":"kernel, os.family,nothing"}`, `{"values":{"kernel":"Linux","nothing":null,"os.family":"Debian"}}`},
		{"collective_info", `{}`, `{"main_collective":"mcollective","collectives":["mcollective"]}`},
		{"get_data", `{"source":"service","query":"ntp"}`, `{"of":"ntp","status":"running"}`},
		{"get_data", `{"source":"fact","query":"kernel"}`, `{"exists":true,"value":"Linux","value_encoding":"text/plain"}`},
		{"get_data", `{"source":"fact","query":"list"}`, `{"exists":true,"value":"[10,{\"y\":\"z\"}]","value_encoding":"application/json"}`},
		{"get_data", `{"source":"fact","query":"zone"}`, `{"exists":true,"value":null,"value_encoding":"text/plain"}`},
		{"get_data", `{"source":"fact","query":"nothing"}`, `{"exists":false,"value":null}`},
		{"get_data", `{"source":"agent","query":"lamp"}`, `{"present":true,"agent":"lamp","version":"2.0","description":"Lamps","author":"us","provider":"built-in"}`},
		{"get_data", `{"source":"agent","query":"fan"}`, `{"present":false,"agent":"fan"}`},
	} {
		if got, err := ask(t, config(), c.action, c.input); got != c.want || err != nil {
			t.Errorf("%s %s: %s, %v", c.action, c.input, got, err)
		}
	}
	var pong struct {
		Pong int64 `json:"pong"`
	}
	before := time.Now().Unix()
	got, err := ask(t, config(), "ping", `{}`)
	if json.Unmarshal([]byte(got), &pong) != nil || err != nil || pong.Pong < before || pong.Pong > time.Now().Unix() {
		t.Errorf("%s, %v", got, err)
	}
	var stats struct {
		PID, Starttime, Threads, Memory, Kept, Running, Waiting, Undelivered int
		Agents                                                               []string
	}
	got, err = ask(t, config(), "daemon_stats", `{}`)
	if json.Unmarshal([]byte(got), &stats) != nil || err != nil || stats.PID != os.Getpid() || stats.Starttime != 1700000000 || stats.Threads < 1 ||
		stats.Memory < 1<<20 ||
		stats.Kept != 4 || stats.Running != 1 || stats.Waiting != 2 || stats.Undelivered != 3 || len(stats.Agents) != 2 {
		t.Errorf("%s, %v", got, err)
	}
}

func TestWhatCannotBeAnswered(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`{"source":"puppet"}`: "this agent has no data source puppet; it has agent, fact, service",
		`{"source":"disk"}`:   "field source: it must be one of agent, fact, file, fstat, package, process, puppet, resource, service",
		`{"query":"x"}`:       "field source: it is missing",
	} {
		_, err := ask(t, config(), "get_data", input)
		aborted, _ := errors.AsType[*orders.Aborted](err)
		if said := fault.Detail(err); said != want && (aborted == nil || aborted.Message != want) {
			t.Errorf("%s: %v", input, err)
		}
	}
	away := config()
	away.Facts = func(context.Context) (json.RawMessage, error) { return nil, fault.New(fault.Unavailable, "no facts") }
	for _, action := range []string{`get_fact {"fact":"x"}`, `get_facts {"facts":"x"}`, `inventory {}`, `get_data {"source":"fact","query":"x"}`} {
		name, input, _ := strings.Cut(action, " ")
		if got, err := ask(t, away, name, input); fault.Detail(err) != "no facts" {
			t.Errorf("%s: %s, %v", action, got, err)
		}
	}
}
