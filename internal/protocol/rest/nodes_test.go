package rest_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// TestNodesSayWhatTheirRunsHad holds that a list and a page of a node say when a run had no catalog of its own, what it would have
// changed, and why its catalog does not compile.
func TestNodesSayWhatTheirRunsHad(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	check(t, b.known.SaveReport(t.Context(), inventory.Report{
		ID: fleet.DigestOf([]byte("late")), Certname: "web-1", Environment: "production", Status: "unchanged",
		Noop: true, NoopPending: true, CachedCatalog: inventory.OnFailure,
		Counts: inventory.Counts{Noop: 3}, ReceivedAt: time.Now().Add(time.Hour),
	}))
	b.seed(t, "web-2", "production")
	var list api.List[api.Node]
	check(t, json.Unmarshal(b.call(admin, http.MethodGet, api.Prefix+"/nodes", nil).Body.Bytes(), &list))
	var one api.Node
	check(t, json.Unmarshal(b.call(admin, http.MethodGet, api.Prefix+"/nodes/web-1", nil).Body.Bytes(), &one))
	for _, n := range append(list.Items, one) {
		bad := n.Name == "web-1"
		if n.CachedCatalog != bad || (n.Pending == 3) != bad || (n.CompileError != nil) != bad {
			t.Errorf("%s: %+v", n.Name, n)
		}
		if bad && (n.CompileError.Message != "Syntax error at '}'" || n.CompileError.File != "site.pp" || n.CompileError.Line != 3) {
			t.Errorf("the error: %+v", n.CompileError)
		}
	}
	if len(list.Items) != 2 {
		t.Errorf("%d nodes", len(list.Items))
	}
}
