package orchestrator_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/jobtest"
)

// second is a time of clients that read no fractions.
var second = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)

// A task from its order to its results, as the clients ask.
func TestATask(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fleet.Behave("web-1", jobtest.Manner{Stdout: `{"status":"installed"}`, Takes: 50 * time.Millisecond})
	b.fleet.Behave("web-2", jobtest.Manner{ExitCode: 3, Stdout: "plain words\n", Takes: 50 * time.Millisecond})
	id := b.started("task", `{"task":"pack","environment":"production","noop":null,"params":{"name":"x","password":"hunter2"},
		"scope":{"nodes":["web-2","web-1","db-1"]},"description":"try it","userdata":{"ticket":7},"concurrency":5,"timeout":60}`)
	j := b.over(id)
	for key, want := range map[string]any{
		"id": "https://tutti.example:8143/orchestrator/v1/jobs/" + id, "state": "failed", "type": "task", "command": "task",
		"description": "try it", "node_count": 3.0,
	} {
		if j[key] != want {
			t.Errorf("%s is %v, want %v", key, j[key], want)
		}
	}
	wantJSON(t, "node states", `{"finished":1,"failed":1,"errored":1}`, j["node_states"])
	wantJSON(t, "userdata", `{"ticket":7}`, j["userdata"])
	wantJSON(t, "options",
		`{"task":"pack","params":{"name":"x"},"sensitive":["password"],"noop":false,"transport":"pcp","scope":{"nodes":["web-2","web-1","db-1"]},
		"description":"try it","concurrency":5,"timeout":60,"environment":"production","target":""}`, j["options"])
	for _, link := range []string{"nodes", "report", "events"} {
		if got := at[string](t, j, link, "id"); got != "https://tutti.example:8143/orchestrator/v1/jobs/"+id+"/"+link {
			t.Errorf("%s are at %s", link, got)
		}
	}
	var states []string
	for _, stage := range at[[]any](t, j, "status") {
		states = append(states, at[string](t, stage, "state"))
		if !second.MatchString(at[string](t, stage, "enter_time")) {
			t.Errorf("stage %v", stage)
		}
	}
	if !slices.Equal(states, []string{"ready", "running", "failed"}) || !second.MatchString(at[string](t, j, "timestamp")) {
		t.Errorf("states %v, changed at %v", states, j["timestamp"])
	}

	nodes := b.do("GET", "/jobs/"+id+"/nodes", "", 200)
	results := map[string]any{}
	for _, item := range at[[]any](t, nodes, "items") {
		results[at[string](t, item, "name")+" "+at[string](t, item, "state")] = at[map[string]any](t, item, "result") // never null
	}
	wantJSON(t, "web-1", `{"status":"installed"}`, results["web-1 finished"])
	if at[string](t, results["web-2 failed"], "_output") != "plain words\n" || at[float64](t, results["web-2 failed"], "_error", "details", "exit_code") != 3 {
		t.Errorf("web-2: %v", results["web-2 failed"])
	}
	if at[string](t, results["db-1 errored"], "_error", "kind") != "puppetlabs.orchestrator/not-connected" || at[string](t, results["db-1 errored"], "msg") == "" {
		t.Errorf("db-1: %v", results["db-1 errored"])
	}
	some := b.do("GET", "/jobs/"+id+"/nodes?limit=1&offset=1&order_by=name&order=desc", "", 200)
	if at[string](t, some, "items", 0, "name") != "web-1" || len(at[[]any](t, some, "items")) != 1 {
		t.Errorf("a page of nodes: %v", some)
	}
	failed := b.do("GET", "/jobs/"+id+"/nodes?state=failed", "", 200)
	if len(at[[]any](t, failed, "items")) != 1 {
		t.Errorf("failed nodes: %v", failed)
	}
	report := b.do("GET", "/jobs/"+id+"/report", "", 200)
	if len(at[[]any](t, report, "items")) != 3 || len(at[[]any](t, report, "report")) != 3 {
		t.Errorf("the report has not both keys: %v", report)
	}
	b.wantEvents(id)
}

