package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// fails is a request that is not done, and why.
func (p *pcp) fails(kind string, to wire.URI, module, name, params string) pxp.Failure {
	p.t.Helper()
	transaction := newUUID()
	p.send(wire.Message{Type: kind, Target: to, Data: pxp.Data(pxp.Request{Transaction: transaction, Module: module, Action: name, Params: []byte(params)})})
	m := p.receive()
	f, err := pxp.ParseFailure(m.Data)
	if m.Type != wire.RPCError || err != nil || f.Transaction != transaction {
		p.t.Fatalf("received %s %s, want an error of %s: %v", m.Type, m.Data, transaction, err)
	}
	return f
}

// A controller asks an agent's built-in modules. Questions leave nothing on the node; what changes something runs in a process of its own, and
// is refused where the node's owner did not allow what is off.
func TestBuiltInModulesAnswer(t *testing.T) {
	begin(t, 10)
	s := startRaced(t, "--autosign", "list", "--autosign-list", "ctl", "--broker-controllers", "ctl")
	d := joinNode(t, s, "web-1")
	if err := os.WriteFile(filepath.Join(d.dir, "policy.yaml"), []byte("extra_actions: [filemgr touch]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.start(t)
	status := d.connectedTo(t, "localhost:"+s.port())
	ctl := enrol(t, s, "ctl").pcp(t, "", "/pcp2/controller", wire.V2).associate()

	var stats struct {
		PID    int      `json:"pid"`
		Agents []string `json:"agents"`
	}
	if err := json.Unmarshal(ctl.ask(d.uri(), "rpcutil", "daemon_stats", `{}`).Results, &stats); err != nil || stats.PID != status.Process {
		t.Errorf("%+v, %v; the agent is process %d", stats, err, status.Process)
	}
	if all := strings.Join(stats.Agents, " "); !strings.Contains(all, "filemgr modules package ping process") || !strings.Contains(all, "task") {
		t.Errorf("modules %s", all)
	}
	path := filepath.Join(d.dir, "touched")
	if r := ctl.ask(d.uri(), "rpcutil", "get_data", fmt.Sprintf(`{"source":"fstat","query":%q}`, path)); !strings.Contains(string(r.Results), `"present":0`) {
		t.Errorf("%s", r.Results)
	}
	if f := ctl.fails(wire.BlockingRequest, d.uri(), "service", "status",
		`{"service":"nothing-of-that-name"}`); f.Description != "this node has no service nothing-of-that-name" || f.Code != uint8(action.Aborted) {
		t.Errorf("%+v", f)
	}
	if f := ctl.fails(wire.BlockingRequest, d.uri(), "service", "status", `{}`); f.Code != uint8(action.MissingData) {
		t.Errorf("%+v", f)
	}
	if now, _ := d.status(t); now.Transactions.Kept != 0 {
		t.Errorf("questions left %+v", now.Transactions)
	}

	if r := ctl.response(wire.NonBlockingResponse,
		ctl.order(d.uri(), "filemgr", "touch", fmt.Sprintf(`{"file":%q}`, path))); string(r.Results) != `{"output":"the file was made"}` {
		t.Errorf("%s", r.Results)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	if r := ctl.ask(d.uri(), "filemgr", "status", fmt.Sprintf(`{"file":%q}`, path)); !strings.Contains(string(r.Results), `"type":"file","size":0`) {
		t.Errorf("%s", r.Results)
	}
	if f := ctl.fails(wire.NonBlockingRequest, d.uri(), "filemgr", "remove", fmt.Sprintf(`{"file":%q}`, path)); !strings.Contains(f.Description,
		"filemgr remove is off; the node's owner allows it with extra_actions") {
		t.Errorf("%+v", f)
	}
	f := ctl.fails(wire.BlockingRequest, d.uri(), "filemgr", "touch", `{"file":"`+path+`/below"}`)
	if f.Description != path+"/below was not touched: no such file or directory" && f.Description != path+"/below was not touched: not a directory" ||
		f.Code != uint8(action.Aborted) {
		t.Errorf("%+v", f)
	}
}
