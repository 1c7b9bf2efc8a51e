package rest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tutti-project/tutti/internal/fleet"
)

// pypuppetdb sends "Basic" with no name to every PuppetDB; a certificate says who it is.
func TestOnlyBearersAreAsked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ops := fleet.Actor{Kind: fleet.NodeActor, Name: "ops", Grants: []fleet.Grant{{Permission: fleet.Everything}}}
	node := fleet.Actor{Kind: fleet.NodeActor, Name: "web-1"}
	nobody := fleet.Actor{Kind: fleet.Anonymous}
	const none = "Basic Tm9uZTpOb25l" // None:None
	for _, c := range []struct {
		name   string
		actor  fleet.Actor
		header string
		status int
	}{
		{"an administrator's certificate, no name", ops, none, http.StatusOK},
		{"a node's certificate, no name", node, none, http.StatusForbidden},
		{"no certificate, no name", nobody, none, http.StatusUnauthorized},
		{"no certificate, nothing", nobody, "", http.StatusUnauthorized},
		{"an administrator's certificate, a wrong token", ops, "Bearer guess", http.StatusUnauthorized},
		{"a token, shouted", nobody, "BEARER " + secret("admin"), http.StatusOK},
		{"a token, whispered", nobody, "bearer " + secret("admin"), http.StatusOK},
		{"a node's certificate, an administrator's token", node, "Bearer " + secret("admin"), http.StatusOK},
		{"an administrator's certificate, an empty token", ops, "Bearer ", http.StatusUnauthorized},
	} {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/nodes", nil)
		r = r.WithContext(fleet.WithActor(r.Context(), c.actor))
		r.Header.Set("Authorization", c.header)
		w := httptest.NewRecorder()
		b.handler.ServeHTTP(w, r)
		if asks := w.Header().Get("WWW-Authenticate") != ""; w.Code != c.status || asks != (c.status == http.StatusUnauthorized) {
			t.Errorf("%s: %d, want %d: %s", c.name, w.Code, c.status, w.Body)
		}
	}
}
