package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

// compiling is a queue with what a server adds.
type compiling struct{ *compiletest.Queue }

func (c compiling) WantNow(ctx context.Context, nodes []fleet.Certname,
	priority compile.Priority,
) (wanted []compile.Compilation, refused map[fleet.Certname]string, err error) {
	refused = map[fleet.Certname]string{}
	for _, node := range nodes {
		if node == "new-1" {
			refused[node] = "no facts of new-1 are known"
			continue
		}
		row, err := c.Want(ctx, compile.Want{Node: node, Environment: "production", Version: "v", Priority: priority, At: time.Now()})
		if err != nil {
			return nil, nil, err
		}
		wanted = append(wanted, row)
	}
	return wanted, refused, nil
}

// newCompiling has a failed compilation of web-1 in production, number 1, and a wanted
// one of db-1 in other, number 2.
func newCompiling(t *testing.T) compiling {
	t.Helper()
	ctx, q := t.Context(), compiletest.NewQueue()
	want := func(node fleet.Certname, env fleet.Environment, p compile.Priority) {
		t.Helper()
		_, err := q.Want(ctx, compile.Want{Node: node, Environment: env, Version: "v", Priority: p, At: time.Unix(1, 0)})
		check(t, err)
	}
	want("web-1", "production", compile.Waited)
	rows, err := q.Lease(ctx, compile.Offer{Worker: "here", Rows: 1, Worst: compile.Background, Now: time.Now(), Until: time.Now().Add(time.Minute)})
	check(t, err)
	failed := rows[0]
	failed.State, failed.FinishedAt = compile.Failed, time.Now()
	failed.Err = &compile.Error{
		Cause: compile.CauseCode, Message: "no such class", File: "site.pp", Line: 3, Logs: []compile.Log{{Level: "warning", Message: "old"}},
	}
	check(t, q.Finish(ctx, failed))
	want("db-1", "other", compile.NewCode)
	return compiling{q}
}

func (b bench) contains(t *testing.T, method, path, body string, status int, wants ...string) {
	t.Helper()
	w := b.call(admin, method, api.Prefix+path, []byte(body))
	if w.Code != status {
		t.Errorf("%s %s: status %d, want %d: %s", method, path, w.Code, status, w.Body)
	}
	for _, want := range wants {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s %s: %s is missing in %s", method, path, want, w.Body)
		}
	}
}

func TestCompileQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.contains(t, "GET", "/compile/queue", "", 200, `"wanted":1,"running":0,"resting":0,"oldest":"1970-01-01T00:00:01Z"`,
		`{"priority":"new_code","environment":"other","wanted":1,`, `{"seconds":300,"environment":"production","compiled":0,"reused":0,"failed":1}`, `"now":[]`)
	b.contains(t, "GET", "/compilations", "", 200, `"id":2`, `"id":1`)
	b.contains(t, "GET", "/compilations?state=failed", "", 200, `{"items":[{"id":1,"node":"web-1"`,
		`"error":{"cause":"code","message":"no such class","file":"site.pp","line":3}`)
	b.contains(t, "GET", "/compilations?limit=1", "", 200, `{"items":[{"id":2,`, `"next":"2"`)
	b.contains(t, "GET", "/compilations?limit=1&after=2", "", 200, `{"items":[{"id":1,`, `"next":"1"`)
	b.contains(t, "GET", "/compilations?ids=2,77", "", 200, `{"items":[{"id":2,`)
	b.contains(t, "GET", "/compilations/1", "", 200, `"logs":[{"level":"warning","message":"old"}]`)
	b.contains(t, "GET", "/compilations/99", "", 404, "there is no compilation 99")
	for _, wrong := range []string{
		"/compilations?state=x", "/compilations?ids=1,x", "/compilations?after=x", "/compilations?node=A%20B", "/compilations?environment=-", "/compilations/x",
	} {
		b.contains(t, "GET", wrong, "", 400)
	}
}

// What waits because an attempt could not be made is told with the reason, and leaves a place to what runs.
func TestTroublesOfTheQueueAreNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.contains(t, "GET", "/compile/queue", "", 200, `"troubles":[]`)
	at := time.Unix(1_800_000_000, 0)
	lease := func() compile.Compilation {
		t.Helper()
		rows, err := b.compiling.Lease(t.Context(), compile.Offer{Worker: "here", Rows: 1, Worst: compile.Waited, Now: at, Until: at.Add(time.Minute)})
		check(t, err)
		return rows[0]
	}
	want := func(node fleet.Certname) {
		t.Helper()
		_, err := b.compiling.Want(t.Context(), compile.Want{Node: node, Environment: "production", Version: "v", Priority: compile.Waited, At: at})
		check(t, err)
	}
	want("runs")
	lease()
	for i := range 101 { // one more than are shown
		want(fleet.Certname(fmt.Sprintf("rests-%03d", i)))
		check(t, b.compiling.Rest(t.Context(), lease(), at.Add(time.Minute), "the store does not answer"))
	}
	b.contains(t, "GET", "/compile/queue", "", 200, `"resting":101`, `"now":[{"id":3,"node":"runs",`, `"node":"rests-100"`,
		`"troubles":[{"trouble":"the store does not answer","waiting":101,"next":"2027-01-15T08:01:00Z"}]`)
	b.contains(t, "GET", "/compilations?state=resting&limit=1", "", 200,
		`"node":"rests-100"`, `"state":"resting"`, `"trouble":"the store does not answer","rests_until":"2027-01-15T08:01:00Z"`)
}

