package rest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// present says that web-1's agent is connected.
type present struct{}

// broken is one node whose catalog does not compile.
type broken struct{}

func (broken) Broken(_ context.Context, nodes []fleet.Certname) (map[fleet.Certname]compile.Compilation, error) {
	if !slices.Contains(nodes, "web-1") {
		return nil, nil
	}
	return map[fleet.Certname]compile.Compilation{"web-1": {Node: "web-1", Version: "v", Err: &compile.Error{
		Cause:   compile.CauseCode,
		Message: "Syntax error at '}' (file: /etc/puppetlabs/code/environments/production/site.pp, line: 3, column: 2) on node web-1",
		File:    "site.pp", Line: 3,
	}}}, nil
}

func (broken) BrokenNodes(context.Context) ([]fleet.Certname, error) {
	return []fleet.Certname{"web-1"}, nil
}

func (present) Presence(node fleet.Certname) (inventory.Presence, bool) {
	if node == "old-1" {
		return inventory.Presence{Server: "tutti.test", Agent: "WebSocket++/0.8.2", Protocol: "PCP 1", Shared: "two agents share its certificate"}, true
	}
	if node == "n-1" {
		return inventory.Presence{Since: time.Unix(1_700_000_000, 0), Until: time.Unix(1_700_003_600, 0), Agent: "tutti-agent/2"}, false
	}
	if node != "web-1" {
		return inventory.Presence{}, false
	}
	return inventory.Presence{Server: "tutti.test", Since: time.Date(2026, 11, 21, 20, 0, 0, 0, time.FixedZone("", 3600)), Agent: "agent/1", Protocol: "PCP 2"},
		true
}

// TestNodesThatAreConnected: both ways to see a node tell of its agent.
func TestNodesThatAreConnected(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	check(t,
		b.known.SaveReport(t.Context(), inventory.Report{
			ID: fleet.DigestOf([]byte("away")), Certname: "away", Environment: "production", Status: "changed", ReceivedAt: time.Now(),
		}))
	const connected = `"connected":{"server":"tutti.test",` +
		`"since":"2026-11-21T19:00:00Z","agent":"agent/1","client":"agent","client_version":"1","protocol":"PCP 2"}`
	for path, want := range map[string]int{"/nodes/web-1": 1, "/nodes/away": 0, "/nodes": 1} {
		w := b.call(admin, http.MethodGet, api.Prefix+path, nil)
		if got := strings.Count(w.Body.String(), connected); w.Code != http.StatusOK || got != want || strings.Count(w.Body.String(), `"connected"`) != want {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// pxp-agent gives the name of its library; which program that is, and the package that it came with, is said in its place.
func TestPxpAgentIsNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []struct{ facts, version string }{{`{"a":1}`, ""}, {`{"aio_agent_version":"7.26.0"}`, "puppet-agent 7.26.0"}} {
		_, _, err := b.known.SaveFacts(t.Context(), inventory.FactSet{Certname: "old-1", Environment: "production", Values: json.RawMessage(c.facts)})
		check(t, err)
		var list api.List[api.Node]
		check(t, json.Unmarshal(b.call(admin, http.MethodGet, api.Prefix+"/nodes", nil).Body.Bytes(), &list))
		var shown api.Node
		check(t, json.Unmarshal(b.call(admin, http.MethodGet, api.Prefix+"/nodes/old-1", nil).Body.Bytes(), &shown))
		want := &api.Connected{
			Server: "tutti.test", Agent: "WebSocket++/0.8.2", Protocol: "PCP 1",
			Client: "pxp-agent", ClientVersion: c.version, Shared: "two agents share its certificate",
		}
		if diff := cmp.Diff([]*api.Connected{want, want}, []*api.Connected{list.Items[0].Connected, shown.Connected}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.facts, diff)
		}
	}
}
