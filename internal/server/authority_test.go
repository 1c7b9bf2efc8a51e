package server

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/target"
)

func TestConditionsOfGrantsAreAskedOfTheInventory(t *testing.T) {
	t.Parallel()
	p := openParts(t, func(*settings.Config) {})
	for name, role := range map[fleet.Certname]string{"web-1": "web", "web-2": "web", "db-1": "db"} {
		facts, _ := json.Marshal(map[string]string{"role": role})
		if _, _, err := p.store.Facts.SaveFacts(t.Context(), inventory.FactSet{Certname: name, Environment: "production", Values: facts}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		condition string
		nodes     []fleet.Certname
		want      []fleet.Certname
	}{
		{`facts.role = "web"`, []fleet.Certname{"web-1", "db-1", "gone"}, []fleet.Certname{"web-1"}},
		{`facts.role = "web" or facts.role = "db"`, []fleet.Certname{"db-1"}, []fleet.Certname{"db-1"}}, // and not every node of the first
		{`certname ~ "1$"`, []fleet.Certname{"web-1", "web-2"}, []fleet.Certname{"web-1"}},
	} {
		got, err := target.Scopes{Inventory: p.store.Queries}.Inside(t.Context(), c.condition, c.nodes)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, slices.Sorted(maps.Keys(got))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.condition, diff)
		}
	}
}

func TestConditionsThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "facts.role", `facts.role = "web" } limit 1`, `role = "web"`, `a="1") or (b="2"`} {
		if err := target.CheckScope(bad); fault.Of(err) != fault.Invalid || err == nil {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if err := target.CheckScope(`facts.role = "web" and trusted.extensions.pp_zone = "a"`); err != nil {
		t.Error(err)
	}
}

// A node that asks for another's catalog is refused, and that is known afterwards.
func TestRefusalsOfAgentsAreRecorded(t *testing.T) {
	t.Parallel()
	p := openParts(t, func(*settings.Config) {})
	routes, err := p.routes(p.health())
	if err != nil {
		t.Fatal(err)
	}
	front := p.front(routes, new(atomic.Bool))
	ask := func(actor fleet.Actor, method, path string) int {
		r := httptest.NewRequestWithContext(fleet.WithActor(t.Context(), actor), method, path, http.NoBody)
		r.RemoteAddr = "192.0.2.1:4711"
		w := httptest.NewRecorder()
		front.ServeHTTP(w, r)
		return w.Code
	}
	web := fleet.Actor{Kind: fleet.NodeActor, Name: "web-1"}
	for _, c := range []struct{ method, path string }{
		{http.MethodGet, "/puppet/v3/catalog/db-1?environment=production"},
		{http.MethodGet, "/puppet-ca/v1/certificate_statuses/all"},
		{http.MethodGet, "/pdb/query/v4/nodes"},
		{http.MethodGet, "/metrics"},
		{http.MethodDelete, "/api/v1/nodes/db-1"},
	} {
		if code := ask(web, c.method, c.path); code != http.StatusForbidden {
			t.Errorf("%s: %d", c.path, code)
		}
	}
	entries, err := p.store.Audit.Acts(t.Context(), rbac.EntryFilter{Limit: 10, Failing: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range slices.Backward(entries) {
		got = append(got, e.Operation+" "+e.Object)
		if e.Actor != "web-1" || e.Remote != "192.0.2.1" || e.RequestID == "" {
			t.Errorf("who, from where? %+v", e)
		}
	}
	want := []string{
		"GET /puppet/v3/catalog/ /puppet/v3/catalog/db-1",
		"GET /puppet-ca/v1/certificate_statuses/{any} ",
		"GET /pdb/query/v4/ /pdb/query/v4/nodes",
		"GET /metrics /metrics",
		"node.purge db-1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
}