// wantEvents holds the events of a job of which a node finished, one failed, and one was not connected.
func (b *bench) wantEvents(id string) {
	b.t.Helper()
	answer := b.do("GET", "/jobs/"+id+"/events", "", 200)
	items := at[[]any](b.t, answer, "items")
	kinds, last := map[string]int{}, int64(0)
	for _, item := range items {
		kinds[at[string](b.t, item, "type")]++
		var number int64
		if _, err := fmt.Sscan(at[string](b.t, item, "id"), &number); err != nil || number <= last || !second.MatchString(at[string](b.t, item, "timestamp")) {
			b.t.Errorf("event %v behind %d, %v", item, last, err)
		}
		last = number
	}
	wantJSON(b.t, "events", `{"node_running":2,"node_finished":1,"node_failed":1,"node_errored":1,"job_finished":1}`, kinds)
	if at[string](b.t, items[len(items)-1], "type") != "job_finished" {
		b.t.Errorf("the last event is %v", items[len(items)-1])
	}
	next := at[string](b.t, answer, "next-events", "event")
	if next != fmt.Sprint(last+1) || at[string](b.t, answer, "next-events", "id") != "https://tutti.example:8143/orchestrator/v1/jobs/"+id+"/events?start="+next {
		b.t.Errorf("next %v behind %d", answer["next-events"], last)
	}
	rest := b.do("GET", "/jobs/"+id+"/events?start="+fmt.Sprint(last), "", 200)
	if len(at[[]any](b.t, rest, "items")) != 1 {
		b.t.Errorf("from the last on: %v", rest)
	}
	none := b.do("GET", "/jobs/"+id+"/events?start="+next, "", 200)
	if len(at[[]any](b.t, none, "items")) != 0 || at[string](b.t, none, "next-events", "event") != next {
		b.t.Errorf("behind the last: %v", none)
	}
}

func wantJSON(t *testing.T, what, want string, got any) {
	t.Helper()
	var wanted any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	x, _ := json.Marshal(wanted) //nolint:errchkjson // it was JSON
	y, err := json.Marshal(got)
	if err != nil || string(x) != string(y) {
		t.Errorf("%s: %s, want %s", what, y, x)
	}
}

