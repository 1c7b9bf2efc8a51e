package classifier_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/classify/classifytest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/classifier"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/rbac/rbactest"
)

// known is a classifier.Fleet of one node.
type known struct{ groups classify.Store }

const knownFacts = `{"os":{"family":"Debian"},"cores":4}`

func (k known) GroupNodes(ctx context.Context, id classify.ID) ([]fleet.Certname, error) {
	groups, _, err := k.groups.Groups(ctx)
	if err != nil {
		return nil, err
	}
	node, err := classify.NewNode("web-1", json.RawMessage(knownFacts), nil)
	if member, _ := classify.NewTree(groups).Gate(id).Admits(node); !member {
		return nil, err
	}
	return []fleet.Certname{"web-1"}, err
}

func (known) Known(_ context.Context, name fleet.Certname) (facts, trusted json.RawMessage, err error) {
	if name == "web-1" {
		facts = json.RawMessage(knownFacts)
	}
	return facts, nil, nil
}

func (known) Deployed(context.Context) ([]classifier.Environment, error) {
	return []classifier.Environment{
		{Name: "production", At: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)},
		{Name: "test", At: time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)},
	}, nil
}

// bench is a handler and what it answers to an administrator, or to who shows another
// token.
type bench struct {
	*classifier.Handler
	groups classify.Store
	acts   *rbactest.Fake
}

func newBench() bench {
	groups, acts := classifytest.New(), rbactest.New()
	return bench{classifier.New(classifier.Config{
		Groups: groups, Fleet: known{groups}, RequestID: func(context.Context) string { return "req-1" }, Log: slog.New(slog.DiscardHandler),
		Audit: rbac.NewAudit(acts, slog.New(slog.DiscardHandler)), Entry: func(context.Context) rbac.Entry { return rbac.Entry{} },
		Actor: func(r *http.Request) (fleet.Actor, error) {
			switch r.Header.Get("X-Authentication") {
			case "admin":
				return fleet.Actor{Kind: fleet.UserActor, Name: "ops", Grants: []fleet.Grant{{Permission: fleet.GroupRead}, {Permission: fleet.GroupWrite}}}, nil
			case "reader":
				return fleet.Actor{Kind: fleet.UserActor, Name: "reader", Grants: []fleet.Grant{{Permission: fleet.GroupRead}}}, nil
			case "plain":
				return fleet.Actor{Kind: fleet.UserActor, Name: "plain"}, nil
			case "":
				return fleet.Actor{Kind: fleet.Anonymous}, nil
			}
			return fleet.Actor{}, fault.New(fault.Denied, "the token is not known here")
		},
	}), groups, acts}
}

func (b bench) call(token, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/classifier-api/v1"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("X-Authentication", token)
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w
}

// do is an administrator's call that must have the given status.
func (b bench) do(t *testing.T, method, path, body string, status int) map[string]any {
	t.Helper()
	w := b.call("admin", method, path, body)
	if w.Code != status {
		t.Fatalf("%s %s: %d %s, want %d", method, path, w.Code, w.Body, status)
	}
	var answer map[string]any
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("%s %s: %v in %s", method, path, err, w.Body)
		}
	}
	return answer
}

// make creates a group and returns its id.
func (b bench) make(t *testing.T, body string) string {
	t.Helper()
	w := b.call("admin", "POST", "/groups", body)
	id, ok := strings.CutPrefix(w.Header().Get("Location"), "/classifier-api/v1/groups/")
	if w.Code != http.StatusSeeOther || !ok {
		t.Fatalf("%s: %d %s to %q", body, w.Code, w.Body, w.Header().Get("Location"))
	}
	return id
}

const (
	rootID = "00000000-0000-4000-8000-000000000000"
	noID   = "11111111-1111-4111-8111-111111111111"
)

func child(name, more string) string {
	return `{"name":"` + name + `","parent":"` + rootID + `","classes":{}` + more + `}`
}

