package orders_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/sim/machine"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// engineOf is an engine with the modules of every agent, and more.
func engineOf(t *testing.T, change func(*orders.Config)) *orders.Engine {
	t.Helper()
	spool, runner := (&machine.Machine{}).Boot()
	cfg := orders.Config{Spool: spool, Runner: runner, Log: slog.New(slog.DiscardHandler)}
	cfg.Modules = append(orders.Modules(orders.Node{OS: "linux", Cache: &machine.Cache{}}), orders.Catalog(func(pxp.CatalogChange) {}))
	if change != nil {
		change(&cfg)
	}
	return orders.New(cfg)
}

// ask is the answer to a blocking request for a module's action.
func ask(t *testing.T, e *orders.Engine, name string, params any, results any) error {
	t.Helper()
	var sent []wire.Message
	e.Connected(func(m wire.Message) error { sent = append(sent, m); return nil })
	e.Handle(t.Context(),
		wire.Message{ID: "9bd6a3cf-5a2b-4d0f-8a52-3f5b0e3d6c01", Type: wire.BlockingRequest, Sender: wire.Broker, Data: pxp.BlockingData(pxp.Request{
			Transaction: "t", Module: pxp.Modules, Action: name, Params: pxp.Data(params),
		})})
	if len(sent) != 1 {
		t.Fatalf("answers: %v", sent)
	}
	if sent[0].Type == wire.RPCError {
		failure, err := pxp.ParseFailure(sent[0].Data)
		if err != nil {
			t.Fatal(err)
		}
		return fault.New(fault.NotFound, "%s", failure.Description)
	}
	response, err := pxp.ParseResponse(sent[0].Data)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(response.Results, results); err != nil {
		t.Fatal(err)
	}
	return nil
}

