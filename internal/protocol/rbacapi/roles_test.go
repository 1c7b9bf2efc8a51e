package rbacapi_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

type m map[string]any

func permission(object, action, instance string) m {
	return m{"object_type": object, "action": action, "instance": instance}
}

// roleNamed reads a role by its name.
func (b *bench) roleNamed(name string) (path string, shown m) {
	b.t.Helper()
	var roles []m
	b.answer("admin", "GET", "/rbac-api/v1/roles", nil, http.StatusOK, &roles)
	for _, r := range roles {
		if r["display_name"] == name {
			return fmt.Sprintf("/rbac-api/v1/roles/%.0f", r["id"]), r
		}
	}
	b.t.Fatalf("no role %s in %v", name, roles)
	return "", nil
}

func TestRolesAreReadAndWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	path, web := b.roleNamed("web-tasks")
	want := []any{
		map[string]any(permission("orchestrator", "view", "*")), map[string]any(permission("release", "read", "*")),
		map[string]any(permission("tasks", "run", "facts")), map[string]any(permission("tasks", "run", "web::*")),
	}
	if diff := cmp.Diff(want, web["permissions"]); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{b.ids["ann"]}, web["user_ids"]); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	// Written back, changed.
	web["permissions"] = []m{
		permission("tasks", "run", "facts"), permission("environment", "deploy_code", "canary"), permission("environment", "deploy_code", "dev_*"),
	}
	web["user_ids"] = []string{b.ids["off"]}
	b.answer("admin", "PUT", path, web, http.StatusOK, nil)
	stored, err := b.store.Role(t.Context(), "web-tasks")
	b.must(err)
	grants := []fleet.Grant{{Permission: fleet.CodeDeploy, Environments: []string{"canary", "dev_*"}}, {Permission: fleet.TaskRun, Tasks: []string{"facts"}}}
	if diff := cmp.Diff(grants, stored.Grants); diff != "" {
		t.Errorf("grants (-want +got):\n%s", diff)
	}
	_, web = b.roleNamed("web-tasks")
	if diff := cmp.Diff([]any{b.ids["off"]}, web["user_ids"]); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	// By commands. One without its list would change nothing, and is refused.
	for _, command := range []string{"roles/add-permissions", "roles/remove-permissions", "roles/add-users", "roles/remove-users"} {
		b.wrong("admin", "POST", "/rbac-api/v1/command/"+command, m{"role_id": web["id"], "roles": []int{3}}, http.StatusBadRequest, "schema-violation")
	}
	for _, command := range []string{"users/add-roles", "users/remove-roles"} {
		b.wrong("admin", "POST", "/rbac-api/v1/command/"+command, m{"user_id": b.ids["ann"], "roles": []int{3}}, http.StatusBadRequest, "schema-violation")
	}
	b.answer("admin", "POST", "/rbac-api/v1/command/roles/add-permissions", m{"role_id": web["id"], "permissions": []m{permission("puppet_agent", "run", "*")}},
		http.StatusNoContent, nil)
	b.answer("admin", "POST", "/rbac-api/v1/command/roles/remove-permissions", m{"role_id": web["id"], "permissions": []m{permission("tasks", "run", "facts")}},
		http.StatusNoContent, nil)
	b.answer("admin", "POST", "/rbac-api/v1/command/roles/add-users", m{"role_id": web["id"], "user_ids": []string{b.ids["ann"]}}, http.StatusNoContent, nil)
	b.answer("admin", "POST", "/rbac-api/v1/command/roles/remove-users", m{"role_id": web["id"], "user_ids": []string{b.ids["off"]}}, http.StatusNoContent, nil)
	_, web = b.roleNamed("web-tasks")
	if got := fmt.Sprint(web["permissions"], web["user_ids"]); got != fmt.Sprint([]any{
		map[string]any(permission("environment", "deploy_code", "canary")), map[string]any(permission("environment", "deploy_code", "dev_*")),
		map[string]any(permission("puppet_agent", "run", "*")),
	}, []any{b.ids["ann"]}) {
		t.Errorf("after commands: %s", got)
	}
	b.wrong("admin", "DELETE", path, nil, http.StatusConflict, "conflict")
	b.wrong("admin", "DELETE", "/rbac-api/v1/roles/1", nil, http.StatusForbidden, "default-roles-immutable")
	b.wrong("admin", "GET", "/rbac-api/v1/roles/x", nil, http.StatusBadRequest, "malformed-request")
	b.wrong("admin", "GET", "/rbac-api/v1/roles/77", nil, http.StatusNotFound, "not-found")
}

