package server

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tutti-project/tutti/internal/fleet"
)

// untouched is a body that must not be read.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("the body of a refused request was read")
	return 0, errors.New("refused")
}

func TestWhoMayWhatBelowPDB(t *testing.T) {
	t.Parallel()
	p := openParts(t, func(c *Config) { c.PuppetDBClients = []string{"ps-1.example", "board.example"} })
	routes, err := p.routes(p.health())
	if err != nil {
		t.Fatal(err)
	}
	actors := map[string]fleet.Actor{
		"nobody": {Kind: fleet.Anonymous}, "a node": {Kind: fleet.NodeActor, Name: "web-1.example"},
		"a token of that name": {Kind: fleet.TokenUser, Name: "ps-1.example"},
		"a client":             {Kind: fleet.NodeActor, Name: "ps-1.example"}, "an administrator": {Kind: fleet.NodeActor, Name: "root.example", Admin: true},
	}
	for _, c := range []struct {
		method, path string
		client       bool // what a client is let through to; an administrator to all
	}{
		{http.MethodGet, "/pdb/query/v4/nodes", true},
		{http.MethodPost, "/pdb/query/v4", true},
		{http.MethodGet, "/pdb/meta/v1/version", true},
		{http.MethodPost, "/pdb/cmd/v1?command=replace_facts&version=5&certname=a", true},
		{http.MethodGet, "/metrics", false},
		{http.MethodGet, "/api/v1/nodes", false},
		{http.MethodDelete, "/api/v1/nodes/web-1.example", false},
	} {
		for name, actor := range actors {
			allowed := actor.Admin || c.client && name == "a client"
			r := httptest.NewRequestWithContext(fleet.WithActor(t.Context(), actor), c.method, c.path, untouched{t})
			if allowed {
				r.Body = http.NoBody
			}
			w := httptest.NewRecorder()
			routes.ServeHTTP(w, r)
			if denied := w.Code == http.StatusForbidden || w.Code == http.StatusUnauthorized; denied == allowed {
				t.Errorf("%s of %s by %s: %d %s", c.method, c.path, name, w.Code, w.Body)
			}
		}
	}
}
