package httpapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/httpapi"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/rbac"
)

// jobBench is a bench that knows three nodes.
func jobBench(t *testing.T) bench {
	t.Helper()
	b := newBench(t)
	b.seed(t, "web-2", "production")
	b.seed(t, "db-1", "other")
	return b
}

// order sends an order as somebody, and returns the status and the answer.
func (b bench) order(t *testing.T, name, path, body string) (int, api.JobStarted, string) {
	t.Helper()
	w := b.call(caller(t, name), http.MethodPost, api.Prefix+path, []byte(body))
	var started api.JobStarted
	var problem api.Problem
	if w.Code == http.StatusOK {
		check(t, json.Unmarshal(w.Body.Bytes(), &started))
	} else {
		check(t, json.Unmarshal(w.Body.Bytes(), &problem))
	}
	return w.Code, started, problem.Message
}

// upload stores a file.
func (b bench) upload(t *testing.T, content string) string {
	t.Helper()
	w := b.call(admin, http.MethodPost, api.Prefix+"/job-files", []byte(content))
	var stored api.JobUploaded
	check(t, json.Unmarshal(w.Body.Bytes(), &stored))
	if want := (api.JobUploaded{Digest: string(fleet.DigestOf([]byte(content))), Bytes: int64(len(content))}); stored != want {
		t.Fatalf("uploaded %+v, want %+v", stored, want)
	}
	return stored.Digest
}