// A deploy takes each of the four scopes, and every flag reaches the node.
func TestADeploy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for scope, nodes := range map[string]float64{
		`"scope":{"nodes":["web-1","web-1"]}`: 1, `"scope":{"query":"nodes { }"}`: 2, `"scope":{"query":["from","nodes"]}`: 2,
		`"scope":{"node_group":"` + groupID + `"}`: 1,
		`"scope":{"application":"Shop"}`:           2, `"scope":{},"target":"Shop[eu]"`: 2, `"target":""`: 3, `"scope":{"whole_environment":true}`: 3,
	} {
		id := b.started("deploy", `{"environment":"production",`+scope+`}`)
		if j := b.over(id); j["node_count"] != nodes || j["type"] != "deploy" || at[string](t, j, "environment", "name") != "production" {
			t.Errorf("%s: %v nodes, %v", scope, j["node_count"], j["type"])
		}
	}
	b.started("deploy", `{"environment":"","enforce_environment":false,"scope":{"nodes":["web-1"]}}`)
	before := len(b.fleet.Requests("web-2"))
	id := b.started("deploy",
		`{"environment":"production","scope":{"nodes":["web-2"]},"noop":true,"debug":true,"trace":true,"evaltrace":true,"tags":"a,b","skip_tags":["c"],
		"ordering":"random","filetimeout":1,"http_connect_timeout":2,"http_keepalive_timeout":3,"http_read_timeout":4,"use_cached_catalog":false,"usecacheonfailure":true}`)
	j := b.over(id)
	var params struct{ Flags []string }
	for _, r := range b.fleet.Requests("web-2")[before:] {
		if r.Module == "pxp-module-puppet" {
			if err := json.Unmarshal(r.Params, &params); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := " " + strings.Join(params.Flags, " ") + " "
	for _, flag := range []string{
		"--noop", "--debug", "--trace", "--evaltrace", "--tags a,b", "--skip_tags c", "--ordering random", "--filetimeout 1", "--http_connect_timeout 2",
		"--http_keepalive_timeout 3", "--http_read_timeout 4", "--no-use_cached_catalog", "--usecacheonfailure", "--environment production",
	} {
		if !strings.Contains(all, " "+flag+" ") {
			t.Errorf("%s is not among %s", flag, all)
		}
	}
	wantJSON(t, "options",
		`{"noop":true,"no_noop":false,"debug":true,"trace":true,"evaltrace":true,"tags":"a,b","skip_tags":"c","ordering":"random","filetimeout":1,
		"http_connect_timeout":2,"http_keepalive_timeout":3,"http_read_timeout":4,"use_cached_catalog":false,"usecacheonfailure":true,"enforce_environment":true,
		"environment":"production","scope":{"nodes":["web-2"]},"target":"","description":"","concurrency":null,"timeout":3600}`, j["options"])
}

// What is started elsewhere is seen here, and what is started here is the same job elsewhere; either side can stop it.
func TestOneModel(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fleet.Behave("web-1", jobtest.Manner{Silent: true})
	elsewhere, err := b.jobs.Create(t.Context(), actors["admin"], job.Spec{
		Kind: job.Command, Command: &job.CommandSpec{Command: "uptime"}, Targets: job.Targets{Nodes: []fleet.Certname{"web-1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	shown := b.do("GET", fmt.Sprintf("/jobs/%d", elsewhere.ID), "", 200)
	if shown["type"] != "command" || at[string](t, shown, "options", "command") != "uptime" {
		t.Errorf("%v", shown)
	}
	stopped := b.do("POST", "/command/stop", fmt.Sprintf(`{"job":%d,"force":true}`, elsewhere.ID), 202)
	if at[string](t, stopped, "job", "name") != fmt.Sprint(elsewhere.ID) || len(at[map[string]any](t, stopped, "job", "nodes")) == 0 {
		t.Errorf("%v", stopped)
	}
	b.do("POST", "/command/stop", fmt.Sprintf(`{"job":"%d"}`, elsewhere.ID), 202) // as often as somebody likes
	known, err := b.jobs.Job(t.Context(), elsewhere.ID)
	if err != nil || !known.Killed {
		t.Errorf("the job was not stopped: %v, %v", known.Status, err)
	}
	var number int64
	if _, err := fmt.Sscan(b.started("task", `{"task":"pack::free","params":{},"scope":{"nodes":["web-2"]}}`), &number); err != nil {
		t.Fatal(err)
	}
	here, err := b.jobs.Job(t.Context(), number)
	if err != nil || here.Spec.Task.Name != "pack::free" || here.Actor != "admin" {
		t.Errorf("%v, %v", here.Spec.Task, err)
	}
	// Who may run tasks on some nodes gets those, and sees their own jobs only.
	w := b.call("web", "POST", "/command/task", `{"task":"pack::free","params":{},"scope":{"nodes":["web-2","db-1"]}}`)
	if w.Code != 202 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	var list struct{ Items []struct{ Node_count int } } //nolint:revive // as clients name it
	if err := json.Unmarshal(b.call("web", "GET", "/jobs", "").Body.Bytes(), &list); err != nil || len(list.Items) != 1 || list.Items[0].Node_count != 1 {
		t.Errorf("their jobs: %v, %v", list, err)
	}
	b.wantProblem(t, "somebody else's", b.call("web", "GET", fmt.Sprintf("/jobs/%d", number), ""), 403, prefix+"not-permitted")
	b.wantProblem(t, "somebody else's events", b.call("web", "GET", fmt.Sprintf("/jobs/%d/events", number), ""), 403, prefix+"not-permitted")
}

func TestPagesOfJobs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 5 {
		command, body := "deploy", `{"environment":"production","scope":{"nodes":["web-1"]}}`
		if i%2 == 1 {
			command, body = "task", `{"task":"pack::free","params":{},"scope":{"nodes":["web-1"]}}`
		}
		b.over(b.started(command, body))
	}
	for query, want := range map[string]string{
		"": "5 4 3 2 1", "?limit=2": "5 4", "?limit=2&offset=2": "3 2", "?offset=99": "", "?limit=2000000000": "5 4 3 2 1", "?order=asc": "1 2 3 4 5",
		"?order_by=name":                 "1 2 3 4 5",
		"?order_by=timestamp&order=desc": "5 4 3 2 1", "?type=task": "4 2", "?type=deploy": "5 3 1", "?type=plan_task": "", "?task=FREE": "4 2", "?task=%25": "",
		"?max_finish_timestamp=2020-01-01T00:00:00Z": "", "?min_finish_timestamp=2020-01-01": "5 4 3 2 1",
	} {
		answer := b.do("GET", "/jobs"+query, "", 200)
		var names []string
		for _, item := range at[[]any](t, answer, "items") {
			names = append(names, at[string](t, item, "name"))
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	wantJSON(t, "pagination", `{"limit":2,"offset":1,"order":"desc","order_by":"name","total":5,"type":""}`,
		b.do("GET", "/jobs?limit=2&offset=1", "", 200)["pagination"])
}

// A plan that a client runs: Bolt's conversation, with the plan that is over.
func TestAPlanOfAClient(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	plan := at[string](t,
		b.do("POST", "/command/plan_start", `{"plan_name":"my::plan","params":{"a":1,"secret":"x"},"sensitive":["secret"],"description":"d"}`, 202), "name")
	task := func(plan string) string {
		return `{"task":"pack::free","params":{},"noop":null,"environment":"production","scope":{"nodes":["web-1"]},"plan_job":"` + plan + `"}`
	}
	id := b.started("plan_task", task(plan))
	if j := b.over(id); j["type"] != "plan_task" || at[string](t, j, "options", "plan_job") != plan {
		t.Errorf("%v", j)
	}
	b.do("POST", "/command/plan_finish", `{"plan_job":"`+plan+`","result":"","status":"success"}`, 202)
	b.do("POST", "/command/plan_finish", `{"plan_job":`+plan+`,"result":[1],"status":"failure"}`, 202) // the first word counts
	b.wantProblem(t, "a plan that is over", b.call("admin", "POST", "/command/plan_task", task(plan)), 400, prefix+"plan-already-finished")
	shown := b.do("GET", "/plan_jobs/"+plan, "", 200)
	if shown["state"] != "success" || len(at[[]any](t, shown, "status", id)) != 3 {
		t.Errorf("%v", shown)
	}
	wantJSON(t, "parameters", `{"a":1}`, at[any](t, shown, "options", "parameters"))
	events := b.do("GET", "/plan_jobs/"+plan+"/events", "", 200)
	if at[string](t, events, "items", 0, "details", "job-id") != id || at[string](t, events, "items", 1, "type") != "plan_finished" ||
		at[string](t, events, "next-events", "event") != "3" {
		t.Errorf("%v", events)
	}
	if one := b.do("GET", "/plan_jobs/"+plan+"/event/2", "", 200); one["type"] != "plan_finished" {
		t.Errorf("%v", one)
	}
	b.wantProblem(t, "an event too many", b.call("admin", "GET", "/plan_jobs/"+plan+"/event/3", ""), 404, prefix+"mismatched-job-event-id")
	list := b.do("GET", "/plan_jobs?results=exclude", "", 200)
	if item := at[map[string]any](t, list, "items", 0); item["name"] != plan || item["result"] != nil {
		t.Errorf("%v", item)
	}
	other := at[string](t, b.do("POST", "/command/plan_start", `{}`, 202), "name")
	b.do("POST", "/command/stop_plan", `{"plan_job":"`+other+`"}`, 202)
	b.wantProblem(t, "a plan that was stopped", b.call("admin", "POST", "/command/plan_task", task(other)), 400, prefix+"plan-already-finished")
	b.wantProblem(t, "somebody else's plan", b.call("web", "POST", "/command/plan_task", task(plan)), 403, prefix+"not-permitted")
}

// An order for later is kept, shown, changed, given at its time as its owner, and disabled.
func TestScheduledJobs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	soon := time.Now().Add(time.Second).UTC().Format(time.RFC3339Nano)
	link := b.do("POST", "/command/schedule_task", `{`+goodTask+`,"scope":{"nodes":["web-1"]},"scheduled_time":"`+soon+`","userdata":{"x":1}}`, 202)
	name := at[string](t, link, "scheduled_job", "name")
	if at[string](t, link, "scheduled_job", "id") != "https://tutti.example:8143/orchestrator/v1/scheduled_jobs/"+name {
		t.Errorf("%v", link)
	}
	later := `{"type":"task","environment":"production","description":"d","schedule":{"start_time":"2030-01-01T00:00:00Z","interval":{"units":"hours","value":2}},
		"input":{"name":"pack","parameters":{"name":{"value":"x"},"password":{"value":"hunter2"}},"scope":{"nodes":["web-1"]}}}`
	second := at[string](t, b.do("POST", "/scheduled_jobs/environment_jobs", later, 202), "scheduled_job", "name")
	path := "/scheduled_jobs/environment_jobs/" + second
	shown := b.do("GET", path, "", 200)
	wantJSON(t, "schedule", `{"start_time":"2030-01-01T00:00:00Z","interval":{"units":"seconds","value":7200}}`, shown["schedule"])
	wantJSON(t, "next run", `{"time":"2030-01-01T00:00:00Z"}`, shown["next_run"])
	wantJSON(t, "sensitive", `["password"]`, at[any](t, shown, "input", "sensitive_parameters"))
	wantJSON(t, "parameters", `{"name":{"value":"x"}}`, at[any](t, shown, "input", "parameters"))
	if text, _ := json.Marshal(shown); strings.Contains(string(text), "hunter2") { //nolint:errchkjson // it was JSON
		t.Error("the secret is shown")
	}
	b.wantProblem(t, "a change that forgets the secret", b.call("admin", "PUT", path, `{"description":"e"}`), 400, prefix+"validation-error")
	b.do("PUT", path, `{"schedule":{"start_time":"2031-01-01T00:00:00Z","interval":null}}`, 202)
	if shown := b.do("GET", path, "", 200); at[string](t, shown, "next_run", "time") != "2031-01-01T00:00:00Z" {
		t.Errorf("%v", shown)
	}
	b.do("PUT", path, `{"enabled":false}`, 202)
	b.wantProblem(t, "a change of what is disabled", b.call("admin", "PUT", path, `{"enabled":true}`), 400, prefix+"disabled-scheduled-job")
	deploy := at[string](t, b.do("POST", "/scheduled_jobs/environment_jobs", `{"type":"deploy","environment":"production","input":{"noop":true},
		"schedule":{"start_time":"2030-01-01T00:00:00Z","interval":null}}`, 202), "scheduled_job", "name")
	if w := b.call("admin", "DELETE", "/scheduled_jobs/"+deploy, ""); w.Code != 204 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for range 2000 {
		if j := b.do("GET", "/scheduled_jobs/environment_jobs/"+name, "", 200); j["last_run"] != nil {
			ran := at[string](t, j, "last_run", "job", "name")
			if run := b.over(ran); run["state"] != "finished" || at[string](t, run, "options", "scheduled-job-id") != name ||
				at[string](t, run, "owner", "login") != "admin" {
				t.Errorf("%v", run)
			}
			break
		}
		<-time.After(5 * time.Millisecond)
	}
	if list := b.do("GET", "/scheduled_jobs/environment_jobs?type=task", "", 200); at[float64](t, list, "pagination", "total") != 1 {
		t.Errorf("what is not disabled: %v", list)
	}
}

// What is there to be asked: nodes, tasks, environments, applications, sets, the root.
func TestCollections(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	wantJSON(t, "who is connected", `[{"name":"web-1","connected":true,"broker":"pcp://tutti.example/server","timestamp":"2026-11-26T20:00:00.005Z"},
		{"name":"web-2","connected":true,"broker":"pcp://tutti.example/server","timestamp":"2026-11-26T20:00:00.005Z"}]`, b.do("GET", "/inventory", "", 200)["items"])
	asked := b.do("POST", "/inventory", `{"nodes":["web-1","nobody.example","db-1"]}`, 200)
	wantJSON(t, "who is not", `{"connected":false,"name":"nobody.example"}`, at[any](t, asked, "items", 1))
	wantJSON(t, "one", `{"connected":false,"name":"db-1"}`, b.do("GET", "/inventory/db-1", "", 200))
	wantJSON(t, "tasks", `{"environment":{"name":"production","code_id":null},"items":[
		{"id":"https://tutti.example:8143/orchestrator/v1/tasks/pack/init","name":"pack","permitted":true},
		{"id":"https://tutti.example:8143/orchestrator/v1/tasks/pack/free","name":"pack::free","permitted":true}]}`, b.do("GET", "/tasks", "", 200))
	task := b.do("GET", "/tasks/pack/init?environment=production", "", 200)
	if task["name"] != "pack" || at[string](t, task, "metadata", "parameters", "name", "type") != "String[1]" ||
		at[string](t, task, "files", 0, "uri", "path") != "/puppet/v3/file_content/tasks/pack/init.sh" {
		t.Errorf("%v", task)
	}
	if got := at[[]any](t, b.do("GET", "/plans", "", 200), "items"); len(got) != 0 {
		t.Errorf("plans %v", got)
	}
	if got := b.do("GET", "/environments", "", 200); at[string](t, got, "items", 1, "name") != "production" {
		t.Errorf("%v", got)
	}
	wantJSON(t, "instances", `[{"type":"Shop","title":"eu","components":[{"type":"Shop::Db","title":"eu","node":"db-1","produces":["Sql[eu]"],"consumes":[]}]}]`,
		b.do("GET", "/environments/production/instances", "", 200)["items"])
	if got := b.do("GET", "/environments/production/applications", "", 200); at[string](t, got, "items", 0, "name") != "Shop" {
		t.Errorf("%v", got)
	}
	made := b.do("POST", "/command/task_target", `{"display_name":"web","tasks":["pack"],"nodes":["web-1"],"node_groups":[]}`, 200)
	if id := at[string](t, made, "task_target", "id"); id != "https://tutti.example:8143/orchestrator/v1/scopes/task_targets/1" {
		t.Errorf("%s", id)
	}
	if got := b.do("GET", "/scopes/task_targets/1", "", 200); got["display_name"] != "web" ||
		len(at[[]any](t, b.do("GET", "/scopes/task_targets", "", 200), "items")) != 1 {
		t.Errorf("%v", got)
	}
	if got := b.do("GET", "/usage", "", 200); at[float64](t, got, "items", 0, "total_nodes") != 3 ||
		len(at[[]any](t, b.do("GET", "/usage?end_date=2020-01-01", "", 200), "items")) != 0 {
		t.Errorf("%v", got)
	}
	if got := b.do("GET", "", "", 200); at[string](t, got, "commands", 0, "id") != "https://tutti.example:8143/orchestrator/v1/command/deploy" {
		t.Errorf("%v", got)
	}
	if got := b.do("GET", "/status", "", 200); got["state"] != "running" {
		t.Errorf("%v", got)
	}
}

// Many who ask for events without a pause share what is read, and are answered at the pace of the server.
func TestEventsWithoutAPause(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fleet.Behave("web-1", jobtest.Manner{Takes: 3 * time.Second})
	id := b.started("task", `{"task":"pack::free","params":{},"scope":{"nodes":["web-1"]}}`)
	begun := time.Now()
	var clients sync.WaitGroup
	var mu sync.Mutex
	answers := 0
	for range 20 {
		clients.Go(func() {
			for over := false; !over; {
				w := b.call("admin", "GET", "/jobs/"+id+"/events", "")
				over = w.Code != 200 || strings.Contains(w.Body.String(), `"job_finished"`)
				mu.Lock()
				answers++
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	if most := 20 * (3 + int(time.Since(begun)/time.Second)); answers > most {
		t.Errorf("%d answers in %s, want at most %d", answers, time.Since(begun), most)
	}
}

// The name of a server that is no name is not put into links.
func TestLinksHaveNoStrangeNames(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for given, want := range map[string]string{
		"a.example": "https://a.example/", "[::1]:8143": "https://[::1]:8143/", `x"/><script>`: "https://localhost/", "": "https://localhost/",
	} {
		r := httptest.NewRequest(http.MethodGet, "/orchestrator/v1", nil)
		r.Host = given
		r.Header.Set("X-Authentication", "admin")
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		if !strings.Contains(w.Body.String(), `"id":"`+want+"orchestrator/v1/jobs") {
			t.Errorf("%q: %s", given, w.Body)
		}
	}
}
