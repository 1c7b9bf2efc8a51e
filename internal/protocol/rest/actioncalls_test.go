package rest_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action/filter"
	"github.com/tutti-project/tutti/internal/action/history"
	"github.com/tutti-project/tutti/internal/action/invoke"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/target"
)

// nodeGate allows by grants that know web nodes.
type nodeGate struct{}

func (nodeGate) RefusedTo(_ context.Context, actor fleet.Actor, p fleet.Permission, s job.Spec, nodes []fleet.Certname) (map[fleet.Certname]string, error) {
	refused := map[fleet.Certname]string{}
	for _, node := range nodes {
		object := fleet.Object{Node: node, Action: s.Action.Module + "." + s.Action.Action}
		if strings.HasPrefix(string(node), "web") {
			object.Inside = []string{webCondition}
		}
		if err := rbac.Allow(actor, p, object); err != nil {
			refused[node] = fault.Detail(err)
		}
	}
	return refused, nil
}

func someInvoker(t *testing.T, records history.Store) invoke.Service {
	t.Helper()
	return invoke.Service{
		Catalogue: toldModules(t), Resolver: asNamed{}, Gate: nodeGate{}, Asker: present{}, Now: time.Now, Recorder: history.Keeper{
			Store: records, Log: slog.New(slog.DiscardHandler),
		},
	}
}

// halves judges: web nodes fit.
type halves struct{}

func (halves) Judged(_ context.Context, t job.Targets) (judged []target.Judged, err error) {
	for _, node := range t.Nodes {
		holds := filter.No
		if strings.HasPrefix(string(node), "web") {
			holds = filter.Yes
		}
		judged = append(judged, target.Judged{
			Node: node, Judgement: filter.Judgement{Holds: holds, Parts: []filter.Part{{Text: "role=web", Holds: holds, Why: "so it is"}}},
		})
	}
	return judged, nil
}

func TestAskedAnswersAreAStream(t *testing.T) {
	t.Parallel()
	b := fleetBench(t)
	asked := func(body string) string {
		t.Helper()
		w := b.call(admin, "POST", api.Prefix+"/actions/lamp/status/ask", []byte(body))
		var lines []string
		for line := range strings.Lines(w.Body.String()) {
			data, is := strings.CutPrefix(strings.TrimSpace(line), "data: ")
			var e api.ActionEvent
			if !is || json.Unmarshal([]byte(data), &e) != nil {
				continue
			}
			if e.Asked != nil {
				lines = append(lines, "asked "+string(rune('0'+e.Asked.Nodes)))
			}
			if e.Answer != nil {
				lines = append(lines, e.Answer.Node+" "+e.Answer.State+" "+e.Answer.Message)
			}
		}
		if !strings.HasSuffix(w.Body.String(), "event: end\ndata: {}\n\n") {
			lines = append(lines, w.Body.String())
		}
		return strings.Join(lines, "\n")
	}
	want := "asked 2\nn-1 unknown action its agent does not tell which modules it has\nweb-1 ok "
	if got := asked(`{"targets":{"nodes":["web-1","n-1"]}}`); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b.gets(t, "POST", "/actions/lamp/on/ask", `{"texts":{"name":"x"},"targets":{"nodes":["web-1"]}}`, 400, "lamp on changes nodes, so it is a job")
	b.gets(t, "POST", "/actions/lamp/statsu/ask", `{"targets":{"nodes":["web-1"]}}`, 404, "the module lamp has no action statsu")
	b.gets(t, "POST", "/actions/lamb/status/ask", `{"targets":{"nodes":["web-1"]}}`, 404, "no node has told of a module")
	b.gets(t, "POST", "/actions/lamp/status/ask", `{}`, 404, "no node is meant")
	b.gets(t, "POST", "/actions/lamp/status/ask", `{"batch":-1,"targets":{"nodes":["web-1"]}}`, 400, "field batch")
	b.gets(t, "POST", "/jobs/action", `{"module":"lamp","action":"on","targets":{"nodes":["web-1"]}}`, 400, "field name: it is missing")
	var list api.List[api.NodeMatched]
	b.do(t, "POST", "/match", `{"targets":{"nodes":["web-1","n-1"],"filter":{"facts":["role=web"]}}}`, &list)
	if len(list.Items) != 2 || list.Items[0].Holds != "yes" || list.Items[1].Holds != "no" || list.Items[0].Parts[0].Part != "role=web" {
		t.Errorf("%+v", list.Items)
	}
}