// What a node tells is read by the server's side of the same form, and the digests are those that it was told.
func TestTheServerReadsWhatTheNodeTells(t *testing.T) {
	t.Parallel()
	lamp := action.Module{
		Name: "lamp", Description: "Lamps", Version: "1.2", Provider: action.External,
		Actions: []action.Action{{Name: "on", Input: jsontext.Value(`{"type":"object"}`), Results: jsontext.Value(`{}`)}},
	}
	echo := lamp
	echo.Name = "echo"
	e := engineOf(t, func(c *orders.Config) {
		c.Modules = append(c.Modules, orders.Module{Name: "lamp", Description: &lamp}, orders.Module{Name: "echo", Description: &echo})
		c.Problems = []action.Listed{{Name: "broken\x00thing", Provider: action.External, Problem: "its metadata is not JSON\nat all"}}
	})
	m := e.Introduction(pxp.AgentTold{Version: "1.0", OS: "linux", Arch: "amd64"})
	told, err := pxp.ParseAgentTold(m.Data)
	if err != nil || m.Check() != nil || m.Target != wire.Broker {
		t.Fatal(m, err)
	}
	var list pxp.ListResults
	if err := ask(t, e, pxp.List, struct{}{}, &list); err != nil {
		t.Fatal(err)
	}
	set, err := action.ParseSet(list.Modules)
	if err != nil || string(set.Digest()) != told.Modules || m.Type != wire.AgentTold {
		t.Fatalf("set %s, told %s, %v", set.Digest(), told.Modules, err)
	}
	var names []string
	for _, l := range set {
		names = append(names, l.Name)
		if l.Problem != "" {
			continue
		}
		var described pxp.DescribeResults
		if err := ask(t, e, pxp.Describe, pxp.DescribeParams{Name: l.Name}, &described); err != nil {
			t.Fatal(err)
		}
		read, err := action.Parse(l.Name, described.Metadata)
		if err != nil || read.Digest() != l.Digest || read.Version != l.Version || read.Provider != l.Provider {
			t.Errorf("%s: digest %s of %s, %v", l.Name, read.Digest(), l.Digest, err)
		}
	}
	want := []string{
		"broken thing", "catalog", "command", "echo", "echo", "file", "lamp", "modules", "ping", "pxp-module-puppet", "script", "status", "task", "transaction",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
	wantProblems := []action.Listed{
		{Name: "broken thing", Provider: action.External, Problem: "its metadata is not JSON at all"},
		{Name: "echo", Version: "1.2", Provider: action.External, Problem: "the node has a module of this name already (built-in), and that one is used"},
	}
	set = slices.DeleteFunc(set, func(l action.Listed) bool { return l.Problem == "" })
	if diff := cmp.Diff(action.Set(wantProblems), set); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	var none pxp.DescribeResults
	if err := ask(t, e, pxp.Describe, pxp.DescribeParams{Name: "broken thing"}, &none); fault.Detail(err) == "" ||
		!strings.Contains(fault.Detail(err), "unknown module") {
		t.Errorf("the metadata of what cannot be used: %v", err)
	}
}

// Every agent that has the same modules tells the same.
func TestEqualAgentsTellTheSame(t *testing.T) {
	t.Parallel()
	digests := map[fleet.Digest]bool{}
	for range 3 {
		digests[engineOf(t, nil).Set().Digest()] = true
	}
	digests[engineOf(t, func(c *orders.Config) { c.Problems = []action.Listed{{Name: "x", Provider: action.External}} }).Set().Digest()] = true
	if len(digests) != 2 {
		t.Errorf("%d digests of 3 equal agents and one other: %v", len(digests), digests)
	}
}

// The metadata of the agent's own modules are right, and say the same as what checks the orders.
func TestOwnMetadata(t *testing.T) {
	t.Parallel()
	e := engineOf(t, nil)
	files, err := os.ReadDir("metadata")
	if err != nil || len(files) != len(e.Set()) {
		t.Fatalf("%d files of metadata, %d modules: %v", len(files), len(e.Set()), err)
	}
	digest := strings.Repeat("a", 64)
	source := `{"filename":"a.sh","sha256":"` + digest + `","uri":{"path":"/a"}}`
	for _, c := range []struct {
		module, action string
		reads          bool
		right, wrong   string
	}{
		{"ping", "ping", true, `{}`, `{"sender_timestamp":1}`},
		{"echo", "echo", true, `{"argument":"a"}`, `{}`},
		{"status", "query", true, `{"transaction_id":"a"}`, `{}`},
		{"transaction", "cancel", false, `{"transaction_id":"a","reason":"b"}`, `{}`},
		{"modules", "list", true, `{}`, `[]`},
		{"modules", "describe", true, `{"name":"a"}`, `{"name":""}`},
		{"command", "run", false, `{"command":"a"}`, `{"command":""}`},
		{"script", "run", false, `{"script":` + source + `,"arguments":[]}`, `{"script":` + source + `}`},
		{"task", "run", false, `{"task":"a","input":{},"files":[` + source + `]}`, `{"task":"a","input":{},"files":[]}`},
		{"file", "download", false, `{"files":[{"kind":"directory","destination":"/a","link_source":"","sha256":"","uri":{"path":""}}]}`, `{"files":[{"kind":"pipe","destination":"/a"}]}`},
		{"pxp-module-puppet", "run", false, `{"env":[],"flags":["--noop"]}`, `{"flags":"--noop"}`},
		{"catalog", "changed", false, `{"mode":"live","catalog":"` + digest + `","environment":"production","uuid":"u"}`, `{}`},
	} {
		var described pxp.DescribeResults
		if err := ask(t, e, pxp.Describe, pxp.DescribeParams{Name: c.module}, &described); err != nil {
			t.Fatal(err)
		}
		module, err := action.Parse(c.module, described.Metadata)
		if err != nil {
			t.Errorf("%s: %v", c.module, err)
			continue
		}
		a, found := module.Find(c.action)
		if !found || a.ReadOnly != c.reads || module.Description == "" || a.Description == "" {
			t.Errorf("%s %s: %+v", c.module, c.action, a)
			continue
		}
		schema, err := action.Compile(a.Input)
		if err != nil {
			t.Fatal(err)
		}
		code := ownAction(t, c.module, c.action)
		for params, right := range map[string]bool{c.right: true, c.wrong: false} {
			if said, checked := schema.Check([]byte(params)) == nil, code.Check(jsontext.Value(params)) == nil; said != right || checked != right {
				t.Errorf("%s %s with %s: by the schema %v, by the code %v", c.module, c.action, params, said, checked)
			}
		}
	}
}

// ownAction is what checks the parameters of an action.
func ownAction(t *testing.T, module, name string) orders.Action {
	t.Helper()
	parsers := map[string]func(jsontext.Value) error{
		"ping": checkOf(pxp.ParsePing), "echo": checkOf(pxp.ParseEcho), "status": checkOf(pxp.ParseStatus), "transaction": checkOf(pxp.ParseCancel),
		"modules list": checkOf(pxp.ParseList), "modules describe": checkOf(pxp.ParseDescribe),
	}
	for _, key := range []string{module, module + " " + name} {
		if check := parsers[key]; check != nil {
			return orders.Action{Check: check}
		}
	}
	all := append(orders.Modules(orders.Node{OS: "linux"}), orders.Catalog(func(pxp.CatalogChange) {}))
	i := slices.IndexFunc(all, func(m orders.Module) bool { return m.Name == module })
	return all[i].Actions[name]
}

func checkOf[P any](parse func(jsontext.Value) (P, error)) func(jsontext.Value) error {
	return func(params jsontext.Value) error {
		_, err := parse(params)
		return err
	}
}
