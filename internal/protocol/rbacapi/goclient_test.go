package rbacapi_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"testing"
	"time"
)

// The fields of go-pe-client, package rbac: what is of another type than a field is an error of its parser.
type (
	goUser struct {
		ID               string    `json:"id"`
		Login            string    `json:"login"`
		Email            string    `json:"email"`
		DisplayName      string    `json:"display_name"`
		RoleIDs          []int     `json:"role_ids"`
		IsGroup          bool      `json:"is_group"`
		IsRemote         bool      `json:"is_remote"`
		IsUser           bool      `json:"is_user"`
		IsSuperUser      bool      `json:"is_superuser"`
		IsRevoked        bool      `json:"is_revoked"`
		LastLogin        time.Time `json:"last_login"`
		InheritedRoleIDs []int     `json:"inherited_role_ids"`
		GroupIDs         []string  `json:"group_ids"`
	}
	goRole struct {
		ID          uint `json:"id"`
		Permissions []struct {
			ObjectType string `json:"object_type"`
			Action     string `json:"action"`
			Instance   string `json:"instance"`
		} `json:"permissions"`
		UserIDs     []string `json:"user_ids"`
		GroupIDs    []string `json:"group_ids"`
		DisplayName string   `json:"display_name"`
		Description string   `json:"description"`
	}
	goHolder struct {
		Description string `json:"description"`
		Login       string `json:"login"`
		RoleIDs     []int  `json:"role_ids"`
		UserID      string `json:"user_id"`
		DisplayName string `json:"display_name"`
	}
	goError struct {
		Kind    string `json:"kind"`
		Msg     string `json:"msg"`
		Details string `json:"details"`
	}
)

// The calls of go-pe-client go through, and its parser takes what comes.
func TestTheGoClient(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	type m = map[string]any
	var issued, another struct{ Token string }
	b.answer("", "POST", "/rbac-api/v1/auth/token", m{"login": "ann", "password": password, "lifetime": "1h", "client": "x", "label": "go"},
		http.StatusOK, &issued)
	b.tokens["go"] = issued.Token
	b.answer("go", "POST", "/rbac-api/v1/tokens", m{"lifetime": "1h", "description": "d", "client": "c"}, http.StatusOK, &another)
	if !regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(another.Token) {
		t.Errorf("the token is %q", another.Token)
	}
	var holder goHolder
	b.answer("", "POST", "/rbac-api/v2/auth/token/authenticate", m{"token": another.Token, "update_last_activity?": false}, http.StatusOK, &holder)
	if holder.Login != "ann" || holder.UserID != b.ids["ann"] || len(holder.RoleIDs) != 1 {
		t.Errorf("the holder is %+v", holder)
	}
	var users []goUser
	b.answer("admin", "GET", "/rbac-api/v1/users", nil, http.StatusOK, &users)
	var current, one goUser
	b.answer("go", "GET", "/rbac-api/v1/users/current", nil, http.StatusOK, &current)
	b.answer("admin", "GET", "/rbac-api/v1/users/"+current.ID, nil, http.StatusOK, &one)
	if len(users) < 4 || current.Login != "ann" || one.ID != b.ids["ann"] || current.LastLogin.IsZero() {
		t.Errorf("users %+v, current %+v, one %+v", users, current, one)
	}
	var roles []goRole
	b.answer("admin", "GET", "/rbac-api/v1/roles", nil, http.StatusOK, &roles)
	var role goRole
	b.answer("admin", "GET", "/rbac-api/v1/roles/1", nil, http.StatusOK, &role)
	if len(roles) < 7 || role.ID != 1 || role.DisplayName == "" || len(role.Permissions) == 0 {
		t.Errorf("roles %+v, the first %+v", roles, role)
	}
	made := b.ask("admin", "POST", "/rbac-api/v1/roles", m{
		"display_name": "of-go", "description": "", "user_ids": []string{}, "group_ids": []string{},
		"permissions": []m{{"object_type": "tasks", "action": "run", "instance": "facts"}},
	})
	if made.Code != http.StatusCreated || made.Header().Get("Location") == "" { // it looks for no more
		t.Errorf("a role: %d %s, at %q", made.Code, made.Body, made.Header().Get("Location"))
	}
	if w := b.ask("go", "DELETE", "/rbac-api/v2/tokens/"+another.Token, nil); w.Code != http.StatusNoContent {
		t.Errorf("revoked: %d %s", w.Code, w.Body)
	}
	for path, status := range map[string]int{"/rbac-api/v1/users/nobody": http.StatusBadRequest, "/rbac-api/v1/nothing": http.StatusNotFound} {
		w := b.ask("admin", "GET", path, nil)
		var problem goError
		if err := json.Unmarshal(w.Body.Bytes(), &problem); w.Code != status || problem.Kind == "" || problem.Msg == "" {
			t.Errorf("%s: %d %s, %v", path, w.Code, w.Body, err)
		}
	}
}
