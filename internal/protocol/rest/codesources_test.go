package rest_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/code/source"
	"github.com/tutti-project/tutti/internal/code/source/sourcetest"
)

// newSources is a service that nobody runs: what is asked for stays queued.
func newSources(t *testing.T, blobs cas.Store) *source.Service {
	t.Helper()
	repo := &sourcetest.Repositories{}
	repo.Push("production", map[string]string{"manifests/site.pp": ""})
	repo.Push("odd name", map[string]string{"manifests/site.pp": ""})
	s, err := source.Open(t.Context(), source.Parts{
		Store: sourcetest.NewStore(), Sealer: sourcetest.Seals{}, Repositories: repo, Modules: sourcetest.Modules(nil), Deployer: &sourcetest.Deployer{},
		Blobs: blobs, Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler),
	})
	check(t, err)
	return s
}

func TestSourcesOverTheAPI(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	admin := who{token: "admin"}
	ask := func(method, path, body string, status int) string {
		t.Helper()
		w := b.call(admin, method, api.Prefix+path, []byte(body))
		if w.Code != status {
			t.Fatalf("%s %s: %d %s, want %d", method, path, w.Code, w.Body, status)
		}
		return w.Body.String()
	}
	key := "-----BEGIN OPENSSH PRIVATE KEY-----\\nAAAA\\n-----END OPENSSH PRIVATE KEY-----"
	added := ask(http.MethodPut, "/sources/control", `{"url":"user:pw@git.example/control","key":"`+key+`","webhook_secret":"0123456789abcdef","interval":60}`,
		http.StatusOK)
	shown := ask(http.MethodGet, "/sources/control", "", http.StatusOK) + ask(http.MethodGet, "/sources", "", http.StatusOK)
	for _, secret := range []string{"pw@", "AAAA", "0123456789abcdef"} {
		if strings.Contains(added+shown, secret) {
			t.Errorf("%q is shown", secret)
		}
	}
	ask(http.MethodPut, "/sources/control", `{"url":"x"}`, http.StatusConflict)
	ask(http.MethodPut, "/sources/other", `{"url":"x","interval":-1}`, http.StatusBadRequest)
	var synced api.SourceSynced
	check(t, json.Unmarshal([]byte(ask(http.MethodPost, "/sources/control/sync", `{}`, http.StatusOK)), &synced))
	if len(synced.Deploys) != 2 || synced.Deploys[0].Environment != "odd_name" || synced.Deploys[1].State != "queued" {
		t.Errorf("%+v", synced)
	}
	ask(http.MethodPost, "/deploys", `{}`, http.StatusBadRequest)
	ask(http.MethodPost, "/deploys", `{"environments":["production"],"all":true}`, http.StatusBadRequest)
	ask(http.MethodPost, "/deploys", `{"environments":["nothing"]}`, http.StatusNotFound)
	ask(http.MethodPost, "/deploys", `{"environments":["nothing"],"dry_run":true}`, http.StatusNotFound)
	ask(http.MethodPost, "/deploys", `{"environments":["production"]}`, http.StatusOK)
	// Who may deploy some environments has all of these deployed, and no other.
	var deployed api.List[api.CodeBranch]
	w := b.call(who{token: "web"}, http.MethodPost, api.Prefix+"/deploys", []byte(`{"all":true}`))
	check(t, json.Unmarshal(w.Body.Bytes(), &deployed))
	if len(deployed.Items) != 1 || deployed.Items[0].Environment != "production" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := b.call(who{token: "web"}, http.MethodPost, api.Prefix+"/deploys", []byte(`{"environments":["odd_name"]}`)); w.Code != http.StatusForbidden {
		t.Errorf("another's environment: %d %s", w.Code, w.Body)
	}
	ask(http.MethodDelete, "/sources/control", "", http.StatusNoContent)
	ask(http.MethodGet, "/sources/control", "", http.StatusNotFound)
}
