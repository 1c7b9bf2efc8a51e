package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/release"
	"github.com/tutti-project/tutti/internal/release/releasetest"
)

// twoNodes is rest.ReleaseDifferences.
type twoNodes struct{}

// newReleases is releases in a world of three nodes, one of which does not compile.
func newReleases(store *releasetest.Store) *release.Service {
	world := releasetest.NewWorld(map[fleet.Certname]releasetest.Fate{
		"web-1": {Base: "old", Fresh: "new"}, "web-2": {Base: "old", Fresh: "new"}, "web-3": {Base: "old", Failure: "Syntax error"},
	})
	return world.Service(store)
}

// Difference implements rest.ReleaseDifferences.
func (twoNodes) Difference(context.Context, []release.Target) (api.FleetDifference, api.Vanishing, error) {
	return api.FleetDifference{Nodes: 2}, api.Vanishing{Resources: 3, Distinct: 2, Nodes: 2}, nil
}

// someRelease is one of production, or of another environment, that runs.
func (b bench) someRelease(t *testing.T, own bool) string {
	t.Helper()
	env := map[bool]fleet.Environment{true: "production", false: "other"}[own]
	r, err := b.stored.CreateRelease(t.Context(), release.Release{Kind: release.Forward, Preview: 1, Environment: env, State: release.Running, Author: "ann"}, nil,
		nil)
	check(t, err)
	return fmt.Sprint(r.ID)
}

// asks sends a request as the administrator.
func (b bench) asks(t *testing.T, method, path, body string, want int, into any) string {
	t.Helper()
	w := b.call(admin, method, api.Prefix+path, []byte(body))
	if w.Code != want {
		t.Fatalf("%s %s: %d %s, want %d", method, path, w.Code, w.Body, want)
	}
	if into != nil {
		check(t, json.Unmarshal(w.Body.Bytes(), into))
	}
	return w.Body.String()
}

func TestReleases(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var made api.ReleaseReport
	order := `{"preview":1,"waves":["1","rest"],"max_failures":1,"promote":"manual","description":"tls"`
	b.asks(t, http.MethodPost, "/releases", order+`,"dry_run":true}`, http.StatusOK, &made)
	if made.ID != "" || len(made.Waves) != 2 || made.Counts["waiting"] != 2 || len(made.Left) != 1 || !strings.Contains(made.Left[0].Reason, "Syntax error") {
		t.Errorf("dry run: %+v", made)
	}
	b.asks(t, http.MethodPost, "/releases", order+`}`, http.StatusOK, &made)
	if made.ID != "1" || made.State != "running" || made.Options.Promote != "manual" || *made.Options.MaxFailures != 1 {
		t.Errorf("made: %+v", made)
	}
	var list api.List[api.Release]
	b.asks(t, http.MethodGet, "/releases?state=running", "", http.StatusOK, &list)
	if len(list.Items) != 1 || list.Items[0].Description != "tls" {
		t.Errorf("list: %+v", list)
	}
	var targets api.List[api.ReleaseTarget]
	b.asks(t, http.MethodGet, "/releases/1/targets?state=refused,failed", "", http.StatusOK, &targets)
	if len(targets.Items) != 1 || targets.Items[0].Name != "web-3" || targets.Items[0].State != "refused" {
		t.Errorf("targets: %+v", targets)
	}
	var r api.Release
	b.asks(t, http.MethodPost, "/releases/1/pause", `{"why":"lunch"}`, http.StatusOK, &r)
	if r.State != "paused" || r.Hold != "by_hand" || !strings.HasSuffix(r.Reason, ": lunch") {
		t.Errorf("paused: %+v", r)
	}
	b.asks(t, http.MethodPost, "/releases/1/resume", `{"max_failures":5}`, http.StatusOK, &r)
	if r.State != "running" || *r.Options.MaxFailures != 5 {
		t.Errorf("resumed: %+v", r)
	}
	var report api.ReleaseReport
	b.asks(t, http.MethodGet, "/releases/1", "", http.StatusOK, &report)
	if len(report.Entries) != 3 || report.Revision != 3 {
		t.Errorf("report: %+v", report)
	}
	b.asks(t, http.MethodGet, "/releases/1?behind=1", "", http.StatusOK, &report)
	b.asks(t, http.MethodPost, "/releases/1/abort", `{"kill":true}`, http.StatusOK, &r)
	if r.State != "stopping" {
		t.Errorf("aborted: %+v", r)
	}
	for _, wrong := range []struct {
		method, path, body string
		code               int
		says               string
	}{
		{http.MethodPost, "/releases", `{"preview":0}`, http.StatusBadRequest, "which preview"},
		{http.MethodPost, "/releases", `{"preview":1,"soak":-1}`, http.StatusBadRequest, "seconds"},
		{http.MethodPost, "/releases", `{"preview":1,"waves":["x"]}`, http.StatusBadRequest, "waves"},
		{http.MethodGet, "/releases?state=nice", "", http.StatusBadRequest, "state must be"},
		{http.MethodGet, "/releases/9", "", http.StatusNotFound, "no release 9"},
		{http.MethodGet, "/releases/1/targets?state=fine", "", http.StatusBadRequest, "state must be"},
		{http.MethodPost, "/releases/1/promote", `{}`, http.StatusConflict, "promoted"},
		{http.MethodPost, "/releases/1/approve", `{}`, http.StatusConflict, "needs no approval"},
		{http.MethodPost, "/releases/1/refresh", `{}`, http.StatusConflict, "superseded"},
		{http.MethodPost, "/rollbacks", `{}`, http.StatusBadRequest, "release"},
		{http.MethodPost, "/rollbacks", `{"nodes":["web-1"],"to":9}`, http.StatusConflict, "not kept"},
		{http.MethodPost, "/rollbacks", `{"nodes":["nobody"]}`, http.StatusNotFound, "no node is called nobody"},
	} {
		if text := b.asks(t, wrong.method, wrong.path, wrong.body, wrong.code, nil); !strings.Contains(text, wrong.says) {
			t.Errorf("%s %s: %s, want %q", wrong.method, wrong.path, text, wrong.says)
		}
	}
	b.asks(t, http.MethodPost, "/rollbacks", `{"nodes":["web-1"],"to":1,"dry_run":true}`, http.StatusOK, &report)
	if report.Kind != "rollback" || report.Vanishing == nil || report.Vanishing.Resources != 3 || report.Already != 1 {
		t.Errorf("roll back: %+v", report)
	}
}
