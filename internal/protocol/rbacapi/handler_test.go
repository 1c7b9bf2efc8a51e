package rbacapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/rbacapi"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/rbac/rbactest"
)

const password = "correct horse battery"

// bench is a handler over users that really log in.
type bench struct {
	*rbacapi.Handler
	t      *testing.T
	access *rbac.Access
	store  *rbactest.Fake
	log    *bytes.Buffer
	tokens map[string]string // by who shows them
	ids    map[string]string // UUIDs by name
}

var admin = fleet.Actor{Kind: fleet.UserActor, Name: "admin", Grants: []fleet.Grant{{Permission: fleet.Everything}}}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, store: rbactest.New(), log: new(bytes.Buffer), tokens: map[string]string{"": ""}, ids: map[string]string{}}
	log := slog.New(slog.NewTextHandler(b.log, nil))
	b.access = rbac.NewAccess(rbac.AccessParts{
		Store: b.store, Hasher: rbac.NewHasher(rbac.Cost{Passes: 1, MemoryKiB: 8, Threads: 1}, 2), Config: rbac.DefaultConfig,
		CheckScope: func(string) error { return nil }, Now: time.Now, Log: log,
	})
	b.Handler = rbacapi.New(rbacapi.Config{
		Access: b.access, Audit: rbac.NewAudit(b.store, log), RequestID: func(context.Context) string { return "req-1" }, Log: log,
		Entry: func(context.Context) rbac.Entry { return rbac.Entry{At: time.Now(), Remote: "192.0.2.1"} },
		Actor: func(r *http.Request) (fleet.Actor, error) {
			if r.Header.Get("X-Authentication") == "" {
				return fleet.Actor{Kind: fleet.Anonymous}, nil
			}
			actor, err := b.access.Bearer(r.Context(), r.Header.Get("X-Authentication"))
			if err != nil {
				actor = fleet.Actor{Kind: fleet.Anonymous}
			}
			return actor, err
		},
	})
	b.must(b.access.KeepAdmin(t.Context(), "the administrator's token", 0, ""))
	_, err := b.access.CreateRole(t.Context(), admin, rbac.Role{Name: "web-tasks", Description: "tasks of the web", Grants: []fleet.Grant{
		{Permission: fleet.TaskRun, Tasks: []string{"web::*", "facts"}}, {Permission: fleet.JobRead}, {Permission: fleet.ReleaseRead},
	}})
	b.must(err)
	_, err = b.access.CreateRole(t.Context(), admin, rbac.Role{Name: "people", Grants: []fleet.Grant{
		{Permission: fleet.UserRead}, {Permission: fleet.UserWrite}, {Permission: fleet.RoleRead}, {Permission: fleet.TokenRead}, {Permission: fleet.TokenWrite},
	}})
	b.must(err)
	_, err = b.access.CreateRole(t.Context(), admin, rbac.Role{Name: "idle", Grants: []fleet.Grant{{Permission: fleet.JobRead}}})
	b.must(err)
	for name, roles := range map[string][]string{"ann": {"web-tasks"}, "eve": {"people"}, "off": {"viewer"}} {
		_, err := b.access.CreateUser(t.Context(), admin, rbac.User{Name: name, Kind: rbac.Person, Roles: roles}, password)
		b.must(err)
		issued, err := b.access.Login(t.Context(), rbac.Attempt{Name: name, Password: password, Label: "first"})
		b.must(err)
		b.tokens[name] = issued.Text
	}
	b.tokens["admin"], b.tokens["stranger"] = "the administrator's token", "tutti_of-somewhere-else"
	var users []struct{ ID, Login string }
	b.answer("admin", "GET", "/rbac-api/v1/users", nil, http.StatusOK, &users)
	for _, u := range users {
		b.ids[u.Login] = u.ID
	}
	return b
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// ask sends a request as somebody.
func (b *bench) ask(who, method, path string, body any) *httptest.ResponseRecorder {
	b.t.Helper()
	var r *http.Request
	switch body := body.(type) {
	case nil:
		r = httptest.NewRequest(method, path, nil)
	case string:
		r = httptest.NewRequest(method, path, strings.NewReader(body))
	default:
		text, err := json.Marshal(body)
		b.must(err)
		r = httptest.NewRequest(method, path, bytes.NewReader(text))
	}
	r.Header.Set("Content-Type", "application/json")
	if b.tokens[who] != "" {
		r.Header.Set("X-Authentication", b.tokens[who])
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w
}

// answer asks and reads what comes.
func (b *bench) answer(who, method, path string, body any, status int, into any) {
	b.t.Helper()
	w := b.ask(who, method, path, body)
	if w.Code != status {
		b.t.Fatalf("%s %s as %s: %d %s, want %d", method, path, who, w.Code, w.Body, status)
	}
	if into != nil {
		b.must(json.Unmarshal(w.Body.Bytes(), into))
	}
}

// wrong asks and wants a refusal of a kind. The public Go client reads details as a text: an object, even an empty one, costs it the sentence.
func (b *bench) wrong(who, method, path string, body any, status int, kind string) {
	b.t.Helper()
	w := b.ask(who, method, path, body)
	var problem struct {
		Kind, Msg string
		Details   *map[string]any
	}
	err := json.Unmarshal(w.Body.Bytes(), &problem)
	if err != nil || w.Code != status || problem.Kind != "puppetlabs.rbac/"+kind || problem.Msg == "" || problem.Details != nil && len(*problem.Details) == 0 {
		b.t.Errorf("%s %s as %q with %v: %d %s (%v), want %d %s", method, path, who, body, w.Code, w.Body, err, status, kind)
	}
}

// routes are all that is served, with the permission that each takes ("": anybody's who is somebody, "open": everybody's) and a
// body that is right in its form.
var routes = []struct{ method, path, permission, body string }{
	{"POST", "/auth/token", "open", `{"login": "ann", "password": "` + password + `"}`},
	{"POST", "/auth/token/authenticate", "open", `{"token": "ANN"}`},
	{"GET", "/tokens", "", ""},
	{"POST", "/tokens", "", `{}`},
	{"DELETE", "/tokens", "", `{"revoke_tokens_by_labels": "first"}`},
	{"DELETE", "/tokens/tutti_not-known-any-more", "", ""},
	{"GET", "/users", "user:read", ""},
	{"POST", "/users", "user:write", `{"login": "new", "role_ids": [], "email": "", "display_name": ""}`},
	{"GET", "/users/current", "", ""},
	{"PUT", "/users/current/password", "", `{"current_password": "` + password + `", "new_password": "` + password + `!"}`},
	{"GET", "/users/{OFF}", "user:read", ""},
	{"PUT", "/users/{OFF}", "user:write", `{"id": "{OFF}", "login": "off", "role_ids": [3], "is_revoked": false}`},
	{"GET", "/users/{OFF}/tokens", "token:read", ""},
	{"POST", "/command/users/add-roles", "user:write", `{"user_id": "{OFF}", "role_ids": [3]}`},
	{"POST", "/command/users/remove-roles", "user:write", `{"user_id": "{OFF}", "role_ids": []}`},
	{"POST", "/command/users/revoke", "user:write", `{"user_id": "{OFF}"}`},
	{"POST", "/command/users/reinstate", "user:write", `{"user_id": "{OFF}"}`},
	{"DELETE", "/users/{OFF}", "user:write", ""},
	{"GET", "/groups", "user:read", ""},
	{"GET", "/roles", "role:read", ""},
	{"POST", "/roles", "role:write", `{"display_name": "new", "permissions": [{"object_type": "tasks", "action": "run", "instance": "facts"}], "user_ids": [], "group_ids": []}`},
	{"GET", "/roles/1", "role:read", ""},
	{"PUT", "/roles/{WEB}", "role:write", `{"display_name": "web-tasks", "permissions": [{"object_type": "tasks", "action": "run", "instance": "*"}]}`},
	{"POST", "/command/roles/add-users", "user:write", `{"role_id": 3, "user_ids": []}`},
	{"POST", "/command/roles/remove-users", "user:write", `{"role_id": 3, "user_ids": []}`},
	{"POST", "/command/roles/add-permissions", "role:write", `{"role_id": {WEB}, "permissions": []}`},
	{"POST", "/command/roles/remove-permissions", "role:write", `{"role_id": {WEB}, "permissions": []}`},
	{"DELETE", "/roles/{IDLE}", "role:write", ""},
	{"GET", "/types", "", ""},
	{"POST", "/permitted", "", `{"token": "{ANN}", "permissions": []}`},
	{"GET", "/permitted/tasks/run", "", ""},
	{"GET", "/permitted/tasks/run/{OFF}", "user:read", ""},
}

func (b *bench) filled(text string) string {
	b.t.Helper()
	words := []string{"{OFF}", b.ids["off"], "{ANN}", b.ids["ann"], "ANN", b.tokens["ann"]}
	for placeholder, name := range map[string]string{"{WEB}": "web-tasks", "{IDLE}": "idle"} {
		_, r := b.roleNamed(name)
		words = append(words, placeholder, fmt.Sprintf("%.0f", r["id"]))
	}
	return strings.NewReplacer(words...).Replace(text)
}

// Every route, below both versions: who may, and what becomes of a wrong method, type, body and token. Nothing but JSON comes back.
func TestEveryRouteAndWhatIsWrongWithIt(t *testing.T) {
	t.Parallel()
	rights := map[string][]string{
		"user:read": {"eve"}, "user:write": {"eve"}, "token:read": {"eve"}, "role:read": {"eve"}, "role:write": nil, "": {"eve", "ann"},
	}
	for _, version := range []string{"/rbac-api/v1", "/rbac-api/v2"} {
		for _, route := range routes {
			t.Run(version+" "+route.method+" "+route.path, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				path, body := b.filled(version+route.path), any(nil)
				if route.body != "" {
					body = b.filled(route.body)
				}
				b.wrong("admin", http.MethodPatch, path, nil, http.StatusMethodNotAllowed, "method-not-allowed")
				if route.permission != "open" {
					b.wrong("", route.method, path, body, http.StatusUnauthorized, "user-unauthenticated")
					b.wrong("stranger", route.method, path, body, http.StatusUnauthorized, "user-unauthenticated")
				}
				for _, who := range []string{"ann", "eve"} {
					if may, ok := rights[route.permission]; ok && !slices.Contains(may, who) {
						b.wrong(who, route.method, path, body, http.StatusForbidden, "permission-denied")
					}
				}
				if body != nil {
					b.wrong("admin", route.method, path, `{"x": `, http.StatusBadRequest, "malformed-request")
					b.wrong("admin", route.method, path, `[1]`, http.StatusBadRequest, "malformed-request")
					b.wrong("admin", route.method, path, `{"x": "`+strings.Repeat("y", rbacapi.MaxBodyBytes)+`"}`, http.StatusRequestEntityTooLarge, "payload-too-large")
					r := httptest.NewRequest(route.method, path, strings.NewReader("a=b"))
					r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
					w := httptest.NewRecorder()
					if b.ServeHTTP(w, r); w.Code != http.StatusUnsupportedMediaType || !json.Valid(w.Body.Bytes()) {
						t.Errorf("a form: %d %s", w.Code, w.Body)
					}
				}
				who := "admin"
				if strings.HasPrefix(route.path, "/tokens") || route.path == "/users/current/password" {
					who = "ann"
				}
				w := b.ask(who, route.method, path, body)
				if w.Code >= 300 || w.Body.Len() > 0 && !json.Valid(w.Body.Bytes()) {
					t.Errorf("right: %d %s", w.Code, w.Body)
				}
				if strings.Contains(b.log.String(), password) || strings.Contains(b.log.String(), b.tokens["ann"]) || acted(t, b, b.tokens["ann"], password) {
					t.Errorf("a secret is in the log or the audit log:\n%s", b.log)
				}
			})
		}
	}
}

