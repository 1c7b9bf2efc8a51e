package rest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// classifier is rest.Classifier over stored groups and facts.
type classifier struct {
	groups classify.Store
	facts  inventory.FactStore
}

func (c classifier) tree(ctx context.Context, name fleet.Certname) (*classify.Tree, classify.Node, error) {
	groups, _, err := c.groups.Groups(ctx)
	if err != nil {
		return nil, classify.Node{}, err
	}
	facts, err := c.facts.Facts(ctx, name)
	if err != nil && fault.Of(err) != fault.NotFound {
		return nil, classify.Node{}, err
	}
	node, err := classify.NewNode(name, facts.Values, nil)
	return classify.NewTree(groups), node, err
}

func (c classifier) Explain(ctx context.Context, name fleet.Certname) (classify.Explained, error) {
	tree, node, err := c.tree(ctx, name)
	if err != nil {
		return classify.Explained{}, err
	}
	return classify.Explained{Explanation: tree.Explain(node), FactsKnown: true}, err
}

func (c classifier) Members(ctx context.Context, group classify.ID, names []fleet.Certname) (map[fleet.Certname]bool, error) {
	members := map[fleet.Certname]bool{}
	for _, name := range names {
		tree, node, err := c.tree(ctx, name)
		if err != nil {
			return nil, err
		}
		if member, pinned := tree.Gate(group).Admits(node); member {
			members[name] = pinned
		}
	}
	return members, nil
}

// do is a call of an administrator that must succeed.
func (b bench) do(t *testing.T, method, path, body string, into any) {
	t.Helper()
	w := b.call(admin, method, api.Prefix+path, []byte(body))
	if w.Code != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	check(t, json.Unmarshal(w.Body.Bytes(), into))
}

func TestAGroupsLife(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var made, shown, edited api.Group
	b.do(t, "POST", "/groups", `{"group":{"name":"Web/servers","rule":"facts.os.family = \"Debian\"","nodes":["x-1"],"classes":{"apache":{"port":80}}}}`, &made)
	if made.Revision != 1 || made.Parent != "All Nodes" || made.ChangedBy != "admin" || string(made.Rule) != `["=",["fact","os","family"],"Debian"]` {
		t.Errorf("made %+v", made)
	}
	b.do(t, "GET", "/groups/Web%2Fservers", "", &shown)
	if diff := cmp.Diff(made, shown); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	b.do(t, "PUT", "/groups/"+made.ID, `{"revision":1,"group":{"name":"Web","rule":["~","name","^web"]}}`, &edited)
	if edited.Revision != 2 || edited.RuleText != `name ~ "^web"` || len(edited.Classes) != 0 {
		t.Errorf("edited %+v", edited)
	}
	for path, status := range map[string]int{"/groups/Web?revision=1": 409, "/groups/All%20Nodes": 400, "/groups/none": 404} {
		if w := b.call(admin, "DELETE", api.Prefix+path, nil); w.Code != status {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := b.call(admin, "DELETE", api.Prefix+"/groups/Web?revision=2", nil); w.Code != http.StatusNoContent {
		t.Errorf("delete: %d %s", w.Code, w.Body)
	}
}

func TestGroupsThatAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, c := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"rule as text":   {`{"name":"x","rule":"facts.os.family is Debian"}`, 400, "rule, line 1, column 17: one of = != ~ !~ < <= > >= is expected"},
		"rule as array":  {`{"name":"x","rule":["and",["=",["fact","a"],"b"],["=",["fakt","a"],"b"]]}`, 400, `rule[2][1]: \"name\"`},
		"rule as number": {`{"name":"x","rule":7}`, 400, "a condition is expected"},
		"class":          {`{"name":"x","classes":{"Apache":{}}}`, 400, `classes: a class like apache::mod is expected, not \"Apache\"`},
		"parent":         {`{"name":"x","parent":"none"}`, 400, `parent: there is no group \"none\"`},
		"node":           {`{"name":"x","nodes":["A"]}`, 400, "nodes: the certname"},
		"environment":    {`{"name":"x","environment":"a-b"}`, 400, "environment: "},
		"field":          {`{"name":"x","clases":{}}`, 400, "clases"},
		"name":           {`{"name":"All Nodes"}`, 409, "there is a group"},
		"id":             {`{"name":"x","id":"7"}`, 400, "UUID"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := b.call(admin, "POST", "/api/v1/groups", []byte(`{"group":`+c.body+`}`))
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("got %d %s, want %d with %q", w.Code, w.Body, c.status, c.want)
			}
		})
	}
}

const applied = `{"groups":[
	{"name":"All Nodes","classes":{"base":{}}},
	{"name":"Debian","rule":"facts.os.family = \"Debian\"","classes":{"apt":{"purge":true}}},
	{"name":"Big","parent":"Debian","rule":"facts.cores >= 4","classes":{"apt":{"purge":false}}}]`

func TestApplyIsShownThenMade(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var old api.Group
	b.do(t, "POST", "/groups", `{"group":{"name":"Old","description":"goes"}}`, &old)
	var shown, made, again api.GroupApplyResponse
	b.do(t, "POST", "/groups/apply", applied+`,"dry_run":true}`, &shown)
	var kinds []string
	for _, c := range shown.Changes {
		kinds = append(kinds, c.Kind+" "+c.Name)
	}
	if diff := cmp.Diff([]string{"create Debian", "create Big", "update All Nodes", "delete Old"}, kinds); diff != "" || shown.Applied {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]api.GroupDifference{{Field: "classes.base", New: "base"}}, shown.Changes[2].Differences); diff != "" {
		t.Errorf("the root (-want +got):\n%s", diff)
	}
	b.do(t, "POST", "/groups/apply", applied+`,"revision":2}`, &made)
	b.do(t, "POST", "/groups/apply", applied+`}`, &again)
	if !made.Applied || len(made.Changes) != 4 || len(again.Changes) != 0 {
		t.Errorf("made %+v, then %+v", made, again)
	}
	for body, status := range map[string]int{applied + `,"revision":1}`: 409, `{"groups":[]}`: 400} {
		if w := b.call(admin, "POST", "/api/v1/groups/apply", []byte(body)); w.Code != status {
			t.Errorf("got %d %s, want %d", w.Code, w.Body, status)
		}
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var made api.GroupApplyResponse
	b.do(t, "POST", "/groups/apply", applied+`}`, &made)
	var e api.GroupExplanation
	b.do(t, "GET", "/nodes/web-1/groups", "", &e)
	if got := string(e.Classes["apt"]["purge"]); got != "false" || e.Classes["base"] == nil || !e.FactsKnown || e.TrustedKnown {
		t.Errorf("explained %+v", e)
	}
	var states []string
	for _, o := range e.Origins {
		if o.Kind == "parameter" {
			states = append(states, o.Group+" "+string(o.Value)+" "+o.State+" via "+strings.Join(o.Via, ","))
		}
	}
	if diff := cmp.Diff([]string{"Debian true overridden via Big", "Big false used via Big"}, states); diff != "" {
		t.Errorf("origins (-want +got):\n%s", diff)
	}
}
