package rest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

// hiera is rest.Lookups: it answers with what it was asked.
type hiera struct{}

func (hiera) Where(_ context.Context, _ fleet.Certname, requested fleet.Environment) (fleet.Environment, fleet.Digest, error) {
	switch requested {
	case "":
		return "production", "v1", nil
	case "test":
		return "test", "v2", nil
	}
	return "", "", fault.New(fault.NotFound, "environment %s has no code", requested)
}

func (hiera) Lookup(_ context.Context, node fleet.Certname, env fleet.Environment, version fleet.Digest, q compile.Lookup) (compile.Looked, error) {
	if q.Keys[0] == "broken" {
		return compile.Looked{}, &compile.Error{
			Cause: compile.CauseCode, Message: "no hierarchy (file: /etc/puppetlabs/code/environments/production/hiera.yaml, line: 3)", File: "hiera.yaml", Line: 3,
		}
	}
	asked, err := json.Marshal([]any{node, env, version, q})
	return compile.Looked{Found: true, Value: asked, Logs: []compile.Log{{Level: "warning", Message: "old"}}}, err
}

func TestLookup(t *testing.T) {
	t.Parallel()
	b := fleetBench(t)
	var got api.LookedUp
	b.do(t, "POST", "/nodes/n-1/lookup", `{"keys":["a::b"],"merge":"deep","knockout_prefix":"--","environment":"test","default":"","explain":true}`, &got)
	want := api.LookedUp{
		Node: "n-1", Environment: "test", Version: "v2", Keys: []string{"a::b"}, Found: true, Logs: []api.CompileLog{{Level: "warning", Message: "old"}},
		Value: json.RawMessage(`["n-1","test","v2",{"Keys":["a::b"],"Merge":{"Strategy":"deep","KnockoutPrefix":"--","SortMergedArrays":false,"MergeHashArrays":false},"Default":"","Explain":true,"Compile":false}]`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for body, c := range map[string]struct {
		status int
		text   string
	}{
		`{}`:                           {400, "field keys: 1 to 100 keys"},
		`{"keys":["x",""]}`:            {400, "a key has 1 to 1000 bytes"},
		`{"keys":["x"],"merge":"odd"}`: {400, "field merge: first, unique, hash or deep"},
		`{"keys":["x"],"sort_merged_arrays":true}`: {400, "are for merge deep only"},
		`{"keys":["x"],"environment":"nowhere"}`:   {404, "environment nowhere has no code"},
		`{"keys":["broken"]}`:                      {200, "hiera.yaml:3: no hierarchy"},
	} {
		b.gets(t, "POST", "/nodes/n-1/lookup", body, c.status, c.text)
	}
	b.gets(t, "POST", "/nodes/stranger/lookup", `{"keys":["x"]}`, 404, "nothing is known of node stranger")
}

// It takes the right to have code compiled there, and to read the node's catalog.
func TestWhoMayLookUp(t *testing.T) {
	t.Parallel()
	b := fleetBench(t)
	grants := map[string][]fleet.Grant{
		"both":      {{Permission: fleet.PreviewCreate}, {Permission: fleet.CatalogRead}},
		"catalogs":  {{Permission: fleet.CatalogRead}},
		"previews":  {{Permission: fleet.PreviewCreate}},
		"only test": {{Permission: fleet.PreviewCreate, Environments: []string{"test"}}, {Permission: fleet.CatalogRead}},
	}
	for role, granted := range grants {
		check(t, b.store.CreateRole(t.Context(), rbac.Role{Name: role, Grants: granted}))
		b.someone(t, role, role)
	}
	for _, c := range []struct {
		role, node, body string
		status           int
	}{
		{"both", "n-1", `{"keys":["x"]}`, http.StatusOK},
		{"catalogs", "n-1", `{"keys":["x"]}`, http.StatusForbidden},
		{"previews", "n-1", `{"keys":["x"]}`, http.StatusForbidden},
		{"only test", "n-1", `{"keys":["x"],"environment":"test"}`, http.StatusOK},
		{"only test", "n-1", `{"keys":["x"]}`, http.StatusForbidden}, // its data is of production
		{"only test", "n-0", `{"keys":["x"],"environment":"test"}`, http.StatusForbidden},
	} {
		w := b.call(who{name: c.role, token: c.role}, "POST", "/api/v1/nodes/"+c.node+"/lookup", []byte(c.body))
		if w.Code != c.status {
			t.Errorf("%s %s %s: %d %s", c.role, c.node, c.body, w.Code, w.Body)
		}
	}
}
