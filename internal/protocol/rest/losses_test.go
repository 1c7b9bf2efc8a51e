package rest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/deliver/delivertest"
	"github.com/tutti-project/tutti/internal/fleet"
)

// TestHeldCatalogs: what is held is listed, told with its node and its environment, and let go by who may release.
func TestHeldCatalogs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	had, lost := delivertest.CatalogOf("had"), delivertest.CatalogOf("lost")
	for node, ruling := range map[fleet.Certname]deliver.Ruling{"web-1": deliver.Hold, "web-2": deliver.Hold, "db-1": deliver.Warn} {
		b.seed(t, node, "production")
		b.held.store.Gave(node, had, 38)
		check(t, b.held.store.NoteLoss(t.Context(), deliver.Loss{Node: node, Ruling: ruling, Catalog: lost, Kept: had, Was: 38, At: time.Now()}))
	}
	b.held.store.Gave("db-1", lost, 1)
	var list api.List[api.CatalogLoss]
	listed := func(query string) string {
		t.Helper()
		check(t, json.Unmarshal(b.call(admin, http.MethodGet, api.Prefix+"/catalogs/losses"+query, nil).Body.Bytes(), &list))
		var names []string
		for _, l := range list.Items {
			names = append(names, l.Node)
		}
		return strings.Join(names, " ")
	}
	for query, want := range map[string]string{
		"": "web-1 web-2", "?warned=true": "db-1 web-1 web-2", "?environment=testing": "",
		"?version=" + string(lost.Version[:8]): "web-1 web-2", "?version=000000": "",
	} {
		if got := listed(query); got != want {
			t.Errorf("%q lists %q, want %q", query, got, want)
		}
	}
	// web-2 is held of a version before the one of the environment: its newest catalog is not of it.
	b.contains(t, "POST", "/environments/production/versions", `{"manifest":{"module_path":["modules"],"files":[]},"origin":"here"}`, http.StatusOK)
	var status api.CodeStatus
	check(t, json.Unmarshal(b.call(admin, http.MethodGet, api.Prefix+"/environments/production/status", nil).Body.Bytes(), &status))
	if len(status.Losses) != 2 || !strings.HasPrefix(status.Losses[0], "db-1: catalog given") || !strings.HasPrefix(status.Losses[1], "web-1: catalog held") ||
		status.Warned != 1 {
		t.Errorf("the environment's status tells %q, %d warned", status.Losses, status.Warned)
	}
	if n := status.NoFacts; n == nil || n.Nodes != 1 || n.Names[0] != "new-1" || status.Untried != nil {
		t.Errorf("unknown are %+v and %+v", n, status.Untried)
	}
	var node api.Node
	check(t, json.Unmarshal(b.call(admin, http.MethodGet, api.Prefix+"/nodes/web-1", nil).Body.Bytes(), &node))
	if l := node.Delivery.Loss; l == nil || !l.Held || l.Was != 38 || !strings.HasPrefix(l.Text, "catalog held: lost all of its 38 resources (version ") {
		t.Errorf("the node says %+v", l)
	}
	let := func(path, body string, code int, want string) {
		t.Helper()
		w := b.call(admin, http.MethodPost, api.Prefix+path, []byte(body))
		if w.Code != code || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s %s: %d %s, want %d %s", path, body, w.Code, w.Body, code, want)
		}
	}
	let("/nodes/db-1/catalog/let", "{}", http.StatusNotFound, "no catalog of db-1 is held")
	let("/nodes/web-1/catalog/let", "{}", http.StatusOK, `"web-1"`)
	let("/nodes/web-1/catalog/let", "{}", http.StatusNotFound, "no catalog of web-1 is held")
	let("/catalogs/let", `{"version":"abc"}`, http.StatusBadRequest, "6 digits")
	let("/catalogs/let", `{"version":"000000"}`, http.StatusNotFound, "no catalog of version 000000 is held")
	let("/catalogs/let", `{"version":"`+strings.ToUpper(string(lost.Version[:7]))+`"}`, http.StatusOK, `"web-2"`)
	if got := listed(""); got != "" {
		t.Errorf("held after it was let go: %s", got)
	}
}
