package rest_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/policy"
	"github.com/tutti-project/tutti/internal/preview"
)

// fixedChanges is rest.PreviewJudge over previews that all remove a user from twelve nodes.
type fixedChanges struct{ policies *policy.Service }

// JudgePreview implements rest.PreviewJudge.
func (f fixedChanges) JudgePreview(ctx context.Context, p preview.Preview, rules []policy.Rule, at time.Time) (policy.Verdict, error) {
	removal := policy.Change{Key: "k1", Kind: "removed", Type: "User", Title: "ops", Nodes: []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}
	return f.policies.JudgeBy(ctx, rules, policy.Subject{Environment: p.Environment, At: at, Nodes: 20}, func(yield func(policy.Change, error) bool) {
		yield(removal, nil)
	})
}

const removals = `"when":"change.kind == \"removed\" and change.nodes > 10"`

func TestPolicies(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	at := "/previews/" + b.somePreview(t, true) + "/policies"
	b.gets(t, http.MethodGet, "/policies", "", 200, `"items":[]`)
	b.gets(t, http.MethodPut, "/policies/users",
		`{"definition":{"effect":"approve","role":"lead","author_may":true,"message":"who is it",`+removals+`,"environments":["production"]}}`, 200,
		`"name":"users","version":1,"author":"admin"`, `"effect":"approve","role":"lead","author_may":true`)
	b.gets(t, http.MethodPut, "/policies/users", `{"definition":{"effect":"deny","message":"no",`+removals+`}}`, 200, `"version":2`)
	b.gets(t, http.MethodGet, "/policies/users", "", 200, `"version":2`, `"effect":"deny"`)
	b.gets(t, http.MethodPost, at, "{}", 200, `"findings":[{"policy":"users","version":2,"effect":"deny","message":"no","nodes":12,"found":1,"changes":["k1"]}]`)
	b.gets(t, http.MethodPost, at, `{"policy":"users"}`, 200, `"nodes":12`)
	b.gets(t, http.MethodPost, at, `{"definition":{"effect":"warn","message":"x","when":"release.nodes > 100"}}`, 200, `"findings":[]`)
	b.gets(t, http.MethodDelete, "/policies/users", "", 200, `"removed":true`)
	b.gets(t, http.MethodPost, at, "{}", 200, `"findings":[]`)
	b.gets(t, http.MethodGet, "/policies/users/history", "", 200, `"version":3`, `"version":2`, `"version":1`)
	b.gets(t, http.MethodGet, "/policies/users", "", 404, "any more: admin removed it")

	b.gets(t, http.MethodPut, "/freezes/weekend", `{"definition":{"weekly":"fri 16:00-mon 06:00","zone":"Europe/Berlin","why":"nobody is there"}}`, 200,
		`"version":1`)
	b.gets(t, http.MethodPut, "/freezes/move", `{"definition":{"from":"2020-01-01T00:00:00Z","to":"2999-01-01T00:00:00Z","zone":"UTC","why":"moving"}}`, 200,
		`"until":"2999-01-01T00:00:00Z"`)
	b.gets(t, http.MethodDelete, "/freezes/move", "", 200)
	b.gets(t, http.MethodPost, at, `{"at":"2026-11-21T12:00:00Z"}`, 200, `"frozen":{"until":"2026-11-23T05:00:00Z","why":"nobody is there","freezes":["weekend"]}`)
	if text := b.gets(t, http.MethodPost, at, `{"at":"2026-11-24T12:00:00Z"}`, 200); strings.Contains(text, "frozen") {
		t.Errorf("on a Tuesday: %s", text)
	}
	b.gets(t, http.MethodGet, "/freezes", "", 200, `"name":"weekend"`)
	b.gets(t, http.MethodGet, "/freezes/move/history", "", 200, `"version":2`)
}

func TestPoliciesRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	at := "/previews/" + b.somePreview(t, true) + "/policies"
	for _, ask := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"PUT", "/policies/No", `{"definition":{"effect":"deny","message":"x","when":"true"}}`, 400, "field name"},
		{"PUT", "/policies/a", `{"definition":{"effect":"no","message":"x","when":"true"}}`, 400, "none of deny, approve and warn"},
		{"PUT", "/policies/a", `{"definition":{"effect":"approve","message":"x","when":"true"}}`, 400, "who approves?"},
		{"PUT", "/policies/a", `{"definition":{"effect":"deny","message":"x","when":"change.nope > 1"}}`, 400, "field when"},
		{"PUT", "/policies/a", `{"definition":{"effect":"deny","message":"x","when":"1 + 1"}}`, 400, "field when"},
		{"GET", "/policies/none", "", 404, "there is no policy"},
		{"DELETE", "/policies/none", "", 404, "there is no policy"},
		{"DELETE", "/freezes/none", "", 404, "there is no freeze"},
		{"PUT", "/freezes/a", `{"definition":{"weekly":"never","zone":"UTC","why":"x"}}`, 400, "field weekly"},
		{"PUT", "/freezes/a", `{"definition":{"weekly":"daily 10:00-11:00","why":"x"}}`, 400, "field zone"},
		{"POST", at, `{"policy":"a","definition":{"effect":"deny","message":"x","when":"true"}}`, 400, "give one of them"},
	} {
		b.gets(t, ask.method, ask.path, ask.body, ask.status, ask.want)
	}
}

func TestNoise(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	at := "/previews/" + b.readyPreview(t)
	b.gets(t, http.MethodPut, "/noise/all-there-is", `{"noise":{"title":"*","why":"a test"}}`, 200, `"version":1,"author":"admin"`)
	b.gets(t, http.MethodGet, "/noise", "", 200, `"name":"all-there-is"`)
	b.gets(t, http.MethodGet, at, "", 200, `"quiet":2`, `"hidden":[{"rule":"all-there-is","version":1,"changes":1}]`, `"noise":"all-there-is"`)
	b.gets(t, http.MethodGet, "/previews", "", 200, `"quiet":2`)
	b.gets(t, http.MethodGet, at+"/nodes", "", 200, `"quiet":true`)
	b.gets(t, http.MethodDelete, "/noise/all-there-is", "", 200, `"removed":true`)
	if text := b.gets(t, http.MethodGet, at, "", 200); strings.Contains(text, "quiet") {
		t.Errorf("a removed rule hides: %s", text)
	}
	b.gets(t, http.MethodGet, "/noise/all-there-is/history", "", 200, `"version":2`, `"version":1`)
	b.gets(t, http.MethodGet, "/environments/production/noise/suggestions", "", 200, `"items":[]`)
	b.gets(t, http.MethodPut, "/noise/nothing", `{"noise":{}}`, 400, "say at least one of")
	b.gets(t, http.MethodPut, "/noise/x", `{"noise":{"change":"error","title":"*"}}`, 400, "never noise")
	w := b.call(caller(t, "viewer"), http.MethodPut, api.Prefix+"/noise/x", []byte(`{"noise":{"title":"*"}}`))
	if w.Code != http.StatusForbidden {
		t.Errorf("a viewer hides changes: %d %s", w.Code, w.Body)
	}
}
