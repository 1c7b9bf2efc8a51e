package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
)

// get reads something as somebody.
func get[T any](t *testing.T, b bench, name, path string) (answer T) {
	t.Helper()
	w := b.call(caller(t, name), http.MethodGet, api.Prefix+path, nil)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	check(t, json.Unmarshal(w.Body.Bytes(), &answer))
	return answer
}

// endedJob is a command on three nodes, which fails on db-1.
func endedJob(t *testing.T, b bench) {
	t.Helper()
	if _, started, problem := b.order(t, "admin", "/jobs/command", `{"targets":{"all":true},"command":"id"}`); started.Job == nil {
		t.Fatal(problem)
	}
	end(t, b.records, 1, func(node fleet.Certname) (int, string) {
		if node == "db-1" {
			return 2, "no\n"
		}
		return 0, "one\ntwo\n"
	})
}

func TestWhatBecameOfAJob(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	endedJob(t, b)
	shown := get[api.Job](t, b, "operator", "/jobs/1")
	if diff := cmp.Diff(map[string]int{"succeeded": 2, "failed": 1}, shown.Counts); diff != "" || shown.State != "failed" || shown.FinishedAt == nil {
		t.Errorf("%+v (-want +got):\n%s", shown, diff)
	}
	for query, want := range map[string]string{
		"": "db-1 web-1 web-2", "?state=failing": "db-1", "?state=final&limit=2": "db-1 web-1", "?state=succeeded&after=2": "web-2", "?state=waiting": "",
		"?node=web-2": "web-2",
	} {
		runs := get[api.List[api.JobRun]](t, b, "operator", "/jobs/1/runs"+query)
		var nodes []string
		for _, r := range runs.Items {
			nodes = append(nodes, r.Node)
		}
		if got := strings.Join(nodes, " "); got != want || (runs.Next != "") != strings.Contains(query, "limit") {
			t.Errorf("runs%s: %q, next %q; want %q", query, got, runs.Next, want)
		}
	}
	failed := get[api.List[api.JobRun]](t, b, "operator", "/jobs/1/runs?state=failed").Items[0]
	if failed.ExitCode == nil || *failed.ExitCode != 2 || failed.Reason == "" || failed.Output.Lines != 3 || failed.Transaction != "run-1" {
		t.Errorf("%+v", failed)
	}
	var all []string
	for after := ""; ; {
		page := get[api.List[api.JobLine]](t, b, "operator", "/jobs/1/output?limit=2&after="+after)
		for _, l := range page.Items {
			all = append(all, fmt.Sprintf("%s %s %d %s", l.Node, l.Stream, l.Number, l.Text))
		}
		if after = page.Next; after == "" {
			break
		}
	}
	want := []string{
		"db-1 stdout 1 no", "db-1 stderr 2 warning", "db-1 stderr 3 warning", "web-1 stdout 1 one", "web-1 stdout 2 two", "web-2 stdout 1 one", "web-2 stdout 2 two",
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if one := get[api.List[api.JobLine]](t, b, "operator", "/jobs/1/output?node=web-2"); len(one.Items) != 2 || one.Items[0].Node != "web-2" {
		t.Errorf("output of web-2: %+v", one)
	}
	for query, want := range map[string]int{
		"": 1, "?state=failed": 1, "?state=active": 0, "?kind=command": 1, "?kind=task": 0, "?actor=admin": 1, "?actor=zed": 0, "?node=web-1": 1,
		"?task=db": 0, "?after=1": 0,
	} {
		if jobs := get[api.List[api.Job]](t, b, "operator", "/jobs"+query); len(jobs.Items) != want {
			t.Errorf("jobs%s: %d, want %d", query, len(jobs.Items), want)
		}
	}
}

func TestQuestionsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	endedJob(t, b)
	for path, want := range map[string]int{
		"/jobs/x": 400, "/jobs/0": 400, "/jobs/-1": 400, "/jobs/99999999999999999999": 400, "/jobs/7": 404, "/jobs/7/runs": 404,
		"/jobs/7/output": 404, "/jobs/7/events": 404,
		"/jobs?state=odd": 400, "/jobs?kind=odd": 400, "/jobs?after=x": 400, "/jobs?limit=0x": 400, "/jobs?limit=1001": 400,
		"/jobs?node=A B": 400, "/jobs?odd=1": 400,
		"/jobs/1/runs?state=odd": 400, "/jobs/1/runs?after=-1": 400, "/jobs/1/runs?node=nobody": 404, "/jobs/1/output?after=1": 400, "/jobs/1/output?after=1.x": 400,
		"/jobs/1/output?after=-1.1": 400, "/jobs/1/output?node=nobody": 404, "/jobs/1/events?after=x": 400,
	} {
		if w := b.call(admin, http.MethodGet, api.Prefix+strings.ReplaceAll(path, " ", "%20"), nil); w.Code != want {
			t.Errorf("%s: %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
}

// With the permission for some nodes only, one sees one's own jobs.
func TestJobsOfOthers(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	endedJob(t, b)
	if _, started, problem := b.order(t, "web team", "/jobs/command", `{"targets":{"group":"Web"},"command":"id"}`); started.Job == nil {
		t.Fatal(problem)
	}
	if jobs := get[api.List[api.Job]](t, b, "web team", "/jobs"); len(jobs.Items) != 1 || jobs.Items[0].ID != "2" {
		t.Errorf("jobs: %+v", jobs.Items)
	}
	for path, want := range map[string]int{"/jobs/2": 200, "/jobs/1": 403, "/jobs/1/output": 403, "/jobs?actor=admin": 403, "/jobs?actor=web": 200} {
		if w := b.call(caller(t, "web team"), http.MethodGet, api.Prefix+path, nil); w.Code != want {
			t.Errorf("%s: %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
}
