package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
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
		"puppet": {
			"/jobs/puppet", `"environment":"production","noop":true,"tags":["ntp"],"debug":true`, "", `{"noop":true,"tags":["ntp"],"debug":true}`,
		},
		"puppet that changes": {"/jobs/puppet", `"noop":false`, "", `{"no_noop":true}`},
		"task": {
			"/jobs/task", `"task":"db::passwd","params":{"user":"app"},"texts":{"password":"s3cret","tries":"7"}`, "db::passwd",
			`{"task":"db::passwd","parameters":{"password":"(hidden)","salt":"(hidden)","tries":7,"user":"app"}}`,
		},
		"task without metadata": {
			"/jobs/task", `"task":"db::free","texts":{"a":"1","b":"true","c":"x","d":"01"}`, "db::free",
			`{"task":"db::free","parameters":{"a":1,"b":true,"c":"x","d":"01"}}`,
		},
		"command": {"/jobs/command", `"command":"uptime"`, "uptime", `{"command":"uptime"}`},
		"script": {
			"/jobs/script", `"name":"mend.sh","digest":"` + digest + `","arguments":["-x"]`, "mend.sh",
			`{"script":{"name":"mend.sh","digest":"` + digest + `","bytes":10},"arguments":["-x"]}`,
		},
		"file": {
			"/jobs/file", `"files":[{"kind":"directory","destination":"/srv/x"},{"destination":"/srv/x/y","digest":"` + digest + `"}]`, "/srv/x/y and 1 more",
			`{"entries":[{"kind":"directory","destination":"/srv/x"},{"kind":"file","destination":"/srv/x/y","file":{"name":"y","digest":"` +
				digest + `","bytes":10}}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			status, started, problem := b.order(t, "admin", c.path,
				`{"targets":{"nodes":["web-2","web-1"]},"concurrency":1,"max_failures":0,"timeout":60,"wait_offline":5,"description":"why",`+c.body+`}`)
			if status != http.StatusOK {
				t.Fatalf("%d %s", status, problem)
			}
			j := started.Job
			if j.Title != c.title || string(j.Order) != c.order {
				t.Errorf("title %q, order %s; want %q, %s", j.Title, j.Order, c.title, c.order)
			}
			if j.State != "queued" || j.Nodes != 2 || j.Concurrency != 1 || *j.MaxFailures != 0 || j.Timeout != 60 || j.WaitOffline != 5 ||
				j.Description != "why" || j.Actor != "admin" {
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
	_, started, problem := b.order(t, "admin", "/jobs/task",
		`{"targets":{"all":true},"task":"db::passwd","params":{"user":"app","password":"s3cret"},"noop":true}`)
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
	if strings.Contains(string(text), "s3cret") || !j.Spec.Task.Noop || j.Spec.Task.Metadata.InputMethod != "stdin" || len(j.Spec.Task.Files) != 2 ||
		j.Spec.Task.Version != "version-1" {
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
		"unknown node":         {"puppet", `{"targets":{"nodes":["web-9"]}}`, 404, "no node is called web-9; see"},
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
		"unknown environment":  {"puppet", `{` + one + `,"environment":"nowhere"}`, 404, "environment nowhere has no code"},
		"bad tag":              {"puppet", `{` + one + `,"tags":["--x"]}`, 400, "tags"},
		"no task":              {"task", `{` + one + `}`, 400, "a task is called"},
		"unknown task":         {"task", `{` + one + `,"task":"nothing"}`, 404, "there is no task nothing"},
		"task elsewhere":       {"task", `{` + one + `,"task":"db::free","environment":"nowhere"}`, 404, "environment nowhere has no code"},
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

// Whoever may not touch some of the nodes is told so, with the names that they may see, and nothing starts, unless
// those are to be left out.
func TestDeniedNodes(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	status, plan, _ := b.order(t, "web team", "/jobs/command", `{"targets":{"all":true},"command":"id","dry_run":true}`)
	want := api.JobPlan{
		Nodes: 2, Offline: []string{"web-2"}, NeverConnected: []string{"web-2"}, DeniedUnseen: 1, Digest: string(fleet.DigestOf([]byte("web-1\nweb-2"))),
		Targets: []api.JobTarget{
			{Node: "web-1", Connected: &api.Connected{Server: "tutti.test", Since: time.Date(2026, 11, 21, 19, 0, 0, 0, time.UTC), Agent: "agent/1", Protocol: "PCP 2"}},
			{Node: "web-2"},
		},
	}
	if diff := cmp.Diff(want, plan.Plan); diff != "" || status != http.StatusOK || plan.Job != nil {
		t.Errorf("%d (-want +got):\n%s", status, diff)
	}
	status, _, problem := b.order(t, "web team", "/jobs/command", `{"targets":{"all":true},"command":"id"}`)
	for _, word := range []string{"command:run", "1 of 3 nodes. Nothing was started", "Ask an administrator"} {
		if status != http.StatusForbidden || !strings.Contains(problem, word) {
			t.Errorf("%d %q, want %q", status, problem, word)
		}
	}
	for _, word := range []string{"db-1", "commander", "Ask admin "} { // the web team sees neither other nodes, nor roles, nor people
		if strings.Contains(problem, word) {
			t.Errorf("%q names %q", problem, word)
		}
	}
	entries, err := b.store.Acts(t.Context(), rbac.EntryFilter{Limit: 10})
	check(t, err)
	if len(entries) != 1 || entries[0].Outcome != rbac.Denied || entries[0].Object != "command id on all nodes" || entries[0].Operation != "job.command" {
		t.Errorf("audit log: %+v", entries)
	}
	status, started, problem := b.order(t, "web team", "/jobs/command", `{"targets":{"all":true},"command":"id","skip_denied":true}`)
	if status != http.StatusOK || started.Job.Nodes != 2 || len(started.Plan.Denied) > 0 || started.Plan.DeniedUnseen != 1 {
		t.Errorf("%d %s %+v", status, problem, started)
	}
	if status, _, problem = b.order(t, "web team", "/jobs/command",
		`{"targets":{"nodes":["db-1"]},"command":"id","skip_denied":true}`); status != http.StatusForbidden {
		t.Errorf("nobody is left: %d %s", status, problem)
	}
}

// Of the nodes of a limit, those that are denied are left out; no others take their place, for nobody has seen them in a plan.
func TestWhoIsLeftOutIsNotReplaced(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	order := `{"targets":{"all":true,"limit":"2"},"command":"id","skip_denied":true%s}`
	_, plan, _ := b.order(t, "web team", "/jobs/command", fmt.Sprintf(order, `,"dry_run":true`))
	status, started, problem := b.order(t, "web team", "/jobs/command", fmt.Sprintf(order, `,"expect":"`+plan.Plan.Digest+`"`))
	if status != http.StatusOK || plan.Plan.Nodes != 1 || started.Job.Nodes != 1 || started.Job.Targets.Limit != "2" {
		t.Errorf("%d %s: %d nodes are planned, %+v", status, problem, plan.Plan.Nodes, started.Job)
	}
}

func TestWhatWasPlannedIsWhatStarts(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	_, plan, _ := b.order(t, "admin", "/jobs/puppet", `{"targets":{"nodes":["web-1"]},"dry_run":true}`)
	order := `{"targets":{"nodes":["web-1"%s]},"expect":"` + plan.Plan.Digest + `"}`
	if status, _, problem := b.order(t, "admin", "/jobs/puppet", fmt.Sprintf(order, `,"db-1"`)); status != http.StatusConflict ||
		!strings.Contains(problem, "not those of the plan") {
		t.Errorf("%d %s", status, problem)
	}
	if status, _, problem := b.order(t, "admin", "/jobs/puppet", fmt.Sprintf(order, "")); status != http.StatusOK {
		t.Errorf("%d %s", status, problem)
	}
}
