package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// A token that a client of Puppet Enterprise gets is one of Tutti's: good by either header wherever tokens are, and its end is everywhere.
func TestATokenOfTheRBACAPIIsGoodEverywhere(t *testing.T) {
	t.Parallel()
	p := openParts(t, func(*settings.Config) {})
	routes, err := p.routes(p.health())
	if err != nil {
		t.Fatal(err)
	}
	const word = "correct horse battery"
	admin := fleet.Actor{Kind: fleet.UserActor, Name: "admin", Grants: []fleet.Grant{{Permission: fleet.Everything}}}
	if _, err := p.access.CreateUser(t.Context(), admin, rbac.User{Name: "ann", Kind: rbac.Person, Roles: []string{rbac.Administrator}}, word); err != nil {
		t.Fatal(err)
	}
	ask := func(method, path, header, value, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		if header != "" {
			r.Header.Set(header, value)
		}
		w := httptest.NewRecorder()
		routes.ServeHTTP(w, r)
		return w
	}
	w := ask(http.MethodPost, "/rbac-api/v1/auth/token", "", "", `{"login": "ann", "password": "`+word+`", "lifetime": "1h"}`)
	var issued struct{ Token string }
	if err := json.Unmarshal(w.Body.Bytes(), &issued); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if strings.Trim(issued.Token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
		t.Errorf("the token has characters that clients refuse: %s", issued.Token)
	}
	paths := []string{"/api/v1/session", "/classifier-api/v1/groups", "/pdb/query/v4/nodes", "/metrics", "/rbac-api/v1/users/current", "/rbac-api/v2/users"}
	for _, want := range []int{http.StatusOK, http.StatusUnauthorized} {
		for _, path := range paths {
			for header, value := range map[string]string{"X-Authentication": issued.Token, "Authorization": "Bearer " + issued.Token} {
				if w := ask(http.MethodGet, path, header, value, ""); w.Code != want {
					t.Errorf("%s by %s: %d %s, want %d", path, header, w.Code, w.Body, want)
				}
			}
		}
		if want == http.StatusOK {
			if w := ask(http.MethodDelete, "/rbac-api/v2/tokens/"+issued.Token, "X-Authentication", issued.Token, ""); w.Code != http.StatusNoContent {
				t.Errorf("revoke: %d %s", w.Code, w.Body)
			}
		}
	}
}
