package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// untouched is a body that must not be read.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("the body of a refused request was read")
	return 0, errors.New("refused")
}

func TestWhoMayWhatBelowPDB(t *testing.T) {
	t.Parallel()
	p := openParts(t, func(c *settings.Config) { c.PuppetDBClients = []string{"ps-1.example", "board.example"} })
	routes, err := p.routes(p.health())
	if err != nil {
		t.Fatal(err)
	}
	actors := map[string]fleet.Actor{
		"nobody": {Kind: fleet.Anonymous}, "a node": {Kind: fleet.NodeActor, Name: "web-1.example"},
		"a token of that name": {Kind: fleet.UserActor, Name: "ps-1.example"},
		"a client":             {Kind: fleet.NodeActor, Name: "ps-1.example"}, "an administrator": {
			Kind: fleet.NodeActor, Name: "root.example", Grants: []fleet.Grant{{Permission: fleet.Everything}},
		},
	}
	for _, c := range []struct {
		method, path string
		client       bool // what a client is let through to; an administrator to all
	}{
		{http.MethodGet, "/pdb/query/v4/nodes", true},
		{http.MethodPost, "/pdb/query/v4", true},
		{http.MethodGet, "/pdb/meta/v1/version", true},
		{http.MethodPost, "/pdb/cmd/v1?command=replace_facts&version=5&certname=a", true},
		{http.MethodGet, "/metrics/v2/list", true},
		{http.MethodGet, "/status/v1/services/puppetdb-status", true},
		{http.MethodPost, "/pdb/admin/v1/cmd", false},
		{http.MethodGet, "/pdb/admin/v1/summary-stats", false},
		{http.MethodGet, "/metrics", false},
		{http.MethodGet, "/api/v1/nodes", false},
		{http.MethodDelete, "/api/v1/nodes/web-1.example", false},
	} {
		for name, actor := range actors {
			allowed := len(actor.Grants) > 0 || c.client && name == "a client"
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

func TestStatusAsAPuppetDB(t *testing.T) {
	t.Parallel()
	for _, fails := range []error{nil, fault.New(fault.Unavailable, "the database cannot be reached")} {
		h := &health{version: func() string { return "7.23.0" }, database: func(context.Context) error { return fails }, services: []service{
			{name: "server"},
			{name: puppetDBStatus, version: "7.12.1", more: asPuppetDB},
		}}
		well, state, status := fails == nil, "running", http.StatusOK
		if !well {
			state, status = "error", http.StatusServiceUnavailable
		}
		want := map[string]any{
			"service_name": puppetDBStatus, "service_version": "7.12.1", "service_status_version": 1.0, "detail_level": "info", "state": state, "active_alerts": []any{},
			"status": map[string]any{
				"maintenance_mode?": false, "queue_depth": 0.0, "read_db_up?": well, "write_db_up?": well, "write_dbs_up?": well,
				"write_db": map[string]any{"default": map[string]any{"up?": well}},
			},
		}
		if !well {
			want["status"].(map[string]any)["reason"] = "the database cannot be reached"
		}
		w := httptest.NewRecorder()
		h.puppetDB(w, httptest.NewRequest(http.MethodGet, "/", nil))
		var got map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != status {
			t.Errorf("%d %s %v", w.Code, w.Body, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		w = httptest.NewRecorder()
		h.all(w, httptest.NewRequest(http.MethodGet, "/", nil))
		var all map[string]map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil || w.Code != status {
			t.Errorf("%d %s %v", w.Code, w.Body, err)
		}
		delete(want, "service_name")
		if diff := cmp.Diff(want, all[puppetDBStatus]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// A database that gives no answer is asked once for all that need it, and the answer comes when its time is up.
func TestStatusOfADatabaseThatIsSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		h := &health{version: func() string { return "7.23.0" }, database: func(ctx context.Context) error {
			asked++
			<-ctx.Done()
			return ctx.Err()
		}, services: []service{{name: "server"}, {name: "ca"}, {name: "storage", check: func(context.Context) error { return nil }}}}
		began, w := time.Now(), httptest.NewRecorder()
		h.all(w, httptest.NewRequest(http.MethodGet, "/", nil))
		var all map[string]part
		if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil || w.Code != http.StatusServiceUnavailable {
			t.Fatalf("%d %s %v", w.Code, w.Body, err)
		}
		for name, state := range map[string]string{"server": "error", "ca": "error", "storage": "running"} {
			if all[name].State != state || state == "error" && all[name].Status["reason"] != "the database does not answer within 3s" {
				t.Errorf("%s: %+v", name, all[name])
			}
		}
		if took := time.Since(began); took != checkTime || asked != 1 {
			t.Errorf("the database was asked %d times, and the answer took %s", asked, took)
		}
	})
}
