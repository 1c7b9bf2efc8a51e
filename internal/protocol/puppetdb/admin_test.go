package puppetdb_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/puppetdb"
)

// chores notes what is asked for. With a gate, expiring waits until it is told to
// go on.
type chores struct {
	mu    sync.Mutex
	done  []string
	begun chan struct{}
	goOn  chan struct{}
}

func (c *chores) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = append(c.done, fmt.Sprintf(format, args...))
}

func (c *chores) took() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := strings.Join(c.done, ",")
	c.done = nil
	return text
}

func (c *chores) ExpireNodes(context.Context) (int, error) {
	c.note("expire")
	if c.begun != nil {
		c.begun <- struct{}{}
		<-c.goOn
	}
	return 1, nil
}

func (c *chores) PurgeNodes(_ context.Context, limit int) (int, error) {
	c.note("purge %d", limit)
	return 1, nil
}

func (c *chores) PurgeReports(context.Context) (int, error) {
	c.note("reports")
	return 1, nil
}

func (c *chores) PurgeNode(_ context.Context, name fleet.Certname) error {
	c.note("delete %s", name)
	if name == "gone" {
		return fault.New(fault.NotFound, "nothing is known of it")
	}
	return nil
}

func kept(t *testing.T, c *chores) *puppetdb.Handler {
	t.Helper()
	config := serve(t).Config
	config.Keeper = c
	return puppetdb.New(config)
}

func TestAdministratorsCommands(t *testing.T) {
	t.Parallel()
	c := &chores{}
	h := kept(t, c)
	for _, test := range []struct {
		body   string
		status int
		answer string // its beginning, if it is no object
		done   string
	}{
		{`{"command":"clean","version":1,"payload":[]}`, 200, `{"ok":true}`, "expire,purge 0,reports"},
		{`{"command":"clean","version":1,"payload":["purge_reports","other"]}`, 200, `{"ok":true}`, "reports"},
		{`{"command":"clean","version":1,"payload":[["purge_nodes",{"batch_limit":7}],"expire_nodes"]}`, 200, `{"ok":true}`, "purge 7,expire"},
		{`{"command":"clean","version":1,"payload":["purge_reports","nonsense"]}`, 400, "payload is a list", ""},
		{`{"command":"clean","version":1,"payload":[["expire_nodes",{"batch_limit":7}]]}`, 400, "payload is a list", ""},
		{`{"command":"clean","version":1,"payload":{}}`, 400, "payload is a list", ""},
		{`{"command":"delete","version":1,"payload":{"certname":"web-1"}}`, 200, `{"deleted":"web-1"}`, "delete web-1"},
		{`{"command":"delete","version":1,"payload":{"certname":"gone"}}`, 200, `{"deleted":"gone"}`, "delete gone"},
		{`{"command":"delete","version":1,"payload":{"certname":"No Name"}}`, 400, "certname", ""},
		{`{"command":"delete","version":1,"payload":"web-1"}`, 400, "payload is an object", ""},
		{`{"command":"delete","version":2,"payload":{"certname":"web-1"}}`, 400, "Invalid command", ""},
		{`{"command":"drop","version":1}`, 400, "'clean' and 'delete'", ""},
		{`nonsense`, 400, "Invalid command", ""},
		{strings.Repeat(" ", 70_000), 400, "Invalid command", ""},
	} {
		w := post(t, h, "/pdb/admin/v1/cmd", test.body)
		if done := c.took(); w.Code != test.status || done != test.done || !same(w.Body.String(), test.answer) && !strings.Contains(w.Body.String(), test.answer) {
			t.Errorf("%s: %d %s, did %q", test.body, w.Code, w.Body, done)
		}
	}
	if w := get(t, h, "/pdb/admin/v1/cmd"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", w.Code)
	}
}