// What clients do day by day: list, create a child, pin nodes, change, delete.
func TestAGroupsLife(t *testing.T) {
	t.Parallel()
	b := newBench()
	var groups []map[string]any
	if w := b.call("admin", "GET", "/groups", ""); json.Unmarshal(w.Body.Bytes(), &groups) != nil || len(groups) != 1 || groups[0]["id"] != rootID {
		t.Fatalf("the groups are %s", w.Body)
	}
	id := b.make(t,
		child("Web", `,"environment":"test","rule":["or",["and",["=",["fact","os","family"],"Debian"]],["=","name","x-1"]],"variables":{"site":"north"}`))
	got := b.do(t, "GET", "/groups/"+id, "", 200)
	if edited, _ := got["last_edited"].(string); !strings.HasSuffix(edited, "Z") || len(edited) != len("2026-01-01T00:00:00.000Z") {
		t.Errorf("last edited %v", got["last_edited"])
	}
	delete(got, "last_edited")
	want := map[string]any{
		"id": id, "name": "Web", "parent": rootID, "environment": "test", "environment_trumps": false, "serial_number": 1.0,
		"rule":    []any{"or", []any{"=", []any{"fact", "os", "family"}, "Debian"}, []any{"=", "name", "x-1"}},
		"classes": map[string]any{}, "config_data": map[string]any{}, "variables": map[string]any{"site": "north"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.do(t, "POST", "/groups/"+id+"/pin", `{"nodes":["y-1","x-1"]}`, 204)
	b.do(t, "POST", "/groups/"+id+"/pin?nodes=z-1", "", 204)
	b.do(t, "POST", "/groups/"+id+"/unpin", `{"nodes":["x-1"]}`, 204)
	got = b.do(t, "POST", "/groups/"+id, `{"classes":{"ntp":{"a":1,"b":2}},"variables":{"site":null,"tier":{"x":[1]}},"description":"servers"}`, 200)
	got = b.do(t, "POST", "/groups/"+id, `{"classes":{"ntp":{"a":null},"ssh":{}},"serial_number":`+number(got["serial_number"])+`}`, 200)
	if diff := cmp.Diff(map[string]any{"ntp": map[string]any{"b": 2.0}, "ssh": map[string]any{}}, got["classes"]); diff != "" {
		t.Errorf("classes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"tier": map[string]any{"x": []any{1.0}}}, got["variables"]); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	rule := []any{"or", []any{"=", []any{"fact", "os", "family"}, "Debian"}, []any{"=", "name", "y-1"}, []any{"=", "name", "z-1"}}
	if diff := cmp.Diff(rule, got["rule"]); diff != "" {
		t.Errorf("rule (-want +got):\n%s", diff)
	}
	if nodes := b.do(t, "GET", "/groups/"+id+"/nodes", "", 200); !cmp.Equal(nodes["nodes"], []any{"web-1"}) {
		t.Errorf("nodes %v", nodes)
	}
	b.do(t, "POST", "/groups/"+id, `{"name":"stale","serial_number":1}`, 409)
	b.do(t, "DELETE", "/groups/"+id, "", 204)
	b.do(t, "GET", "/groups/"+id, "", 404)
	if all, _, err := b.groups.Groups(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%d groups are left, %v", len(all), err)
	}
}

func number(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// What is read can be written back without a change, inherited environment and all.
func TestWritingBackChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBench()
	top := b.make(t, child("Top", `,"environment":"test","environment_trumps":true`))
	ids := []string{
		rootID, top, b.make(t, `{"name":"Below","parent":"`+top+`","classes":{"a":{}},"rule":["or",["=","name","x"]]}`),
		b.make(t, child("Bare", "")), b.make(t, child("Rule", `,"rule":["and",["~","name","web"],["=","name","y"]]`)),
	}
	rule, err := classify.ParseRule(`name = "a" or name = "b"`) // as people write it, no pinned nodes
	if err != nil {
		t.Fatal(err)
	}
	own := classify.Group{ID: noID, Name: "Own", Parent: rootID, Rule: rule}
	if _, err := b.groups.ChangeGroups(t.Context(), []classify.Change{{Kind: classify.Create, Group: own}}); err != nil {
		t.Fatal(err)
	}
	for _, id := range append(ids, noID) {
		shown := b.call("admin", "GET", "/groups/"+id, "").Body.String()
		for _, method := range []string{"PUT", "POST"} {
			if got := b.call("admin", method, "/groups/"+id, shown); got.Code != 200 || got.Body.String() != shown {
				t.Errorf("%s: %d\n got %swant %s", method, got.Code, got.Body, shown)
			}
		}
	}
	before := b.call("admin", "GET", "/groups", "").Body.String()
	b.do(t, "POST", "/import-hierarchy", before, 204)
	if after := b.call("admin", "GET", "/groups", "").Body.String(); after != before {
		t.Errorf("the hierarchy changed from\n%sto\n%s", before, after)
	}
	groups, _, err := b.groups.Groups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		if g.Name == "Own" && len(g.Pinned) > 0 {
			t.Errorf("a rule became the pinned nodes %v", g.Pinned)
		}
		if (g.Environment != "") != (g.Name == "Top") {
			t.Errorf("%s has the environment %q", g.Name, g.Environment)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	b := newBench()
	web := b.make(t, child("Web", ""))
	below := b.make(t, `{"name":"Below","parent":"`+web+`","classes":{}}`)
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		kind               string
	}{
		"no such path":      {"GET", "/teapots", "", 404, "not-found"},
		"wrong method":      {"PATCH", "/groups", "", 404, "not-found"},
		"no such group":     {"GET", "/groups/" + noID, "", 404, "not-found"},
		"no UUID":           {"GET", "/groups/web", "", 400, "malformed-uuid"},
		"no JSON":           {"POST", "/groups", "{", 400, "malformed-request"},
		"wrong shape":       {"POST", "/groups", `{"name":3}`, 400, "schema-violation"},
		"missing members":   {"POST", "/groups", `{"name":"x"}`, 400, "schema-violation"},
		"missing parent":    {"POST", "/groups", `{"name":"x","classes":{},"parent":"` + noID + `"}`, 422, "missing-parent"},
		"parent is no id":   {"POST", "/groups", `{"name":"x","classes":{},"parent":"web"}`, 400, "schema-violation"},
		"name taken":        {"POST", "/groups", child("Web", ""), 422, "uniqueness-violation"},
		"bad rule":          {"POST", "/groups", child("x", `,"rule":["nand"]`), 400, "schema-violation"},
		"bad rule in an or": {"POST", "/groups", child("x", `,"rule":["or",["~","name","("]]`), 400, "schema-violation"},
		"bad class":         {"POST", "/groups", `{"name":"x","parent":"` + rootID + `","classes":{"No Class":{}}}`, 400, "schema-violation"},
		"bad environment":   {"POST", "/groups", child("x", `,"environment":"a-b"`), 400, "schema-violation"},
		"other id":          {"PUT", "/groups/" + noID, `{"id":"` + web + `","name":"x","parent":"` + rootID + `","classes":{}}`, 400, "conflicting-ids"},
		"id of a delta":     {"POST", "/groups/" + web, `{"id":"` + noID + `"}`, 400, "conflicting-ids"},
		"cycle":             {"POST", "/groups/" + web, `{"parent":"` + below + `"}`, 422, "inheritance-cycle"},
		"own parent":        {"POST", "/groups/" + web, `{"parent":"` + web + `"}`, 422, "inheritance-cycle"},
		"stale":             {"POST", "/groups/" + web, `{"serial_number":7}`, 409, "conflict"},
		"rule of the root":  {"POST", "/groups/" + rootID, `{"rule":["=","name","x"]}`, 422, "root-rule-edit"},
		"pins of the root":  {"POST", "/groups/" + rootID + "/pin", `{"nodes":["x"]}`, 422, "root-rule-edit"},
		"pin nobody":        {"POST", "/groups/" + web + "/pin", `{}`, 400, "malformed-request"},
		"pin no name":       {"POST", "/groups/" + web + "/pin", `{"nodes":["NO NAME"]}`, 400, "schema-violation"},
		"with children":     {"DELETE", "/groups/" + web, "", 422, "children-present"},
		"the root":          {"DELETE", "/groups/" + rootID, "", 403, "permission-denied"},
		"depth":             {"GET", "/group-children/" + rootID + "?depth=-1", "", 400, "malformed-number"},
		"no environment":    {"GET", "/environments/none", "", 404, "not-found"},
		"untranslatable":    {"POST", "/rules/translate", `["=",["fact","os","family"],"Debian"]`, 422, "untranslatable-rule"},
		"no format":         {"POST", "/rules/translate?format=x", `["=","name","a"]`, 400, "malformed-request"},
		"no rule":           {"POST", "/rules/translate", `["and"]`, 400, "schema-violation"},
		"no node":           {"POST", "/classified/nodes/NO%20NODE", "", 400, "schema-violation"},
		"hierarchy of none": {"POST", "/import-hierarchy", `[]`, 422, "unreachable-groups"},
		"hierarchy apart": {
			"POST", "/import-hierarchy", `[` + root + `,{"id":"` + web + `","name":"x","classes":{},"parent":"` + noID + `"}]`, 422, "unreachable-groups",
		},
		"hierarchy in circle": {
			"POST", "/import-hierarchy", `[` + root + `,{"id":"` + web + `","name":"x","classes":{},"parent":"` + web + `"}]`, 422, "inheritance-cycle",
		},
		"hierarchy twice":  {"POST", "/import-hierarchy", `[` + root + `,` + root + `]`, 422, "uniqueness-violation"},
		"hierarchy no ids": {"POST", "/import-hierarchy", `[` + child("x", "") + `]`, 400, "schema-violation"},
		"validate":         {"POST", "/validate/group", child("Web", ""), 422, "uniqueness-violation"},
		"too large":        {"POST", "/groups", `"` + strings.Repeat("x", classify.MaxGroupBytes+1<<20) + `"`, 400, "malformed-request"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := b.call("admin", c.method, c.path, c.body)
			var got struct{ Kind, Msg string }
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != c.status || got.Kind != c.kind || got.Msg == "" {
				t.Errorf("got %d %.300s, want %d %s", w.Code, w.Body, c.status, c.kind)
			}
		})
	}
}

const root = `{"id":"` + rootID + `","name":"All Nodes","classes":{},"parent":"` + rootID + `","rule":["~","name",".*"]}`

func TestWhoMayAsk(t *testing.T) {
	t.Parallel()
	b := newBench()
	for token, want := range map[string]string{"": "user-unauthenticated", "guess": "user-unauthenticated", "plain": "permission-denied"} {
		for _, path := range []string{"/groups", "/teapots"} {
			w := b.call(token, "GET", path, "")
			if w.Code != map[string]int{"user-unauthenticated": 401, "permission-denied": 403}[want] || !strings.Contains(w.Body.String(), `"kind":"`+want+`"`) {
				t.Errorf("%q %s: %d %s", token, path, w.Code, w.Body)
			}
		}
	}
}

func TestTrees(t *testing.T) {
	t.Parallel()
	b := newBench()
	top := b.make(t,
		`{"name":"Top","parent":"`+rootID+`","environment":"test","classes":{"ntp":{"a":1,"b":1}},"variables":{"x":1},"rule":["=",["fact","os","family"],"Debian"]}`)
	below := b.make(t, `{"name":"Below","parent":"`+top+`","classes":{"ntp":{"b":2}},"rule":["or",[">",["fact","cores"],"2"],["=","name","p-1"]]}`)
	got := b.do(t, "GET", "/groups/"+below+"?inherited=true", "", 200)
	if diff := cmp.Diff(map[string]any{"ntp": map[string]any{"a": 1.0, "b": 2.0}}, got["classes"]); diff != "" || got["environment"] != "test" ||
		number(got["variables"]) != `{"x":1}` {
		t.Errorf("inherited %v (-want +got):\n%s", got, diff)
	}
	tree := b.do(t, "GET", "/group-children/"+rootID, "", 200)
	if text := number(tree); strings.Count(text, `"immediate_child_count"`) != 3 || !strings.Contains(text, `"name":"Below"`) {
		t.Errorf("the tree is %s", text)
	}
	if text := number(b.do(t, "GET", "/group-children/"+rootID+"?depth=1", "", 200)); strings.Contains(text, "Below") || !strings.Contains(text, "Top") {
		t.Errorf("the tree of depth 1 is %s", text)
	}
	rules := b.do(t, "GET", "/groups/"+below+"/rules", "", 200)
	want := map[string]any{
		"rule": []any{"or", []any{">", []any{"fact", "cores"}, "2"}, []any{"=", "name", "p-1"}},
		"rule_with_inherited": []any{
			"and",
			[]any{"or", []any{">", []any{"fact", "cores"}, "2"}, []any{"=", "name", "p-1"}},
			[]any{"=", []any{"fact", "os", "family"}, "Debian"},
			[]any{"~", "name", ".*"},
		},
		"translated": map[string]any{"nodes_query_format": nil, "inventory_query_format": []any{
			"and",
			[]any{"or", []any{">", "facts.cores", 2.0}, []any{"=", "certname", "p-1"}},
			[]any{"=", "facts.os.family", "Debian"},
			[]any{"~", "certname", ".*"},
		}},
	}
	if diff := cmp.Diff(want, rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	bare := b.make(t, child("Bare", ""))
	if diff := cmp.Diff(map[string]any{"rule": nil, "rule_with_inherited": nil, "translated": nil},
		b.do(t, "GET", "/groups/"+bare+"/rules", "", 200)); diff != "" {
		t.Errorf("rules of a bare group (-want +got):\n%s", diff)
	}
	freed := b.do(t, "POST", "/commands/unpin-from-all", `{"nodes":["p-1","q-1"]}`, 200)
	if want := `{"nodes":[{"groups":[{"environment":"test","id":"` + below + `","name":"Below"}],"name":"p-1"}]}`; number(freed) != want {
		t.Errorf("freed %s, want %s", number(freed), want)
	}
	if again := b.do(t, "POST", "/commands/unpin-from-all", `{"nodes":["p-1"]}`, 200); number(again) != `{"nodes":[]}` {
		t.Errorf("freed again %s", number(again))
	}
}

func TestClassification(t *testing.T) {
	t.Parallel()
	b := newBench()
	top := b.make(t,
		`{"name":"Top","parent":"`+rootID+
			`","environment":"test","classes":{"ntp":{"a":1}},"config_data":{"ssh":{"p":1}},"rule":["=",["fact","os","family"],"Debian"]}`)
	role := b.make(t, child("Role", `,"rule":["=",["trusted","extensions","pp_role"],"web"],"variables":{"tier":"gold"}`))
	want := map[string]any{
		"name": "new-1", "groups": []any{rootID, role, top}, "environment": "test", "classes": map[string]any{"ntp": map[string]any{"a": 1.0}},
		"parameters": map[string]any{"tier": "gold"}, "config_data": map[string]any{"ssh": map[string]any{"p": 1.0}},
	}
	const body = `{"fact":{"os":{"family":"Debian"}},"trusted":{"extensions":{"pp_role":"web"}}}`
	if diff := cmp.Diff(want, b.do(t, "POST", "/classified/nodes/new-1", body, 200)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	stored, fresh := b.do(t, "POST", "/classified/nodes/web-1", "", 200), b.do(t, "POST", "/classified/nodes/web-2", "", 200)
	if stored["environment"] != "test" || fresh["environment"] != "agent-specified" || len(fresh["groups"].([]any)) != 1 {
		t.Errorf("by what is known: %v, %v", stored, fresh)
	}
	b.do(t, "POST", "/groups/"+role, `{"environment":"production","classes":{"ntp":{"a":2}}}`, 200)
	got := b.do(t, "POST", "/classified/nodes/new-1", body, 500)
	details, _ := got["details"].(map[string]any)
	environment, _ := details["environment"].([]any)
	classes, _ := details["classes"].(map[string]any)
	if got["kind"] != "classification-conflict" || len(environment) != 2 || len(classes) != 1 {
		t.Fatalf("the conflict is %v", got)
	}
	first, _ := environment[0].(map[string]any)
	from, _ := first["from"].(map[string]any)
	if first["value"] != "production" || from["id"] != role {
		t.Errorf("the first side is %v", first)
	}
}

func TestEnvironmentsAndClasses(t *testing.T) {
	t.Parallel()
	b := newBench()
	for path, want := range map[string]string{
		"/environments":      `[{"name":"production","sync_succeeded":true},{"name":"test","sync_succeeded":true}]`,
		"/environments/test": `{"name":"test","sync_succeeded":true}`,
		"/last-class-update": `{"last_update":"2026-03-01T12:00:00.000Z"}`,
	} {
		if w := b.call("admin", "GET", path, ""); w.Code != 200 || strings.TrimSpace(w.Body.String()) != want {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	b.do(t, "POST", "/update-classes?environment=test", "", 201)
	for body, want := range map[string]string{
		`["and",["=",["fact","kernel"],"Linux"],["not",["~","name","^db"]]]`: `["and",["=",["fact","kernel"],"Linux"],["not",["~","certname","^db"]]]`,
		`["<=",["fact","cores"],"4"]`:                                        `["<=",["fact","cores"],4]`,
	} {
		if got := b.do(t, "POST", "/rules/translate?format=nodes", body, 200); number(got["query"]) != strings.NewReplacer("<", `\u003c`).Replace(want) {
			t.Errorf("%s became %s", body, number(got["query"]))
		}
	}
	role := b.do(t, "POST", "/rules/translate?format=inventory", `["=",["trusted","extensions","pp_role"],"web"]`, 200)
	if number(role["query"]) != `["=","trusted.extensions.pp_role","web"]` {
		t.Errorf("for the inventory: %v", role)
	}
	if got := b.do(t, "POST", "/validate/group", child("New", ""), 200); got["name"] != "New" {
		t.Errorf("validated %v", got)
	}
	if w := b.call("admin", "PUT", "/groups/"+noID, child("Put", "")); w.Code != 201 || !strings.Contains(w.Body.String(), noID) {
		t.Errorf("put: %d %s", w.Code, w.Body)
	}
}

// Who may see groups asks the routes that change nothing; what changes is recorded.
func TestReadersAskAndChangesAreRecorded(t *testing.T) {
	t.Parallel()
	b := newBench()
	const gone = "/groups/11111111-1111-4111-8111-111111111111"
	for _, c := range []struct {
		token, method, path string
		denied              bool
	}{
		{"reader", "GET", "/groups", false},
		{"reader", "POST", "/rules/translate", false},
		{"reader", "POST", "/validate/group", false},
		{"reader", "POST", "/classified/nodes/web-1", false},
		{"reader", "POST", "/groups", true},
		{"reader", "DELETE", gone, true},
		{"admin", "DELETE", gone, false},
	} {
		if w := b.call(c.token, c.method, c.path, `{}`); (w.Code == http.StatusForbidden) != c.denied {
			t.Errorf("%s %s as %s: %d %s", c.method, c.path, c.token, w.Code, w.Body)
		}
	}
	entries, err := b.acts.Acts(t.Context(), rbac.EntryFilter{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Actor+" "+e.Operation+" "+string(e.Outcome)+": "+e.Detail)
	}
	want := []string{
		"ops DELETE /classifier-api/v1/groups/{id} failed: the group with the id 11111111-1111-4111-8111-111111111111 could not be found",
		"reader DELETE /classifier-api/v1/groups/{id} denied: user reader does not have the permission group:write",
		"reader POST /classifier-api/v1/groups denied: user reader does not have the permission group:write",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("audit log (-want +got):\n%s", diff)
	}
}