// A call is recorded when it has ended, without answers and secrets. With the permission for some nodes only, one sees one's own calls.
func TestCallsAreRecordedInShort(t *testing.T) {
	t.Parallel()
	b := fleetBench(t)
	ask := func(name, body string) {
		t.Helper()
		if w := b.call(caller(t, name), "POST", api.Prefix+"/actions/lamp/status/ask", []byte(body)); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	ask("admin", `{"texts":{"code":"correct horse"},"targets":{"nodes":["web-1","n-1"],"filter":{"facts":["role=web"]}}}`)
	ask("web team", `{"targets":{"nodes":["web-1"]}}`)
	list := get[api.List[api.ActionCall]](t, b, "operator", "/calls?limit=1")
	if len(list.Items) != 1 || list.Items[0].ID != "c2" || list.Items[0].Actor != "web" || list.Next != "c2" {
		t.Fatalf("%+v", list)
	}
	list = get[api.List[api.ActionCall]](t, b, "operator", "/calls?after=c2")
	want := []api.ActionCall{{
		ID: "c1", Module: "lamp", Action: "status", Input: `{"code":"(hidden)"}`, Targets: "web-1, n-1, fact role=web", Actor: "admin",
		Nodes: 2, Counts: map[string]int{"ok": 1, "unknown action": 1},
	}}
	if diff := cmp.Diff(want, list.Items, cmpopts.IgnoreFields(api.ActionCall{}, "Began", "Ended")); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if one := get[api.ActionCall](t, b, "operator", "/calls/c1"); !cmp.Equal(one, list.Items[0]) || one.Ended.Before(one.Began) || one.Began.IsZero() {
		t.Errorf("%+v", one)
	}
	for path, want := range map[string]int{
		"/calls/1": 400, "/calls/c0": 400, "/calls/c9": 404, "/calls?after=1": 400, "/calls?limit=1001": 400, "/calls?actor=zed": 200, "/calls?module=lamp": 200,
	} {
		if w := b.call(admin, "GET", api.Prefix+path, nil); w.Code != want {
			t.Errorf("%s: %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
	if own := get[api.List[api.ActionCall]](t, b, "web team", "/calls"); len(own.Items) != 1 || own.Items[0].ID != "c2" {
		t.Errorf("of the web team: %+v", own)
	}
	for path, want := range map[string]int{"/calls/c2": 200, "/calls/c1": 403, "/calls?actor=admin": 403} {
		if w := b.call(caller(t, "web team"), "GET", api.Prefix+path, nil); w.Code != want {
			t.Errorf("%s: %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
	if text := b.call(admin, "GET", api.Prefix+"/audit", nil).Body.String(); !strings.Contains(text, "lamp status on 2 nodes") ||
		strings.Contains(text, "correct horse") {
		t.Errorf("audit log: %s", text)
	}
}

func TestSecretsOfActionsAreSealed(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	body := `{"module":"lamp","action":"on","texts":{"name":"x","code":"correct horse"},"targets":{"nodes":["web-1"]}}`
	if _, started, problem := b.order(t, "admin", "/jobs/action", body); started.Job == nil {
		t.Fatal(problem)
	}
	sealed, err := b.records.Sealed(t.Context(), 1)
	check(t, err)
	if want := `sealed {"code":"correct horse"}`; string(sealed) != want {
		t.Errorf("sealed: %s, want %s", sealed, want)
	}
	shown := get[api.Job](t, b, "operator", "/jobs/1")
	if want := `{"module":"lamp","action":"on","input":{"bright":3,"code":"(hidden)","name":"x"}}`; string(shown.Order) != want {
		t.Errorf("order: %s, want %s", shown.Order, want)
	}
	for _, path := range []string{"/jobs", "/jobs/1", "/audit"} {
		if text := b.gets(t, "GET", path, "", 200); strings.Contains(text, "correct horse") {
			t.Errorf("%s: %s", path, text)
		}
	}
	end(t, b.records, 1, func(fleet.Certname) (int, string) { return 0, "" })
	b.gets(t, "POST", "/jobs/1/rerun", `{"only":"all"}`, 400, "job 1 was given code, which was hidden and is forgotten", "tutti action run lamp on")
}