// acted says whether the audit log has one of the texts.
func acted(t *testing.T, b *bench, texts ...string) bool {
	t.Helper()
	acts, err := b.store.Acts(t.Context(), rbac.EntryFilter{Limit: 1000})
	b.must(err)
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(fmt.Sprintf("%+v", acts), text) })
}

func TestWhatIsNotServedIsJSON(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, path := range []string{"/rbac-api", "/rbac-api/v1", "/rbac-api/v3/users", "/rbac-api/v1/nothing", "/rbac-api/v1/users//x", "/rbac-api/v1/ds"} {
		b.wrong("admin", "GET", path, nil, http.StatusNotFound, "not-found")
	}
}

func TestAWholeSessionOfAClient(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var login struct{ Token string }
	b.answer("", "POST", "/rbac-api/v1/auth/token",
		map[string]any{"login": "ann", "password": password, "lifetime": "5h", "label": " My laptop ", "client": "test"}, http.StatusOK, &login)
	b.tokens["laptop"] = login.Token
	var me struct {
		ID      string `json:"id"`
		Login   string `json:"login"`
		RoleIDs []int  `json:"role_ids"`
		Last    string `json:"last_login"`
	}
	b.answer("laptop", "GET", "/rbac-api/v1/users/current", nil, http.StatusOK, &me)
	if me.Login != "ann" || me.ID != b.ids["ann"] || len(me.RoleIDs) != 1 || len(me.Last) != len("2006-01-02T15:04:05Z") {
		t.Errorf("current user: %+v", me)
	}
	var held map[string]any
	b.answer("", "POST", "/rbac-api/v2/auth/token/authenticate", map[string]any{"token": login.Token, "update_last_activity?": false}, http.StatusOK, &held)
	for _, key := range []string{"creation", "expiration", "last_active", "timeout", "client", "description", "user_id", "login", "display_name", "role_ids"} {
		if _, there := held[key]; !there {
			t.Errorf("authenticate: no %s in %v", key, held)
		}
	}
	if held["label"] != "My laptop" || held["login"] != "ann" || held["user_id"] != b.ids["ann"] {
		t.Errorf("authenticate: %v", held)
	}
	var list struct {
		Items []struct {
			ID, Label string
			Creation  time.Time `json:"creation_date"`
			End       time.Time `json:"expiration_date"`
		}
		Pagination map[string]any
	}
	b.answer("laptop", "GET", "/rbac-api/v1/users/"+me.ID+"/tokens?order_by=expiration_date&order=asc&limit=1", nil, http.StatusOK, &list)
	if len(list.Items) != 1 || list.Items[0].Label != "My laptop" || list.Items[0].End.Sub(list.Items[0].Creation) != 5*time.Hour ||
		list.Pagination["total"] != 2.0 {
		t.Errorf("tokens: %+v", list)
	}
	b.wrong("laptop", "POST", "/rbac-api/v1/tokens", map[string]any{"label": "My laptop"}, http.StatusConflict, "conflict")
	b.answer("laptop", "DELETE", "/rbac-api/v2/tokens/"+login.Token, nil, http.StatusNoContent, nil)
	b.wrong("laptop", "GET", "/rbac-api/v1/users/current", nil, http.StatusUnauthorized, "user-unauthenticated")
	b.wrong("", "POST", "/rbac-api/v2/auth/token/authenticate", map[string]any{"token": login.Token}, http.StatusBadRequest, "invalid-token")
}