func TestOneCleanupAtATime(t *testing.T) {
	t.Parallel()
	c := &chores{begun: make(chan struct{}), goOn: make(chan struct{})}
	h := kept(t, c)
	const body = `{"command":"clean","version":1,"payload":["expire_nodes"]}`
	first := make(chan int)
	go func() { first <- post(t, h, "/pdb/admin/v1/cmd", body).Code }()
	<-c.begun
	if w := post(t, h, "/pdb/admin/v1/cmd", body); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), `"kind": "conflict"`) {
		t.Errorf("meanwhile: %d %s", w.Code, w.Body)
	}
	close(c.goOn)
	if code := <-first; code != http.StatusOK {
		t.Errorf("the first: %d", code)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	h := serve(t)
	accepted(t, h, cmd+"deactivate_node&version=3&certname=db-1", `{"certname":"db-1"}`)
	var got map[string]any
	check(t, json.Unmarshal(get(t, h, "/pdb/admin/v1/summary-stats").Body.Bytes(), &got))
	for name, want := range map[string]float64{"num_nodes": 2, "num_resources": 1, "num_edges": 1, "num_reports": 1, "num_facts": 6, "num_packages": 0} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	if text, _ := json.Marshal(got["node_activity"]); string(text) != `[{"active":true,"count":1},{"active":false,"count":1}]` {
		t.Errorf("node_activity is %s", text)
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	h := serve(t)
	accepted(t, h, cmd+"replace_facts&version=5&certname=new-1", factsCommand)
	post(t, h, cmd+"replace_facts&version=5&certname=new-1", "{}")
	const at = `"timestamp":1772366400}`
	for path, want := range map[string]string{
		"read/puppetlabs.puppetdb.population:name=num-nodes":               `{"request":{"mbean":"puppetlabs.puppetdb.population:name=num-nodes","type":"read"},"value":{"Value":3},"status":200,` + at,
		"read/puppetlabs.puppetdb.population%3Aname%3Dnum-resources/Value": `{"request":{"mbean":"puppetlabs.puppetdb.population:name=num-resources","attribute":"Value","type":"read"},"value":1,"status":200,` + at,
		"read/puppetlabs.puppetdb.population:name=avg-resources-per-node":  `{"request":{"mbean":"puppetlabs.puppetdb.population:name=avg-resources-per-node","type":"read"},"value":{"Value":0.3333333333333333},"status":200,` + at,
		"read/puppetlabs.puppetdb.mq:name=global.processed/Count":          `{"request":{"mbean":"puppetlabs.puppetdb.mq:name=global.processed","attribute":"Count","type":"read"},"value":1,"status":200,` + at,
		"read/puppetlabs.puppetdb.mq:name=global.fatal/Count":              `{"request":{"mbean":"puppetlabs.puppetdb.mq:name=global.fatal","attribute":"Count","type":"read"},"value":1,"status":200,` + at,
		"read/puppetlabs.puppetdb.mq:name=global.depth":                    `{"request":{"mbean":"puppetlabs.puppetdb.mq:name=global.depth","type":"read"},"value":{"Count":0},"status":200,` + at,
		"read/puppetlabs.puppetdb.population:name=nope":                    `{"request":{"mbean":"puppetlabs.puppetdb.population:name=nope","type":"read"},"error_type":"javax.management.InstanceNotFoundException","error":"javax.management.InstanceNotFoundException : puppetlabs.puppetdb.population:name=nope","status":404}`,
		"read/puppetlabs.puppetdb.population:name=num-nodes/Nope":          `{"request":{"mbean":"puppetlabs.puppetdb.population:name=num-nodes","attribute":"Nope","type":"read"},"error_type":"javax.management.AttributeNotFoundException","error":"javax.management.AttributeNotFoundException : Nope","status":404}`,
		"version": `{"request":{"type":"version"},"value":{"agent":"7.12.1","protocol":"7.2","info":{"product":"tutti"}},"status":200,` + at,
	} {
		if w := get(t, h, "/metrics/v2/"+path); w.Code != http.StatusOK || !same(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want %s", path, w.Code, w.Body, want)
		}
	}
	var list struct {
		Value map[string]map[string]struct{ Attr map[string]any }
	}
	check(t, json.Unmarshal(get(t, h, "/metrics/v2/list").Body.Bytes(), &list))
	if list.Value["puppetlabs.puppetdb.population"]["name=num-active-nodes"].Attr["Value"] == nil ||
		list.Value["puppetlabs.puppetdb.mq"]["name=global.processed"].Attr["Count"] == nil {
		t.Errorf("list: %+v", list)
	}
	if w := get(t, h, "/metrics/v2/exec/x"); w.Code != http.StatusNotFound {
		t.Errorf("exec: %d %s", w.Code, w.Body)
	}
	if w := post(t, h, "/metrics/v2/read/x", ""); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d %s", w.Code, w.Body)
	}
}
