package rest_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/rbac"
)

// All three nodes have a new catalog. Of one of them it is known what it applied, and it is shown to those who may read catalogs.
func TestAPlanSaysWhatChanges(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	for node, env := range map[fleet.Certname]fleet.Environment{"web-1": "production", "web-2": "production", "db-1": "other"} {
		check(t, b.known.SaveCatalog(t.Context(), inventory.Catalog{
			Certname: node, Environment: env, Digest: fleet.DigestOf([]byte("new")), CompiledAt: time.Now().Add(time.Hour),
		}))
	}
	b.mode(t, "web-1", "released")
	for _, version := range []string{"first", "next"} {
		b.release(t, admin, api.CatalogReleaseRequest{Targets: api.JobTargets{Nodes: []string{"web-1"}}, Version: version})
	}
	var d api.Delivery
	check(t, json.Unmarshal(b.call(admin, http.MethodGet, api.Prefix+"/nodes/web-1/delivery", nil).Body.Bytes(), &d))
	next, first := d.Generations[0], d.Generations[1]
	b.held.store.Ran("web-1", first.UUID, time.Now())

	const order = `{"targets":{"all":true},"dry_run":true}`
	status, started, problem := b.order(t, "admin", "/jobs/puppet", order)
	want := &api.FleetDifference{Nodes: 1, Groups: []api.ChangeGroup{
		{Change: "added", Type: "Notify", Title: first.Catalog + " to " + next.Catalog, Nodes: 1, Examples: []string{"web-1"}},
	}}
	if diff := cmp.Diff(want, started.Plan.Changes); diff != "" || started.Plan.Uncompared != 2 {
		t.Errorf("%d %s, %d nodes are not compared (-want +got):\n%s", status, problem, started.Plan.Uncompared, diff)
	}
	if got := expectedOf(started.Plan, "web-1"); got != api.ExpectCatalog {
		t.Errorf("of a node that applied the one before: %s", got)
	}
	check(t, b.store.CreateRole(t.Context(), rbac.Role{Name: "runner", Grants: []fleet.Grant{{Permission: fleet.PuppetRun}}}))
	check(t, b.store.CreateUser(t.Context(), rbac.User{Name: "runner", Kind: rbac.Person, Roles: []string{"runner"}}))
	hash, _ := rbac.HashOf(secret("runner"))
	check(t, b.store.SaveAccessToken(t.Context(), rbac.Token{ID: "t-runner", Hash: hash, Owner: "runner"}))
	w := b.call(who{token: "runner"}, http.MethodPost, api.Prefix+"/jobs/puppet", []byte(order))
	started = api.JobStarted{}
	check(t, json.Unmarshal(w.Body.Bytes(), &started))
	if w.Code != http.StatusOK || started.Plan.Changes != nil || started.Plan.Uncompared != 3 {
		t.Errorf("who may not read catalogs: %d %s", w.Code, w.Body)
	}
	if _, started, _ = b.order(t, "admin", "/jobs/command", `{"targets":{"all":true},"command":"id","dry_run":true}`); started.Plan.Changes != nil ||
		started.Plan.Uncompared != 0 {
		t.Errorf("of a command: %+v", started.Plan)
	}
	// That the catalog is younger than the report says nothing: it was compiled for this run.
	b.held.store.Ran("web-1", next.UUID, time.Now())
	if _, started, _ = b.order(t, "admin", "/jobs/puppet", order); expectedOf(started.Plan, "web-1") != api.ExpectNothing {
		t.Errorf("of a node that applied what it has: %s", expectedOf(started.Plan, "web-1"))
	}
}

func expectedOf(plan api.JobPlan, node string) string {
	for _, target := range plan.Targets {
		if target.Node == node {
			return target.Expected
		}
	}
	return ""
}