func TestLifetimes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	hour, most := time.Hour, rbac.DefaultConfig().MaxTokenLife
	for text, want := range map[string]time.Duration{
		`"1h"`: hour, `"30m"`: hour / 2, `"90"`: 90 * time.Second, `90`: 90 * time.Second, `"2d"`: 48 * hour, `"1y"`: 365 * 24 * hour, `"10s"`: 10 * time.Second,
		`"0"`: most, `0`: most, `"0h"`: most, `""`: rbac.DefaultConfig().TokenLife, `null`: rbac.DefaultConfig().TokenLife,
	} {
		var made struct{ Token string }
		b.answer("ann", "POST", "/rbac-api/v1/tokens", `{"lifetime": `+text+`}`, http.StatusOK, &made)
		held, err := b.access.Holder(t.Context(), made.Token)
		b.must(err)
		if got := held.Token.ExpiresAt.Sub(held.Token.CreatedAt); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{`"1w"`, `"-5h"`, `"h"`, `"1.5h"`, `"5 h"`, `-1`, `"99999999999999999999y"`, `"5y"`, `"9223372036854775807s"`, `"9000000000y"`} {
		b.wrong("ann", "POST", "/rbac-api/v1/tokens", `{"lifetime": `+text+`}`, http.StatusBadRequest, "schema-violation")
	}
	b.wrong("ann", "POST", "/rbac-api/v1/tokens", `{"lifetime": {}}`, http.StatusBadRequest, "malformed-request")
	for _, label := range []string{"a,b", "  ", strings.Repeat("x", 201)} {
		b.wrong("ann", "POST", "/rbac-api/v1/tokens", map[string]string{"label": label}, http.StatusBadRequest, "schema-violation")
	}
}

func TestLoginsAreOneAnswerAndBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.answer("admin", "POST", "/rbac-api/v1/command/users/revoke", map[string]any{"user_id": b.ids["off"]}, http.StatusNoContent, nil)
	answers := map[string]bool{}
	for name, secret := range map[string]string{"ann": "wrong password", "nobody": password, "off": password} {
		w := b.ask("", "POST", "/rbac-api/v1/auth/token", map[string]string{"login": name, "password": secret})
		answers[fmt.Sprint(w.Code, w.Body)] = true
	}
	if len(answers) != 1 {
		t.Errorf("answers differ: %v", answers)
	}
	b.wrong("", "POST", "/rbac-api/v1/auth/token", `{"login": "ann"}`, http.StatusBadRequest, "malformed-request")
	var last *httptest.ResponseRecorder
	for range 100 {
		if last = b.ask("", "POST", "/rbac-api/v1/auth/token", `{"no": `); last.Code == http.StatusTooManyRequests {
			break
		}
	}
	if last.Code != http.StatusTooManyRequests || last.Header().Get("Retry-After") == "" ||
		!strings.Contains(last.Body.String(), "puppetlabs.rbac/too-many-requests") {
		t.Errorf("a flood of logins: %d %s", last.Code, last.Body)
	}
}

func TestTokensAreRevoked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	good := func(who string, want bool) {
		t.Helper()
		if _, err := b.access.Bearer(t.Context(), b.tokens[who]); (err == nil) != want {
			t.Errorf("the token of %s is good: %v, want %v", who, err == nil, want)
		}
	}
	// Others' need a right; what can be done is done.
	w := b.ask("ann", "DELETE", "/rbac-api/v2/tokens", m{"revoke_tokens_by_usernames": []string{"off", "ann"}})
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), `"usernames":["off"]`) ||
		!strings.Contains(w.Body.String(), `"other_tokens_revoked":true`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	good("off", true)
	good("ann", false)
	b.wrong("eve", "DELETE", "/rbac-api/v2/tokens?revoke_tokens_by_labels=none&revoke_tokens_by_ids=0123456789ab", nil,
		http.StatusBadRequest, "tokens-not-revoked")
	b.wrong("eve", "DELETE", "/rbac-api/v2/tokens", m{"revoke_tokens": []string{"short"}}, http.StatusBadRequest, "tokens-not-revoked")
	b.wrong("eve", "DELETE", "/rbac-api/v2/tokens", nil, http.StatusBadRequest, "malformed-request")
	// Who has the text of a token may end it.
	b.answer("eve", "DELETE", "/rbac-api/v2/tokens", m{"revoke_tokens": []string{b.tokens["off"]}}, http.StatusNoContent, nil)
	good("off", false)
	// Whose roles give more than one has is left alone, also with token:write.
	b.wrong("eve", "DELETE", "/rbac-api/v2/tokens", m{"revoke_tokens_by_ids": []string{b.ids["admin"]}}, http.StatusForbidden, "permission-denied")
	good("admin", true)
	held, err := b.access.Holder(t.Context(), b.tokens["eve"])
	b.must(err)
	b.answer("admin", "DELETE", "/rbac-api/v1/tokens?revoke_tokens_by_ids="+held.Token.ID, nil, http.StatusNoContent, nil)
	good("eve", false)
	// An expired token is known as one for a while.
	text := rbac.NewSecret()
	hash, _ := rbac.HashOf(text)
	b.must(b.store.SaveAccessToken(t.Context(), rbac.Token{
		ID: "old", Hash: hash, Owner: "ann", CreatedAt: time.Now().Add(-2 * time.Hour), ExpiresAt: time.Now().Add(-time.Hour),
	}))
	b.wrong("", "POST", "/rbac-api/v2/auth/token/authenticate", m{"token": text}, http.StatusForbidden, "token-expired")
	off := true
	_, err = b.access.EditUser(t.Context(), admin, "ann", rbac.UserEdit{Disabled: &off})
	b.must(err)
	b.wrong("", "POST", "/rbac-api/v2/auth/token/authenticate", m{"token": text}, http.StatusForbidden, "token-revoked")
}