func TestEachKindOfJobIsOrdered(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	digest := b.upload(t, "#!/bin/sh\n")
	for name, c := range map[string]struct{ path, body, title, order string }{
		"puppet":              {"/jobs/puppet", `"environment":"production","noop":true,"tags":["ntp"],"debug":true`, "", `{"noop":true,"tags":["ntp"],"debug":true}`},
		"puppet that changes": {"/jobs/puppet", `"noop":false`, "", `{"no_noop":true}`},
		"task": {"/jobs/task", `"task":"db::passwd","params":{"user":"app"},"texts":{"password":"s3cret","tries":"7"}`, "db::passwd",
			`{"task":"db::passwd","parameters":{"password":"(hidden)","salt":"(hidden)","tries":7,"user":"app"}}`},
		"task without metadata": {"/jobs/task", `"task":"db::free","texts":{"a":"1","b":"true","c":"x","d":"01"}`, "db::free", `{"task":"db::free","parameters":{"a":1,"b":true,"c":"x","d":"01"}}`},
		"command":               {"/jobs/command", `"command":"uptime"`, "uptime", `{"command":"uptime"}`},
		"script": {"/jobs/script", `"name":"mend.sh","digest":"` + digest + `","arguments":["-x"]`, "mend.sh",
			`{"script":{"name":"mend.sh","digest":"` + digest + `","bytes":10},"arguments":["-x"]}`},
		"file": {"/jobs/file", `"files":[{"kind":"directory","destination":"/srv/x"},{"destination":"/srv/x/y","digest":"` + digest + `"}]`, "/srv/x/y and 1 more",
			`{"entries":[{"kind":"directory","destination":"/srv/x"},{"kind":"file","destination":"/srv/x/y","file":{"name":"y","digest":"` + digest + `","bytes":10}}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			status, started, problem := b.order(t, "admin", c.path, `{"targets":{"nodes":["web-2","web-1"]},"concurrency":1,"max_failures":0,"timeout":60,"wait_offline":5,"description":"why",`+c.body+`}`)
			if status != http.StatusOK {
				t.Fatalf("%d %s", status, problem)
			}
			j := started.Job
			if j.Title != c.title || string(j.Order) != c.order {
				t.Errorf("title %q, order %s; want %q, %s", j.Title, j.Order, c.title, c.order)
			}
			if j.State != "queued" || j.Nodes != 2 || j.Concurrency != 1 || *j.MaxFailures != 0 || j.Timeout != 60 || j.WaitOffline != 5 || j.Description != "why" || j.Actor != "admin" {
				t.Errorf("job %+v", j)
			}
			if diff := cmp.Diff([]string{"web-2"}, started.Plan.Offline); diff != "" || started.Plan.Targets != nil {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			w := b.call(admin, http.MethodGet, api.Prefix+"/jobs/"+j.ID, nil)
			var shown api.Job
			check(t, json.Unmarshal(w.Body.Bytes(), &shown))
			if string(shown.Order) != c.order || strings.Contains(w.Body.String(), "s3cret") {
				t.Errorf("shown: %s", w.Body)
			}
		})
	}
}

// What is secret is sealed with the job, and nowhere else.
func TestSecretsOfTasksAreSealed(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	_, started, problem := b.order(t, "admin", "/jobs/task", `{"targets":{"all":true},"task":"db::passwd","params":{"user":"app","password":"s3cret"},"noop":true}`)
	if started.Job == nil {
		t.Fatal(problem)
	}
	sealed, err := b.records.Sealed(t.Context(), 1)
	check(t, err)
	if want := `sealed {"password":"s3cret","salt":"of the code"}`; string(sealed) != want {
		t.Errorf("sealed: %s, want %s", sealed, want)
	}
	j, err := b.records.Job(t.Context(), 1)
	check(t, err)
	text, err := json.Marshal(j)
	check(t, err)
	if strings.Contains(string(text), "s3cret") || !j.Spec.Task.Noop || j.Spec.Task.Metadata.InputMethod != "stdin" || len(j.Spec.Task.Files) != 2 || j.Spec.Task.Version != "version-1" {
		t.Errorf("job %s", text)
	}
}

func TestWrongOrdersAreRefused(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	digest := b.upload(t, "x")
	missing := string(fleet.DigestOf([]byte("never uploaded")))
	one := `"targets":{"nodes":["web-1"]}`
	for name, c := range map[string]struct {
		path, body string
		status     int
		want       string
	}{
		"nobody":               {"puppet", `{}`, 400, "targets"},
		"unknown node":         {"puppet", `{"targets":{"nodes":["web-9"]}}`, 400, "no node is called web-9 (1 of 1 names are not known)"},
		"bad name":             {"puppet", `{"targets":{"nodes":["Web 9"]}}`, 400, "Web 9"},
		"bad excluded name":    {"puppet", `{"targets":{"all":true,"exclude":["/"]}}`, 400, "/"},
		"nobody left":          {"puppet", `{"targets":{"nodes":["web-1"],"exclude":["web-1"]}}`, 400, "no node is meant"},
		"all and names":        {"puppet", `{"targets":{"all":true,"nodes":["web-1"]}}`, 400, "all is every node"},
		"all and group":        {"puppet", `{"targets":{"all":true,"group":"Web"}}`, 400, "all is every node"},
		"concurrency":          {"puppet", `{` + one + `,"concurrency":-1}`, 400, "concurrency"},
		"max failures":         {"puppet", `{` + one + `,"max_failures":-1}`, 400, "max_failures"},
		"timeout":              {"puppet", `{` + one + `,"timeout":-1}`, 400, "timeout"},
		"long timeout":         {"puppet", `{` + one + `,"timeout":99999999}`, 400, "timeout"},
		"wait offline":         {"puppet", `{` + one + `,"wait_offline":-1}`, 400, "wait_offline"},
		"number as text":       {"puppet", `{` + one + `,"timeout":"60"}`, 400, "timeout"},
		"unknown field":        {"puppet", `{` + one + `,"noops":true}`, 400, "noops"},
		"bad environment":      {"puppet", `{` + one + `,"environment":"a-b"}`, 400, "environment"},
		"unknown environment":  {"puppet", `{` + one + `,"environment":"nowhere"}`, 400, "environment nowhere has no code"},
		"bad tag":              {"puppet", `{` + one + `,"tags":["--x"]}`, 400, "tags"},
		"no task":              {"task", `{` + one + `}`, 400, "a task is called"},
		"unknown task":         {"task", `{` + one + `,"task":"nothing"}`, 400, "there is no task nothing"},
		"task elsewhere":       {"task", `{` + one + `,"task":"db::free","environment":"nowhere"}`, 400, "environment nowhere has no code"},
		"broken task":          {"task", `{` + one + `,"task":"db::broken"}`, 400, "description"},
		"remote task":          {"task", `{` + one + `,"task":"db::remote"}`, 400, "cannot be run on nodes"},
		"no noop":              {"task", `{` + one + `,"task":"db::free","noop":true}`, 400, "supports_noop"},
		"wrong type":           {"task", `{` + one + `,"task":"db::passwd","params":{"user":7,"password":"s3cret"}}`, 400, "user expects"},
		"wrong secret":         {"task", `{` + one + `,"task":"db::passwd","params":{"user":"a","password":["s3cret"]}}`, 400, "password expects"},
		"missing parameter":    {"task", `{` + one + `,"task":"db::passwd","params":{"user":"a"}}`, 400, "password (String) is required"},
		"unknown parameter":    {"task", `{` + one + `,"task":"db::passwd","params":{"usr":"a"}}`, 400, "there is no parameter"},
		"parameter twice":      {"task", `{` + one + `,"task":"db::free","params":{"a":1},"texts":{"a":"2"}}`, 400, "given twice"},
		"reserved parameter":   {"task", `{` + one + `,"task":"db::free","params":{"_noop":true}}`, 400, "not for people to give"},
		"no object":            {"task", `{` + one + `,"task":"db::free","params":[1]}`, 400, "one JSON object"},
		"no command":           {"command", `{` + one + `,"command":" "}`, 400, "command"},
		"byte 0":               {"command", `{` + one + `,"command":"a\u0000b"}`, 400, "command"},
		"script not uploaded":  {"script", `{` + one + `,"name":"a","digest":"` + missing + `"}`, 400, "was uploaded"},
		"script with a path":   {"script", `{` + one + `,"name":"../a","digest":"` + digest + `"}`, 400, "without its directory"},
		"script without name":  {"script", `{` + one + `,"digest":"` + digest + `"}`, 400, "script"},
		"no digest":            {"script", `{` + one + `,"name":"a","digest":"x"}`, 400, "digest"},
		"file not uploaded":    {"file", `{` + one + `,"files":[{"destination":"/a","digest":"` + missing + `"}]}`, 400, "was uploaded"},
		"no files":             {"file", `{` + one + `}`, 400, "entries"},
		"relative destination": {"file", `{` + one + `,"files":[{"destination":"a","digest":"` + digest + `"}]}`, 400, "absolute path"},
		"odd entry":            {"file", `{` + one + `,"files":[{"kind":"pipe","destination":"/a"}]}`, 400, "symlink"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, dry := range []string{"", `,"dry_run":true}`} {
				body := c.body
				if dry != "" && len(body) > 2 {
					body = strings.TrimSuffix(body, "}") + dry
				}
				status, _, problem := b.order(t, "admin", "/jobs/"+c.path, body)
				planned := dry != "" && (strings.Contains(c.want, "uploaded") || c.want == "no node is meant") // which only matters when it starts
				if !planned && (status != c.status || !strings.Contains(problem, c.want) || strings.Contains(problem, "s3cret")) {
					t.Errorf("%s: %d %q, want %d with %q", body, status, problem, c.status, c.want)
				}
			}
		})
	}
	if jobs, err := b.jobs.Jobs(t.Context(), job.Page{Limit: 10}); err != nil || len(jobs) > 0 {
		t.Errorf("%d jobs were started, %v", len(jobs), err)
	}
}

// Whoever may not touch some of the nodes is told which, and nothing starts, unless
// those are to be left out.
func TestDeniedNodes(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	status, plan, _ := b.order(t, "web team", "/jobs/command", `{"targets":{"all":true},"command":"id","dry_run":true}`)
	want := api.JobPlan{
		Nodes: 2, Offline: []string{"web-2"}, Denied: []string{"db-1"}, Digest: string(fleet.DigestOf([]byte("web-1\nweb-2"))),
		Targets: []api.JobTarget{
			{Node: "web-1", Connected: &api.Connected{Server: "tutti.test", Since: time.Date(2026, 11, 21, 19, 0, 0, 0, time.UTC), Agent: "agent/1", Protocol: "PCP 2"}},
			{Node: "web-2"},
		},
	}
	if diff := cmp.Diff(want, plan.Plan); diff != "" || status != http.StatusOK || plan.Job != nil {
		t.Errorf("%d (-want +got):\n%s", status, diff)
	}
	status, _, problem := b.order(t, "web team", "/jobs/command", `{"targets":{"all":true},"command":"id"}`)
	for _, word := range []string{"command:run", "1 of 3 nodes: db-1", "Nothing was started", "Roles that have it: administrator, commander", "Ask admin"} {
		if status != http.StatusForbidden || !strings.Contains(problem, word) {
			t.Errorf("%d %q, want %q", status, problem, word)
		}
	}
	entries, err := b.store.Acts(t.Context(), rbac.EntryFilter{Limit: 10})
	check(t, err)
	if len(entries) != 1 || entries[0].Outcome != rbac.Denied || entries[0].Object != "command id on all nodes" || entries[0].Operation != "job.command" {
		t.Errorf("audit log: %+v", entries)
	}
	status, started, problem := b.order(t, "web team", "/jobs/command", `{"targets":{"all":true},"command":"id","skip_denied":true}`)
	if status != http.StatusOK || started.Job.Nodes != 2 || !cmp.Equal(started.Plan.Denied, []string{"db-1"}) {
		t.Errorf("%d %s %+v", status, problem, started)
	}
	if status, _, problem = b.order(t, "web team", "/jobs/command", `{"targets":{"nodes":["db-1"]},"command":"id","skip_denied":true}`); status != http.StatusForbidden {
		t.Errorf("nobody is left: %d %s", status, problem)
	}
}

func TestWhatWasPlannedIsWhatStarts(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	_, plan, _ := b.order(t, "admin", "/jobs/puppet", `{"targets":{"nodes":["web-1"]},"dry_run":true}`)
	order := `{"targets":{"nodes":["web-1"%s]},"expect":"` + plan.Plan.Digest + `"}`
	if status, _, problem := b.order(t, "admin", "/jobs/puppet", fmt.Sprintf(order, `,"db-1"`)); status != http.StatusConflict || !strings.Contains(problem, "not those of the plan") {
		t.Errorf("%d %s", status, problem)
	}
	if status, _, problem := b.order(t, "admin", "/jobs/puppet", fmt.Sprintf(order, "")); status != http.StatusOK {
		t.Errorf("%d %s", status, problem)
	}
}

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
		"": "db-1 web-1 web-2", "?state=failing": "db-1", "?state=final&limit=2": "db-1 web-1", "?state=succeeded&after=2": "web-2", "?state=waiting": "", "?node=web-2": "web-2",
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
	want := []string{"db-1 stdout 1 no", "db-1 stderr 2 warning", "db-1 stderr 3 warning", "web-1 stdout 1 one", "web-1 stdout 2 two", "web-2 stdout 1 one", "web-2 stdout 2 two"}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if one := get[api.List[api.JobLine]](t, b, "operator", "/jobs/1/output?node=web-2"); len(one.Items) != 2 || one.Items[0].Node != "web-2" {
		t.Errorf("output of web-2: %+v", one)
	}
	for query, want := range map[string]int{"": 1, "?state=failed": 1, "?state=active": 0, "?kind=command": 1, "?kind=task": 0, "?actor=admin": 1, "?actor=zed": 0, "?node=web-1": 1, "?task=db": 0, "?after=1": 0} {
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
		"/jobs/x": 400, "/jobs/0": 400, "/jobs/-1": 400, "/jobs/99999999999999999999": 400, "/jobs/7": 404, "/jobs/7/runs": 404, "/jobs/7/output": 404, "/jobs/7/events": 404,
		"/jobs?state=odd": 400, "/jobs?kind=odd": 400, "/jobs?after=x": 400, "/jobs?limit=0x": 400, "/jobs?limit=1001": 400, "/jobs?node=A B": 400, "/jobs?odd=1": 400,
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

func TestStop(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	_, _, _ = b.order(t, "admin", "/jobs/command", `{"targets":{"all":true},"command":"id"}`)
	for _, body := range []string{`{}`, `{"kill":true}`, `{"kill":true}`} {
		w := b.call(caller(t, "operator"), http.MethodPost, api.Prefix+"/jobs/1/stop", []byte(body))
		var stopped api.Job
		check(t, json.Unmarshal(w.Body.Bytes(), &stopped))
		if stopped.State != "stopping" || !strings.Contains(stopped.Reason, "by operator") {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	entries, err := b.store.Acts(t.Context(), rbac.EntryFilter{Operation: "job.stop", Limit: 10})
	check(t, err)
	if len(entries) != 3 || entries[0].Object != "1" || entries[0].Outcome != rbac.Done {
		t.Errorf("audit log: %+v", entries)
	}
}

func TestRerun(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	if status, _, problem := b.order(t, "admin", "/jobs/9/rerun", `{}`); status != http.StatusNotFound {
		t.Errorf("%d %s", status, problem)
	}
	order := `{"targets":{"all":true,"exclude":["web-2"]},"task":"db::passwd","params":{"user":"app","password":"s3cret"},"timeout":60,"description":"first"}`
	if _, started, problem := b.order(t, "admin", "/jobs/task", order); started.Job == nil {
		t.Fatal(problem)
	}
	if status, _, problem := b.order(t, "admin", "/jobs/1/rerun", `{"only":"all","params":{"password":"n","salt":"s"}}`); status != http.StatusConflict || !strings.Contains(problem, "when it is over") {
		t.Errorf("it goes on: %d %s", status, problem)
	}
	end(t, b.records, 1, func(node fleet.Certname) (int, string) { return len(node) % 2, "" }) // it succeeds on db-1
	for body, want := range map[string]string{
		`{}`: "password was hidden", `{"params":{"user":"x"}}`: "password was hidden", `{"only":"some","params":{"password":"n","salt":"s"}}`: "failed or all",
		`{"params":{"password":7,"salt":"s"}}`: "password expects", `{"params":[]}`: "must be an object", `{"params":{"password":"n","salt":"s"},"timeout":-1}`: "timeout",
		`{"params":{"password":"n","salt":"s"},"concurrency":-1}`: "concurrency",
	} {
		if status, _, problem := b.order(t, "admin", "/jobs/1/rerun", body); status != http.StatusBadRequest || !strings.Contains(problem, want) {
			t.Errorf("%s: %d %q, want %q", body, status, problem, want)
		}
	}
	_, started, problem := b.order(t, "admin", "/jobs/1/rerun", `{"texts":{"password":"n","tries":"9","salt":"s"},"wait_offline":30,"max_failures":1}`)
	if started.Job == nil {
		t.Fatal(problem)
	}
	j := started.Job
	if j.RerunOf != "1" || j.Nodes != 1 || j.Targets.Nodes[0] != "web-1" || j.Timeout != 60 || j.WaitOffline != 30 || *j.MaxFailures != 1 || j.Description != "first" ||
		string(j.Order) != `{"task":"db::passwd","parameters":{"password":"(hidden)","salt":"(hidden)","tries":9,"user":"app"}}` {
		t.Errorf("%+v %s", j, j.Order)
	}
	end(t, b.records, 2, func(fleet.Certname) (int, string) { return 0, "" })
	if status, _, problem := b.order(t, "admin", "/jobs/2/rerun", `{"params":{"password":"n","salt":"s"}}`); status != http.StatusConflict || !strings.Contains(problem, "succeeded on all of its nodes") {
		t.Errorf("%d %s", status, problem)
	}
	if status, started, problem := b.order(t, "admin", "/jobs/1/rerun", `{"only":"all","params":{"password":"n","salt":"s"},"dry_run":true}`); status != http.StatusOK || started.Plan.Nodes != 2 || started.Job != nil {
		t.Errorf("%d %s", status, problem)
	}
	if status, _, problem := b.order(t, "admin", "/jobs/1/rerun", `{"only":"all","params":{"password":"n","salt":"s"},"expect":"other"}`); status != http.StatusConflict {
		t.Errorf("%d %s", status, problem)
	}
}

// Who may read a job needs the right to its kind to order it again.
func TestRerunNeedsThePermissionOfTheKind(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	endedJob(t, b)
	status, _, problem := b.order(t, "operator", "/jobs/1/rerun", `{}`)
	if status != http.StatusForbidden || !strings.Contains(problem, "does not have the permission command:run") {
		t.Errorf("%d %s", status, problem)
	}
	if status, _, problem = b.order(t, "commander", "/jobs/1/rerun", `{"noop":true}`); status != http.StatusBadRequest || !strings.Contains(problem, "noop") {
		t.Errorf("%d %s", status, problem)
	}
	if status, started, problem := b.order(t, "commander", "/jobs/1/rerun", `{}`); status != http.StatusOK || started.Job.Actor != "commander" || started.Job.Nodes != 1 {
		t.Errorf("%d %s", status, problem)
	}
	entries, err := b.store.Acts(t.Context(), rbac.EntryFilter{Operation: "job.rerun", Limit: 10})
	check(t, err)
	if len(entries) != 2 || entries[0].Outcome != rbac.Done || entries[0].Object != "1: command id on db-1" || entries[1].Outcome != rbac.Denied {
		t.Errorf("audit log: %+v", entries)
	}
}

// serving is the bench behind a real connection; the caller is who the header says.
func serving(t *testing.T, b bench) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	return server
}

// followed reads a stream of events from a place.
func followed(t *testing.T, server *httptest.Server, after string, header http.Header) *bufio.Scanner {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+api.Prefix+"/jobs/1/events?after="+after, nil)
	check(t, err)
	r.Header = header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set("Authorization", "Bearer "+secret("operator"))
	answer, err := server.Client().Do(r)
	check(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %v", answer.StatusCode, answer.Header)
	}
	return bufio.NewScanner(answer.Body)
}

// seenUntil reads what events tell, until a line begins with a word or the stream ends.
func seenUntil(t *testing.T, lines *bufio.Scanner, until string) (seen []string) {
	t.Helper()
	for lines.Scan() {
		line := lines.Text()
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			var e api.JobEvent
			check(t, json.Unmarshal([]byte(data), &e))
			switch {
			case e.Run != nil:
				seen = append(seen, fmt.Sprintf("%d %s %s", e.Number, e.Run.Node, e.Run.State))
			case e.Job != nil:
				seen = append(seen, fmt.Sprintf("%d job %s", e.Number, e.Job.State))
			}
		}
		if strings.HasPrefix(line, until) {
			return seen
		}
	}
	return seen
}

func TestTheStreamOfAJob(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	_, _, _ = b.order(t, "admin", "/jobs/command", `{"targets":{"all":true},"command":"id"}`)
	server := serving(t, b)
	early := followed(t, server, "", nil)
	seenUntil(t, early, ": follow")
	end(t, b.records, 1, func(fleet.Certname) (int, string) { return 0, "" })
	whole := seenUntil(t, early, "event: end")
	n := len(whole)
	if n < 4 || !strings.HasSuffix(whole[n-1], "job finished") {
		t.Fatalf("events: %q", whole)
	}
	for i := range n { // resumed anywhere, nothing is missing and nothing twice
		number, _, _ := strings.Cut(whole[i], " ")
		rest := seenUntil(t, followed(t, server, "0", http.Header{"Last-Event-Id": {number}}), "event: end")
		if diff := cmp.Diff(append([]string(nil), whole[i+1:]...), rest); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", number, diff)
		}
	}
}

// A server that stops ends its streams, and says nothing that looks like the end of the job.
func TestAStoppingServerEndsItsStreams(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	_, _, _ = b.order(t, "admin", "/jobs/command", `{"targets":{"all":true},"command":"id"}`)
	lines := followed(t, serving(t, b), "", nil)
	seenUntil(t, lines, ": follow")
	close(b.stop)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "event: end") {
			t.Error("the job is said to be over")
		}
	}
}

// Nodes get the files of their jobs, and no others.
func TestFilesOfJobs(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	digest, other := b.upload(t, "#!/bin/sh\necho\n"), b.upload(t, "not sent")
	if _, started, problem := b.order(t, "admin", "/jobs/script", `{"targets":{"nodes":["web-1"]},"name":"x.sh","digest":"`+digest+`"}`); started.Job == nil {
		t.Fatal(problem)
	}
	route := b.handler.(*httpapi.Handler).JobFileRoute()
	node := func(name string) fleet.Actor { return fleet.Actor{Kind: fleet.NodeActor, Name: name} }
	for name, c := range map[string]struct {
		actor                  fleet.Actor
		method, digest, ranged string
		status                 int
		want                   string
	}{
		"its file":     {node("web-1"), "GET", digest, "", 200, "#!/bin/sh\necho\n"},
		"a part":       {node("web-1"), "GET", digest, "bytes=2-4", 206, "/bi"},
		"head":         {node("web-1"), "HEAD", digest, "", 200, ""},
		"another node": {node("web-2"), "GET", digest, "", 403, "no job sends the file"},
		"another file": {node("web-1"), "GET", other, "", 403, "no job sends the file"},
		"no digest":    {node("web-1"), "GET", "x", "", 400, "digest"},
		"a user":       {fleet.Actor{Kind: fleet.UserActor, Name: "web-1"}, "GET", digest, "", 403, "show the node's certificate"},
		"a stranger":   {fleet.Actor{Kind: fleet.Anonymous}, "GET", digest, "", 403, "show the node's certificate"},
		"not to write": {node("web-1"), "PUT", digest, "", 405, ""},
	} {
		r := httptest.NewRequest(c.method, httpapi.JobFilePath+c.digest+"/m/tasks/x.sh", bytes.NewReader(nil))
		r = r.WithContext(fleet.WithActor(r.Context(), c.actor))
		if c.ranged != "" {
			r.Header.Set("Range", c.ranged)
		}
		w := httptest.NewRecorder()
		route.ServeHTTP(w, r)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) || c.status == 206 && w.Body.String() != c.want {
			t.Errorf("%s: %d %q, want %d %q", name, w.Code, w.Body, c.status, c.want)
		}
	}
	end(t, b.records, 1, func(fleet.Certname) (int, string) { return 0, "" })
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, httpapi.JobFilePath+digest+"/x.sh", nil)
	route.ServeHTTP(w, r.WithContext(fleet.WithActor(r.Context(), node("web-1"))))
	if w.Code != http.StatusOK {
		t.Errorf("a moment after the run: %d %s", w.Code, w.Body)
	}
}

// An upload that breaks off, or is too long, is the sender's mistake.
func TestUploadsThatBreakOff(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	r := httptest.NewRequest(http.MethodPost, api.Prefix+"/job-files", &brokenBody{})
	r.Header.Set("Authorization", "Bearer "+secret("commander"))
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "the upload broke off") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

type brokenBody struct{ read bool }

func (b *brokenBody) Read(p []byte) (int, error) {
	if b.read {
		return 0, fmt.Errorf("connection reset")
	}
	b.read = true
	return copy(p, "#!/bin"), nil
}
