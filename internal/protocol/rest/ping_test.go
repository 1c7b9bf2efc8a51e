package rest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/call"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/target"
)

func (present) Connected() []fleet.Certname { return []fleet.Certname{"old-1", "web-1"} }

// Ask implements rest.Asker: only web-1 answers.
func (present) Ask(_ context.Context, q call.Question, tell func([]action.Answer)) {
	for _, node := range q.Nodes {
		if node == "web-1" {
			tell([]action.Answer{{Node: node, Millis: 1.5}})
			continue
		}
		tell([]action.Answer{{Node: node, Code: action.Silent}})
	}
	if q.Timeout <= 0 || q.Timeout > 2*time.Minute {
		panic("nobody waits for ever")
	}
}

func TestPing(t *testing.T) {
	t.Parallel()
	b := fleetBench(t)
	ping := func(body string) string {
		t.Helper()
		var list api.List[api.Pong]
		b.do(t, "POST", "/ping", body, &list)
		var lines []string
		for _, p := range list.Items {
			line := p.Node
			if p.Milliseconds != nil {
				line += fmt.Sprint(" ", *p.Milliseconds)
			}
			if p.Connected != nil {
				line += " " + p.Connected.Client
			}
			if p.LastConnected != nil {
				line += " was " + p.LastConnected.Client
			}
			lines = append(lines, line)
		}
		return strings.Join(lines, "\n")
	}
	for body, want := range map[string]string{
		`{}`:                                "old-1 pxp-agent\nweb-1 1.5 agent",
		`{"targets":{"exclude":["old-1"]}}`: "web-1 1.5 agent",
		`{"targets":{"limit":"1"}}`:         "old-1 pxp-agent",
		`{"targets":{"nodes":["web-1","n-0","n-1"]}}`: "n-0\nn-1 was tutti-agent\nweb-1 1.5 agent",
	} {
		if diff := cmp.Diff(want, ping(body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
	b.gets(t, "POST", "/ping", `{"timeout":60001}`, 400, "field timeout")
	b.gets(t, "POST", "/ping", `{"targets":{"nodes":["stranger"]}}`, 404, "no node is called stranger")
}

// someone is a user who has a role.
func (b bench) someone(t *testing.T, name, role string) who {
	t.Helper()
	check(t, b.store.CreateUser(t.Context(), rbac.User{Name: name, Kind: rbac.Person, Roles: []string{role}}))
	hash, _ := rbac.HashOf(secret(name))
	check(t, b.store.SaveAccessToken(t.Context(), rbac.Token{ID: "t-" + name, Hash: hash, Owner: name}))
	return who{name: name, token: name}
}

// Who may see some nodes asks those.
func TestPingIsForWhomMaySeeTheNode(t *testing.T) {
	t.Parallel()
	b := fleetBench(t)
	check(t, b.store.CreateRole(t.Context(), rbac.Role{Name: "test only", Grants: []fleet.Grant{{Permission: fleet.NodeRead, Environments: []string{"test"}}}}))
	w := b.call(b.someone(t, "tester", "test only"), "POST", "/api/v1/ping", []byte(`{}`))
	if w.Code != 200 || strings.Contains(w.Body.String(), "web-1") {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
	w = b.call(b.someone(t, "second", "test only"), "POST", "/api/v1/ping", []byte(`{"targets":{"nodes":["web-1","n-1"]}}`))
	if w.Code != 403 || !strings.Contains(w.Body.String(), "1 of 2 nodes") {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}

// asNamed is rest.Targets.
type asNamed struct{}

func (asNamed) Resolve(_ context.Context, t job.Targets) ([]fleet.Certname, error) {
	nodes := slices.DeleteFunc(slices.Sorted(slices.Values(t.Nodes)), func(n fleet.Certname) bool { return slices.Contains(t.Exclude, n) })
	return target.Limit(nodes, t.Limit, t.Seed)
}