func TestUsersAreMadeAndChanged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.ask("admin", "POST", "/rbac-api/v1/users", m{
		"login": "bob", "email": "bob@example.test", "display_name": "Bob", "role_ids": []int{3}, "password": password,
	})
	place := w.Header().Get("Location")
	if w.Code != http.StatusCreated || place == "" {
		t.Fatalf("%d %s %q", w.Code, w.Body, place)
	}
	var bob map[string]any
	b.answer("admin", "GET", place, nil, http.StatusOK, &bob)
	if diff := cmp.Diff([]any{3.0}, bob["role_ids"]); diff != "" || bob["login"] != "bob" || bob["is_superuser"] != false {
		t.Errorf("%v", bob)
	}
	b.wrong("admin", "POST", "/rbac-api/v1/users", m{"login": "bob", "role_ids": []int{}}, http.StatusConflict, "conflict")
	b.wrong("admin", "POST", "/rbac-api/v1/users", m{"login": "cid", "role_ids": []int{77}}, http.StatusUnprocessableEntity, "invalid-associated-id")
	b.wrong("admin", "POST", "/rbac-api/v1/users", m{"login": "Not A Name", "role_ids": []int{}}, http.StatusBadRequest, "schema-violation")
	b.wrong("eve", "POST", "/rbac-api/v1/users", m{"login": "mal", "role_ids": []int{1}}, http.StatusForbidden, "permission-denied")
	bob["role_ids"], bob["is_revoked"] = []int{4, 3}, true
	b.answer("admin", "PUT", place, bob, http.StatusOK, &bob)
	u, err := b.store.User(t.Context(), "bob")
	b.must(err)
	if !u.Disabled || !slices.Equal(u.Roles, []string{"deployer", "viewer"}) {
		t.Errorf("%+v", u)
	}
	bob["login"] = "robert"
	b.wrong("admin", "PUT", place, bob, http.StatusBadRequest, "schema-violation")
	bob["login"], bob["id"] = "bob", b.ids["ann"]
	b.wrong("admin", "PUT", place, bob, http.StatusBadRequest, "inconsistent-id")
	b.wrong("admin", "GET", "/rbac-api/v1/users/bob", nil, http.StatusBadRequest, "invalid-uuid")
	b.wrong("admin", "GET", "/rbac-api/v1/users/00000000-0000-4000-8000-000000000000", nil, http.StatusNotFound, "not-found")
	b.wrong("admin", "DELETE", "/rbac-api/v1/users/"+b.ids["admin"], nil, http.StatusForbidden, "admin-user-immutable")
	b.wrong("admin", "POST", "/rbac-api/v1/command/users/revoke", m{"user_id": b.ids["admin"]}, http.StatusForbidden, "admin-user-immutable")
	b.answer("admin", "DELETE", place, nil, http.StatusNoContent, nil)
	var paged struct {
		Users      []struct{ Login string }
		Pagination map[string]any
	}
	b.answer("admin", "GET", "/rbac-api/v2/users?order_by=login&order=desc&limit=2&filter=N", nil, http.StatusOK, &paged)
	if fmt.Sprint(paged.Users) != "[{ann} {admin}]" || paged.Pagination["total"] != 2.0 {
		t.Errorf("%+v", paged)
	}
	for _, query := range []string{"limit=0", "limit=-1", "limit=x", "limit=99999999", "offset=-1", "order=up", "order_by=shoe"} {
		b.wrong("admin", "GET", "/rbac-api/v2/users?"+query, nil, http.StatusBadRequest, "schema-violation")
	}
}

// A token that is narrowed to roles makes no wide one here either, and the audit log has the refusal.
func TestANarrowTokenStaysNarrow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	issued, err := b.access.Login(t.Context(), rbac.Attempt{Name: "eve", Password: password, Roles: []string{"people"}})
	b.must(err)
	b.tokens["narrow"] = issued.Text
	b.wrong("narrow", "POST", "/rbac-api/v1/tokens", `{}`, http.StatusForbidden, "permission-denied")
	acts, err := b.store.Acts(t.Context(), rbac.EntryFilter{Limit: 10, Outcome: rbac.Denied})
	b.must(err)
	if len(acts) != 1 || acts[0].Actor != "eve" || acts[0].Operation != "POST /rbac-api/v1/tokens" {
		t.Errorf("%+v", acts)
	}
}