// A role is never written so that it gives more, or less, than what was shown says.
func TestWhatARoleCannotSay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	create := func(name string, permissions ...m) m {
		return m{"display_name": name, "permissions": permissions, "user_ids": []string{}, "group_ids": []string{}}
	}
	for _, form := range []m{
		create("few", permission("users", "reset_password", "*")), // it is user:write, which is more
		create("few", permission("shoes", "tie", "*")), create("few", permission("tasks", "run", "")), create("few", permission("orchestrator", "view", "web-1")),
		create("few", permission("tasks", "run", "a b")), create("Not A Name", permission("tasks", "run", "*")), create("few"),
		{"display_name": "few"},
		{"permissions": []m{}},
	} {
		b.wrong("admin", "POST", "/rbac-api/v1/roles", form, http.StatusBadRequest, "schema-violation")
	}
	b.wrong("admin", "POST", "/rbac-api/v1/roles", create("viewer", permission("tasks", "run", "*")), http.StatusConflict, "conflict")
	grouped := create("few", permission("tasks", "run", "*"))
	grouped["group_ids"] = []string{"x"}
	b.wrong("admin", "POST", "/rbac-api/v1/roles", grouped, http.StatusUnprocessableEntity, "invalid-associated-id")
	_, err := b.access.CreateRole(t.Context(), admin, rbac.Role{Name: "bounded", Grants: []fleet.Grant{{Permission: fleet.PuppetRun, Nodes: `facts.role = "db"`}}})
	b.must(err)
	path, bounded := b.roleNamed("bounded")
	bounded["description"] = "databases"
	b.answer("admin", "PUT", path, bounded, http.StatusOK, nil) // as it was shown
	stored, err := b.store.Role(t.Context(), "bounded")
	b.must(err)
	if stored.Description != "databases" || stored.Grants[0].Nodes == "" {
		t.Errorf("%+v", stored)
	}
	bounded["permissions"] = []m{permission("puppet_agent", "run", "*")}
	b.wrong("admin", "PUT", path, bounded, http.StatusConflict, "conflict")
	path, viewer := b.roleNamed("viewer")
	viewer["description"] = "mine"
	b.wrong("admin", "PUT", path, viewer, http.StatusForbidden, "default-roles-immutable")
	// Who may change roles gives no more than they have.
	_, err = b.access.CreateRole(t.Context(), admin, rbac.Role{Name: "roles", Grants: []fleet.Grant{{Permission: fleet.RoleWrite}, {Permission: fleet.RoleRead}}})
	b.must(err)
	_, err = b.access.EditUser(t.Context(), admin, "ann", rbac.UserEdit{Roles: &[]string{"roles"}})
	b.must(err)
	b.wrong("ann", "POST", "/rbac-api/v1/roles", create("more", permission("puppet_agent", "run", "*")), http.StatusForbidden, "permission-denied")
	// Nor do they change members whom they cannot see: an empty list is what they were shown, another one is refused.
	path, _ = b.roleNamed("roles")
	own := create("roles", permission("user_roles", "create", "*"), permission("user_roles", "edit", "*"), permission("role", "read", "*"))
	b.answer("ann", "PUT", path, own, http.StatusOK, nil)
	own["user_ids"] = []string{b.ids["eve"]}
	b.wrong("ann", "PUT", path, own, http.StatusForbidden, "permission-denied")
}

func TestPermissionsAreAsked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	asked := m{"token": b.ids["ann"], "permissions": []m{
		permission("tasks", "run", "facts"), permission("tasks", "run", "web::restart"), permission("tasks", "run", "db::drop"), permission("tasks", "run", "*"),
		permission("orchestrator", "view", "*"), permission("orchestrator", "view", "7"), permission("users", "edit", "*"), permission("plans", "run", "x"),
		permission("release", "read", "*"),
	}}
	var answers []bool
	for _, who := range []string{"ann", "eve"} {
		b.answer(who, "POST", "/rbac-api/v1/permitted", asked, http.StatusOK, &answers)
		if diff := cmp.Diff([]bool{true, true, false, false, true, true, false, false, true}, answers); diff != "" {
			t.Errorf("%s (-want +got):\n%s", who, diff)
		}
	}
	b.wrong("ann", "POST", "/rbac-api/v1/permitted", m{"token": b.ids["eve"], "permissions": []m{}}, http.StatusForbidden, "permission-denied")
	b.wrong("ann", "POST", "/rbac-api/v1/permitted", m{"permissions": []m{}}, http.StatusBadRequest, "malformed-request")
	for path, want := range map[string][]string{
		"tasks/run": {"facts", "web::*"}, "orchestrator/view": {"*"}, "users/edit": {}, "tasks/run/" + b.ids["ann"]: {"facts", "web::*"},
		"environment/deploy_code": {},
	} {
		var names []string
		b.answer("ann", "GET", "/rbac-api/v1/permitted/"+path, nil, http.StatusOK, &names)
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	b.wrong("ann", "GET", "/rbac-api/v1/permitted/plans/run", nil, http.StatusNotFound, "not-found")
	var types []struct {
		Type    string `json:"object_type"`
		Actions []struct {
			Name         string `json:"name"`
			HasInstances bool   `json:"has_instances"`
		}
	}
	b.answer("ann", "GET", "/rbac-api/v1/types", nil, http.StatusOK, &types)
	n := 0
	for _, one := range types {
		for _, a := range one.Actions {
			n++
			if one.Type == "tasks" && !a.HasInstances || one.Type == "users" && a.HasInstances {
				t.Errorf("%+v", one)
			}
		}
	}
	if n < len(fleet.Permissions()) {
		t.Errorf("%d actions for %d permissions", n, len(fleet.Permissions()))
	}
}