// An environment whose compiles take too long again and again is named where people look.
func TestSlowedEnvironmentIsNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.contains(t, "GET", "/compile/queue", "", 200, `"slowed":[]`)
	at := time.Unix(1_800_000_000, 0)
	for _, node := range []fleet.Certname{"a", "b", "c"} {
		_, err := b.compiling.Want(t.Context(), compile.Want{Node: node, Environment: "production", Version: "v", Priority: compile.Waited, At: at})
		check(t, err)
		rows, err := b.compiling.Lease(t.Context(), compile.Offer{Worker: "here", Rows: 1, Worst: compile.Waited, Now: at, Until: at.Add(time.Minute)})
		check(t, err)
		rows[0].State, rows[0].FinishedAt, rows[0].Err = compile.Failed, at, &compile.Error{Cause: compile.CauseTimeout}
		check(t, b.compiling.Finish(t.Context(), rows[0]))
	}
	const slowed = `{"environment":"production","version":"v","timeouts":3,"since":"2027-01-15T08:00:00Z","rests_until":"2027-01-15T08:00:30Z"}`
	b.contains(t, "GET", "/compile/queue", "", 200, `"slowed":[`+slowed+`]`)
	b.contains(t, "POST", "/environments/production/versions", `{"manifest":{"module_path":["modules"],"files":[]},"origin":"fine"}`, 200)
	b.contains(t, "GET", "/environments/production/status", "", 200, `"slowed":`+slowed)
}

func TestCompilationsShowWhatTheCallerMaySee(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if text := b.call(caller(t, "web team"), "GET", api.Prefix+"/compilations", nil).Body.String(); !strings.Contains(text, "web-1") ||
		strings.Contains(text, "db-1") {
		t.Errorf("the web team sees %s", text)
	}
	if w := b.call(caller(t, "web team"), "GET", api.Prefix+"/compilations/2", nil); w.Code != http.StatusForbidden {
		t.Errorf("a foreign compilation: %d %s", w.Code, w.Body)
	}
	if w := b.call(caller(t, "web team"), "POST", api.Prefix+"/compile/now", []byte(`{"nodes":["web-1","db-1"]}`)); w.Code != http.StatusForbidden {
		t.Errorf("a foreign node's catalog: %d %s", w.Code, w.Body)
	}
	if w := b.call(caller(t, "web team"), "POST", api.Prefix+"/compile/now", []byte(`{"nodes":["web-1"]}`)); w.Code != http.StatusOK {
		t.Errorf("an own node's catalog: %d %s", w.Code, w.Body)
	}
}

func TestCompileNow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.contains(t, "POST", "/compile/now", `{"nodes":["web-1","new-1"]}`, 200, `"node":"web-1"`, `"priority":"waited","state":"wanted"`,
		`"refused":[{"node":"new-1","why":"no facts of new-1 are known"}]`, `"pauses":[]`)
	b.contains(t, "POST", "/compile/now", `{"environment":"production"}`, 200, `"node":"web-1"`)
	for body, want := range map[string]string{
		`{}`:                                    "say whose catalogs are wanted",
		`{"nodes":["web-1"],"environment":"a"}`: "nodes stand alone",
		`{"nodes":["Not A Node"]}`:              "Not A Node",
		`{"where":"nonsense ="}`:                "",
		`{"environment":"No Such"}`:             "",
		`{"nodes":[` + strings.Repeat(`"a",`, 1000) + `"a"]}`: "at most 1000",
	} {
		b.contains(t, "POST", "/compile/now", body, 400, want)
	}
}

func TestCompilePause(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.contains(t, "POST", "/compile/pause", `{"environment":"production","reason":"new disks"}`, 204)
	b.contains(t, "GET", "/compile/queue", "", 200, `"pauses":[{"environment":"production","by":"admin","reason":"new disks","at":`)
	b.contains(t, "POST", "/compile/now", `{"nodes":["web-1"]}`, 200, `"pauses":[{"environment":"production"`)
	b.contains(t, "POST", "/compile/resume", `{}`, 404, "compiling as a whole is not paused")
	b.contains(t, "POST", "/compile/resume", `{"environment":"production"}`, 204)
	b.contains(t, "POST", "/compile/pause", `{"environment":"-"}`, 400)
	b.contains(t, "POST", "/compile/pause", `{"reason":"`+strings.Repeat("x", 501)+`"}`, 400, "at most 500")
	var audited []string
	entries, err := b.store.Acts(t.Context(), rbac.EntryFilter{Limit: 100})
	check(t, err)
	for _, e := range entries {
		audited = append(audited, e.Operation+" "+e.Object)
	}
	text, _ := json.Marshal(audited)
	for _, want := range []string{`"compile.pause production"`, `"compile.resume production"`, `"compile.now [web-1]"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the audit log %s misses %s", text, want)
		}
	}
}
