package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fleet"
)

// TestWhichNodesHaveWhichVersion holds that a catalog which stands for the current version counts as of that, but not one that a release
// gave; that each number leads to its nodes; and that the numbers of a row add up.
func TestWhichNodesHaveWhichVersion(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	deploy := func(text string) (made api.Version) {
		digest := fleet.DigestOf([]byte(text))
		if w := b.call(admin, http.MethodPost, api.Prefix+"/blobs", archive(t, string(digest), []byte(text))); w.Code != http.StatusOK {
			t.Fatalf("no blob: %s", w.Body)
		}
		body := fmt.Appendf(nil, `{"manifest":{"module_path":[],"files":[{"path":"manifests/site.pp","digest":%q,"size":%d}]},"check":"off"}`, digest, len(text))
		w := b.call(admin, http.MethodPost, api.Prefix+"/environments/production/versions", body)
		check(t, json.Unmarshal(w.Body.Bytes(), &made))
		return made
	}
	first, second := deploy("notify { 'a': }\n"), deploy("notify { 'b': }\n")
	gave := func(node fleet.Certname, version string) {
		b.held.store.Gave(node, deliver.Catalog{Digest: fleet.DigestOf([]byte(version + string(node))), Environment: "production", Version: fleet.Digest(version)}, 1)
	}
	for _, node := range []fleet.Certname{"web-2", "web-3", "web-4", "db-1"} {
		b.seed(t, node, "production")
	}
	b.seed(t, "other-1", "testing")
	gave("web-1", first.ID) // stands for the second version
	gave("web-2", first.ID)
	previewed := string(fleet.DigestOf([]byte("released from a preview, and never deployed")))
	gave("web-3", previewed)
	gave("db-1", first.ID) // would stand for the second version, but is released
	_, err := b.held.SetMode(t.Context(), deliver.ModeSet{Node: "db-1", Mode: deliver.Released, By: "ann"})
	check(t, err)
	gave("db-1", second.ID)
	if w := b.call(admin, http.MethodPost, api.Prefix+"/groups", []byte(`{"group":{"name":"Webs","rule":"name ~ \"^web\""}}`)); w.Code != http.StatusOK {
		t.Fatalf("no group: %s", w.Body)
	}
	if w := b.call(admin, http.MethodPost, api.Prefix+"/groups", []byte(`{"group":{"name":"Nobody","rule":"name = \"x\""}}`)); w.Code != http.StatusOK {
		t.Fatalf("no group: %s", w.Body)
	}

	var got api.CodeSpread
	b.do(t, http.MethodGet, "/environments/production/spread", "", &got)
	for i := range got.Versions {
		if deployed := got.Versions[i].DeployedAt != nil; deployed != (got.Versions[i].ID != previewed) {
			t.Errorf("when was it deployed? %+v", got.Versions[i])
		}
		got.Versions[i] = api.SpreadVersion{ID: got.Versions[i].ID, Current: got.Versions[i].Current}
	}
	want := api.CodeSpread{
		Environment: "production", Versions: []api.SpreadVersion{{ID: previewed}, {ID: second.ID, Current: true}, {ID: first.ID}},
		Groups: []api.SpreadGroup{
			{Group: "All Nodes", Nodes: 5, Counts: []int{1, 1, 2}, None: 1},
			{Group: "Webs", Depth: 1, Nodes: 4, Counts: []int{1, 1, 1}, None: 1},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the spread (-want +got):\n%s", diff)
	}
	for query, names := range map[string][]string{
		"version=" + first.ID[:10]:          {"db-1", "web-2"},
		"version=" + second.ID:              {"web-1"},
		"version=" + previewed[:12]:         {"web-3"},
		"version=none":                      {"web-4"},
		"group=Webs&version=" + first.ID:    {"web-2"},
		"total=true&version=" + first.ID:    {"db-1", "web-2"},
		"order=-name&version=" + first.ID:   {"web-2", "db-1"},
		"status=failed&version=" + first.ID: nil,
	} {
		var list api.List[api.Node]
		b.do(t, http.MethodGet, "/nodes?environment=production&"+query, "", &list)
		var found []string
		for _, n := range list.Items {
			found = append(found, n.Name)
		}
		if diff := cmp.Diff(names, found); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	for path, code := range map[string]int{
		"/nodes?version=" + first.ID: http.StatusBadRequest, "/nodes?environment=production&version=ffffffffff": http.StatusNotFound,
		"/environments/nowhere/spread": http.StatusNotFound,
	} {
		if w := b.call(admin, http.MethodGet, api.Prefix+path, nil); w.Code != code {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
