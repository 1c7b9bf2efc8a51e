package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/preview"
	"github.com/tutti-project/tutti/internal/preview/previewtest"
)

// previewWorld is what previews find: two nodes whose catalogs change in the same way, one that does not compile, one that
// stays as it is.
func previewWorld() *previewtest.World {
	return &previewtest.World{Fates: map[fleet.Certname]previewtest.Fate{
		"web-1": {Stands: preview.Compiled, Base: "old", Fresh: "new", Volatile: "it reads the time"},
		"web-2": {Stands: preview.Compiled, Base: "old", Fresh: "new"},
		"web-3": {Stands: preview.Broken, Failure: preview.Failure{Message: "Syntax error", File: "manifests/site.pp", Line: 3}},
		"web-4": {Stands: preview.Compiled, Base: "old", Fresh: "old"},
	}}
}

// saysNothing is preview.Logs.
type saysNothing struct{}

func (saysNothing) Logs(context.Context, []int64) (map[int64][]compile.Log, error) { return nil, nil }

func (saysNothing) Standing(context.Context, fleet.Environment, []fleet.Certname) (map[fleet.Certname][]preview.Origin, error) {
	return nil, nil
}

func previewsOver(store *previewtest.Store) *preview.Service {
	world := previewWorld()
	return preview.NewService(preview.Config{
		Store: store, Compiler: world, Bases: world, Resolver: world, Comparing: world.Comparing, Logs: saysNothing{}, Poll: time.Millisecond,
	})
}

// somePreview is one of production, or of another environment, that compiles.
func (b bench) somePreview(t *testing.T, own bool) string {
	t.Helper()
	env := map[bool]fleet.Environment{true: "production", false: "other"}[own]
	p, err := b.preview.CreatePreview(t.Context(), preview.Preview{Environment: env, State: preview.Compiling, Counts: preview.Counts{}}, nil)
	check(t, err)
	return fmt.Sprint(p.ID)
}

// pastPreview is one that was cancelled.
func (b bench) pastPreview(t *testing.T, own bool) string {
	t.Helper()
	id := b.somePreview(t, own)
	number, err := strconv.ParseInt(id, 10, 64)
	check(t, err)
	_, err = b.preview.CancelPreview(t.Context(), preview.Preview{ID: number})
	check(t, err)
	return id
}

// readyPreview is one whose work is done.
func (b bench) readyPreview(t *testing.T) string {
	t.Helper()
	s := previewsOver(b.preview)
	p, err := s.Create(t.Context(), fleet.Actor{Kind: fleet.UserActor, Name: "ann"}, preview.Order{Environment: "production", Version: "v1", InWords: "all"})
	check(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	for p.State == preview.Compiling {
		p, err = s.Preview(t.Context(), p.ID)
		check(t, err)
	}
	stop()
	check(t, <-ran)
	return fmt.Sprint(p.ID)
}

// gets asks for a path and wants texts in the answer.
func (b bench) gets(t *testing.T, method, path, body string, status int, wants ...string) string {
	t.Helper()
	w := b.call(admin, method, api.Prefix+path, []byte(body))
	for _, want := range wants {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s %s: %s is missing in %s", method, path, want, w.Body)
		}
	}
	if w.Code != status {
		t.Errorf("%s %s: status %d, want %d: %s", method, path, w.Code, status, w.Body)
	}
	return w.Body.String()
}

func TestReadyPreview(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.readyPreview(t)
	at := "/previews/" + id
	var report api.PreviewReport
	check(t, json.Unmarshal([]byte(b.gets(t, http.MethodGet, at, "", 200, `"state":"ready"`, `"nodes":4`,
		`"counts":{"changed":2,"failed":1,"same":1}`, `"unseen":[{"reason":"it reads the time","nodes":1}]`)), &report))
	if len(report.Changes) != 2 || report.Changes[0].Key != "old -> new" || report.Changes[0].Nodes != 2 {
		t.Errorf("changes: %+v", report.Changes)
	}
	b.gets(t, http.MethodGet, at+"?limit=1", "", 200, `"next":"1"`)
	b.gets(t, http.MethodGet, at+"?limit=1&after=1", "", 200, `"key":"error Syntax error"`)
	b.gets(t, http.MethodGet, at+"/nodes?state=failed", "", 200, `"name":"web-3","state":"failed"`, `"message":"Syntax error","file":"manifests/site.pp","line":3`)
	b.gets(t, http.MethodGet, at+"/nodes?change=old+-%3E+new&limit=1", "", 200, `"name":"web-1"`, `"next":"0"`)
	b.gets(t, http.MethodGet, at+"/nodes?change=old+-%3E+new&limit=1&after=0", "", 200, `"name":"web-2"`)
	b.gets(t, http.MethodPost, at+"/remarks", `{"kind":"acknowledged","changes":["old -> new"],"text":"as planned"}`, 200, `"author":"admin"`)
	b.gets(t, http.MethodPost, at+"/remarks", `{"kind":"comment","text":"go"}`, 200)
	b.gets(t, http.MethodGet, at, "", 200, `"acknowledged":"admin"`, `"remarks":[{"kind":"comment","text":"go"`)
	b.gets(t, http.MethodPost, at+"/remarks", `{"kind":"withdrawn","changes":["old -> new"]}`, 200)
	if text := b.gets(t, http.MethodGet, at, "", 200); strings.Contains(text, `"acknowledged":"`) {
		t.Errorf("a withdrawn acknowledgement holds: %s", text)
	}
	b.gets(t, http.MethodGet, "/previews?environment=production&state=ready", "", 200, `"id":"`+id+`"`)
	b.gets(t, http.MethodGet, at+"/nodes/web-3", "", 409, "web-3 has no catalog of this version: Syntax error")
}

func TestPreviewsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.somePreview(t, true)
	for _, ask := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/previews/one", "", 400, `preview must be a number, not \"one\"`},
		{"GET", "/previews/99", "", 404, "there is no preview 99"},
		{"GET", "/previews?state=done", "", 400, `state must be compiling, ready or cancelled, not \"done\"`},
		{"GET", "/previews?after=x", "", 400, `after must be a number, not \"x\"`},
		{"GET", "/previews/" + id + "/nodes?state=new", "", 400, "state must be waiting, same, reordered, changed, failed, first or unable"},
		{"GET", "/previews/" + id + "/nodes?state=same&change=x", "", 400, "give one of them"},
		{"GET", "/previews/" + id + "/nodes?change=x", "", 404, `has no change \"x\" (yet)`},
		{"GET", "/previews/" + id + "/nodes/web-9", "", 404, "web-9 is no node of preview"},
		{"POST", "/previews/" + id + "/remarks", `{"kind":"acknowledged","all":true}`, 409, "all of its changes are known when it is ready"},
		{"POST", "/environments/production/previews", `{}`, 404, "environment production has no code; deploy it, or preview a directory"},
		{"POST", "/environments/production/previews", `{"manifest":{},"version":"a"}`, 400, "a manifest is one already"},
		{"POST", "/environments/production/previews", `{"targets":{"all":true,"nodes":["a"]}}`, 400, "all is every node, so it stands alone"},
		{"POST", "/previews/" + id + "/cancel", "", 200, `"reason":"cancelled by admin"`},
	} {
		b.gets(t, ask.method, ask.path, ask.body, ask.status, ask.want)
	}
}
