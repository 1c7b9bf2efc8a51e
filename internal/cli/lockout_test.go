package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
)

// Whoever takes away the last way in of an administrator is told before, with the way back in.
func TestTheLastAdministrator(t *testing.T) {
	t.Parallel()
	past := time.Now().Add(-time.Hour)
	admin := api.User{Name: "admin", Kind: "person", Roles: []string{"administrator"}, State: "no password"}
	ann := api.User{Name: "ann", Kind: "person", Roles: []string{"administrator"}, State: "active"}
	file := api.AccessToken{ID: "5be7", User: "admin", Label: "admin.token"}
	for name, c := range map[string]struct {
		line   string
		users  []api.User
		tokens []api.AccessToken
		warned bool
	}{
		"the last token":            {"token revoke --user admin admin.token", []api.User{admin}, []api.AccessToken{file}, true},
		"the last token, by its id": {"token revoke --user admin 5be7", []api.User{admin}, []api.AccessToken{file}, true},
		"another has a password":    {"token revoke --user admin admin.token", []api.User{admin, ann}, []api.AccessToken{file}, false},
		"another is good": {
			"token revoke --user admin admin.token", []api.User{admin}, []api.AccessToken{file, {ID: "6", User: "admin", Label: "ci"}}, false,
		},
		"another is narrowed, over, or a login": {"token revoke --user admin admin.token", []api.User{admin}, []api.AccessToken{
			file, {ID: "6", User: "admin", Label: "ci", Roles: []string{"viewer"}}, {ID: "7", User: "admin", Label: "old", ExpiresAt: &past}, {ID: "8", User: "admin"},
		}, true},
		"the last who logs in":     {"user delete ann", []api.User{admin, ann}, nil, true},
		"one of two":               {"user delete ann", []api.User{admin, ann}, []api.AccessToken{file}, false},
		"disabled":                 {"user edit ann --disable", []api.User{admin, ann}, nil, true},
		"the role taken away":      {"user edit ann --remove-role administrator", []api.User{admin, ann}, nil, true},
		"another role, taken away": {"user edit ann --remove-role viewer", []api.User{admin, ann}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &answers{to: map[string]any{
				"GET /users": api.List[api.User]{Items: c.users}, "GET /users/ann": ann, "GET /users/admin/tokens": api.List[api.AccessToken]{Items: c.tokens},
				"GET /users/" + api.AllUsers + "/tokens": api.List[api.AccessToken]{Items: c.tokens},
			}}
			var out bytes.Buffer
			code := Run(t.Context(), append(strings.Fields(c.line), "--dry-run"), System{Out: &out, Err: &out, Env: s.start(t)})
			warned := strings.Contains(out.String(), "No administrator can get in after that: only `tutti token rotate-admin`")
			if code != exitDone || warned != c.warned || slices.ContainsFunc(s.asked, func(what string) bool { return !strings.HasPrefix(what, "GET ") }) {
				t.Errorf("%s: exit code %d, asked %q\n%s", c.line, code, s.asked, out.String())
			}
		})
	}
	s := &answers{to: map[string]any{"GET /users/admin/tokens": api.List[api.AccessToken]{Items: []api.AccessToken{file}}}}
	var out bytes.Buffer
	code := Run(t.Context(), []string{"token", "revoke", "--user", "admin", "admin.tken", "--dry-run"}, System{Out: &out, Err: &out, Env: s.start(t)})
	if want := "tutti: there is no token \"admin.tken\" of admin; did you mean admin.token?\n"; code != exitFailed || out.String() != want {
		t.Errorf("exit code %d, %q, want %q", code, out.String(), want)
	}
	out.Reset()
	if code := Run(t.Context(), []string{"user", "edit", "ann", "--enable", "--dry-run"}, System{Out: &out, Err: &out}); code != exitDone ||
		!strings.Contains(out.String(), "destroy nothing") {
		t.Errorf("exit code %d: %s", code, out.String())
	}
}
