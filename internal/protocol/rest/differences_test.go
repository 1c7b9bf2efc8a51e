package rest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// give stores a catalog as the newest one of a node.
func (b bench) give(t *testing.T, node fleet.Certname, env fleet.Environment, resources string) fleet.Digest {
	t.Helper()
	document := []byte(`{"exported":[],"catalog":{"name":"` + string(node) + `","environment":"` + string(env) + `","resources":[` + resources + `]}}`)
	digest := fleet.DigestOf(document)
	if w := b.call(admin, http.MethodPost, api.Prefix+"/blobs", archive(t, string(digest), document)); w.Code != http.StatusOK {
		t.Fatalf("upload: %d %s", w.Code, w.Body)
	}
	check(t, b.known.SaveCatalog(t.Context(), inventory.Catalog{Certname: node, Environment: env, Digest: digest, Compilation: 1}))
	return digest
}

func TestCatalogsAreCompared(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	web := b.give(t, "web-1", "production", `{"type":"User","title":"a","parameters":{"uid":1,"password":"S3CR3T-1"},"sensitive_parameters":["password"]}`)
	db := b.give(t, "db-1", "other", `{"type":"User","title":"a","parameters":{"uid":2,"password":"S3CR3T-2"},"sensitive_parameters":["password"]}`)
	b.give(t, "web-2", "production", `{"type":"User","title":"a","parameters":{"uid":1,"password":"S3CR3T-1"},"sensitive_parameters":["password"]}`)
	check(t, b.known.SaveCatalog(t.Context(), inventory.Catalog{
		Origin: inventory.Origin{Producer: "ps.example"}, Certname: "web-3", Digest: fleet.DigestOf([]byte("d")), Received: true,
	}))
	code := fleet.DigestOf([]byte("not a catalog"))
	b.call(admin, http.MethodPost, api.Prefix+"/blobs", archive(t, string(code), []byte("not a catalog")))
	for _, c := range []struct {
		name, caller, body string
		status             int
		want               string
	}{
		{"two nodes", "admin", `{"node":"db-1"}`, 200, `{"name":"uid","change":"changed","old":1,"new":2}`},
		{"a secret", "admin", `{"node":"db-1"}`, 200, `{"name":"password","change":"changed","hidden":true}`},
		{"sides", "admin", `{"node":"db-1"}`, 200, `"new":{"name":"db-1","environment":"other","digest":"` + string(db) + `"`},
		{"no difference", "admin", `{"node":"web-2"}`, 200, `"same":true`},
		{"by digest", "admin", `{"digest":"` + string(db) + `"}`, 200, `"name":"uid"`},
		{"sent", "admin", `{"document":{"resources":[]}}`, 200, `"not_compared":true`},
		{"nothing", "admin", `{}`, 400, "exactly one of node, digest and document"},
		{"too much", "admin", `{"node":"db-1","digest":"` + string(db) + `"}`, 400, "not 2 of them"},
		{"no catalog", "admin", `{"document":{"a":"S3CR3T"}}`, 400, "this is no catalog"},
		{"unknown node", "admin", `{"node":"web-9"}`, 404, "web-9"},
		{"a wrong name", "admin", `{"node":"../x"}`, 400, "two dots"},
		{"a wrong digest", "admin", `{"digest":"x"}`, 400, "64 hexadecimal digits"},
		{"a blob that is no catalog", "admin", `{"digest":"` + string(code) + `"}`, 404, "no catalog " + code.Short() + " is stored"},
		{"of another server", "admin", `{"node":"web-3"}`, 404, "was compiled by ps.example"},
		{"a node that is not theirs", "web team", `{"node":"db-1"}`, 403, "only for nodes with"},
		{"a node that is theirs", "web team", `{"node":"web-2"}`, 200, `"same":true`},
		{"what may be anybody's", "web team", `{"digest":"` + string(web) + `"}`, 403, "catalog:read"},
		{"a catalog of their own", "web team", `{"document":{"resources":[]}}`, 200, `"removed":1`},
	} {
		w := b.call(caller(t, c.caller), http.MethodPost, api.Prefix+"/nodes/web-1/catalog/diff", []byte(c.body))
		if text := w.Body.String(); w.Code != c.status || !strings.Contains(text, c.want) || strings.Contains(text, "S3CR3T") {
			t.Errorf("%s: got %d %s, want %d with %s", c.name, w.Code, text, c.status, c.want)
		}
	}
	if w := b.call(caller(t, "web team"), http.MethodPost, api.Prefix+"/nodes/db-1/catalog/diff", []byte(`{"node":"web-1"}`)); w.Code != http.StatusForbidden {
		t.Errorf("from a node that is not theirs: %d %s", w.Code, w.Body)
	}
	var answer api.CatalogDifference
	w := b.call(admin, http.MethodPost, api.Prefix+"/nodes/web-1/catalog/diff", []byte(`{"node":"db-1"}`))
	if check(t, json.Unmarshal(w.Body.Bytes(), &answer)); answer.Changed != 1 || len(answer.Resources) != 1 {
		t.Errorf("got %+v", answer)
	}
}
