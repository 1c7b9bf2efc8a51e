package orchestrator_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
)

const prefix = "puppetlabs.orchestrator/"

// wrong is a request that is refused, and how.
type wrong struct {
	name, token, method, path, body string
	status                          int
	kind                            string
}

const goodTask = `"task":"pack","params":{"name":"x"}`

func wrongOrders() []wrong {
	task := func(name, body string, status int, kind string) wrong {
		return wrong{"task: " + name, "admin", "POST", "/command/task", body, status, prefix + kind}
	}
	deploy := func(name, body string, status int, kind string) wrong {
		return wrong{"deploy: " + name, "admin", "POST", "/command/deploy", body, status, prefix + kind}
	}
	return []wrong{
		task("no body", ``, 400, "validation-error"),
		task("no JSON", `{"task":`, 400, "validation-error"),
		task("a list", `[]`, 400, "validation-error"),
		task("field of another type", `{"task":5}`, 400, "validation-error"),
		task("no task", `{"params":{},"scope":{"nodes":["web-1"]}}`, 400, "validation-error"),
		task("no params", `{"task":"pack","scope":{"nodes":["web-1"]}}`, 400, "validation-error"),
		task("params of another type", `{"task":"pack","params":[],"scope":{"nodes":["web-1"]}}`, 400, "validation-error"),
		task("a parameter that is missing", `{"task":"pack","params":{},"scope":{"nodes":["web-1"]}}`, 400, "validation-error"),
		task("a parameter too many", `{"task":"pack","params":{"name":"x","y":1},"scope":{"nodes":["web-1"]}}`, 400, "validation-error"),
		task("a reserved parameter", `{"task":"pack","params":{"name":"x","_noop":true},"scope":{"nodes":["web-1"]}}`, 400, "validation-error"),
		task("no scope", `{`+goodTask+`}`, 400, "validation-error"),
		task("empty scope", `{`+goodTask+`,"scope":{}}`, 400, "validation-error"),
		task("scope of nulls", `{`+goodTask+`,"scope":{"nodes":null}}`, 400, "validation-error"),
		task("scope that is no object", `{`+goodTask+`,"scope":"all"}`, 400, "validation-error"),
		task("all four keys", `{`+goodTask+`,"scope":{"nodes":["web-1"],"query":"q","application":"Shop","node_group":"`+groupID+`"}}`, 400, "validation-error"),
		task("two keys", `{`+goodTask+`,"scope":{"nodes":["web-1"],"query":"q"}}`, 400, "validation-error"),
		task("unknown key", `{`+goodTask+`,"scope":{"everything":true}}`, 400, "validation-error"),
		task("application", `{`+goodTask+`,"scope":{"application":"Shop"}}`, 400, "validation-error"),
		task("no nodes", `{`+goodTask+`,"scope":{"nodes":[]}}`, 400, "empty-target"),
		task("no node's name", `{`+goodTask+`,"scope":{"nodes":["../etc"]}}`, 400, "validation-error"),
		task("nodes of another type", `{`+goodTask+`,"scope":{"nodes":"web-1"}}`, 400, "validation-error"),
		task("wrong query", `{`+goodTask+`,"scope":{"query":"nonsense"}}`, 400, "query-error"),
		task("query of another type", `{`+goodTask+`,"scope":{"query":5}}`, 400, "query-error"),
		task("query for nobody", `{`+goodTask+`,"scope":{"query":"none"}}`, 400, "empty-target"),
		task("unknown group", `{`+goodTask+`,"scope":{"node_group":"22222222-2222-4222-8222-222222222222"}}`, 400, "empty-target"),
		task("unknown environment", `{`+goodTask+`,"environment":"nowhere","scope":{"nodes":["web-1"]}}`, 404, "unknown-environment"),
		task("environment that cannot be", `{`+goodTask+`,"environment":"../x","scope":{"nodes":["web-1"]}}`, 400, "validation-error"),
		task("unknown task", `{"task":"pack::other","params":{},"scope":{"nodes":["web-1"]}}`, 404, "unknown-task"),
		task("task that cannot be", `{"task":"../../x","params":{},"scope":{"nodes":["web-1"]}}`, 400, "validation-error"),
		task("noop that it does not know", `{"task":"pack::free","params":{},"noop":true,"scope":{"nodes":["web-1"]}}`, 400, "validation-error"),
		task("targets without an agent", `{`+goodTask+`,"targets":[{"hostnames":["x"]}],"scope":{"nodes":["web-1"]}}`, 400, "validation-error"),
		task("negative timeout", `{`+goodTask+`,"timeout":-1,"scope":{"nodes":["web-1"]}}`, 400, "validation-error"),
		task("no concurrency", `{`+goodTask+`,"concurrency":0,"scope":{"nodes":["web-1"]}}`, 400, "validation-error"),
		task("userdata that is no object", `{`+goodTask+`,"userdata":[],"scope":{"nodes":["web-1"]}}`, 400, "validation-error"),
		task("userdata that is large", `{`+goodTask+`,"userdata":{"x":"`+strings.Repeat("x", 70_000)+`"},"scope":{"nodes":["web-1"]}}`, 400, "validation-error"),
		task("33 MB", `{`+goodTask+`,"userdata":{"x":"`+strings.Repeat("x", 33<<20)+`"}}`, 413, "payload-too-large"),

		deploy("10 MB", `{"environment":"production","userdata":{"x":"`+strings.Repeat("x", 10<<20)+`"}}`, 413, "payload-too-large"),
		deploy("no environment", `{"scope":{"nodes":["web-1"]}}`, 400, "validation-error"),
		deploy("none, enforced", `{"environment":"","scope":{"nodes":["web-1"]}}`, 400, "validation-error"),
		deploy("none for all", `{"environment":"","enforce_environment":false}`, 400, "validation-error"),
		deploy("unknown environment", `{"environment":"nowhere","scope":{"nodes":["web-1"]}}`, 404, "unknown-environment"),
		deploy("environment that cannot be", `{"environment":"a b","scope":{"nodes":["web-1"]}}`, 400, "validation-error"),
		deploy("environment without nodes", `{"environment":"empty"}`, 400, "empty-environment"),
		deploy("noop and no_noop", `{"environment":"production","noop":true,"no_noop":true,"scope":{"nodes":["web-1"]}}`, 400, "validation-error"),
		deploy("all four keys", `{"environment":"production","scope":{"nodes":["web-1"],"query":"q","application":"Shop","node_group":"g"}}`,
			400, "validation-error"),
		deploy("unknown application", `{"environment":"production","target":"Blog"}`, 400, "empty-target"),
		deploy("tag that cannot be", `{"environment":"production","tags":"--x","scope":{"nodes":["web-1"]}}`, 400, "validation-error"),
		deploy("order that cannot be", `{"environment":"production","ordering":"none","scope":{"nodes":["web-1"]}}`, 400, "validation-error"),
		deploy("negative time", `{"environment":"production","filetimeout":-5,"scope":{"nodes":["web-1"]}}`, 400, "validation-error"),
	}
}

func wrongOthers() []wrong {
	get := func(path string, status int, kind string) wrong {
		return wrong{"GET " + path, "admin", "GET", path, "", status, prefix + kind}
	}
	post := func(command, body string, status int, kind string) wrong {
		return wrong{command + " " + body, "admin", "POST", "/command/" + command, body, status, prefix + kind}
	}
	at := func(rest string) string { return `{` + goodTask + `,"scope":{"nodes":["web-1"]}` + rest + `}` }
	return []wrong{
		get("/nothing", 404, "not-found"),
		get("//jobs", 404, "not-found"),
		get("/dumpling", 404, "not-found"),
		get("/jobs/99", 404, "unknown-job"),
		get("/jobs/x", 400, "validation-error"),
		get("/jobs/-1", 400, "validation-error"),
		get("/jobs/99999999999999999999", 400, "validation-error"),
		get("/jobs/99/nodes", 404, "unknown-job"),
		get("/jobs/99/report", 404, "unknown-job"),
		get("/jobs/99/events", 404, "unknown-job"),
		get("/jobs/99/events?start=x", 400, "validation-error"),
		get("/jobs?limit=x", 400, "validation-error"),
		get("/jobs?limit=0", 400, "validation-error"),
		get("/jobs?limit=-5", 400, "validation-error"),
		get("/jobs?limit=99999999999999999999", 400, "validation-error"),
		get("/jobs?offset=-1", 400, "validation-error"),
		get("/jobs?order=up", 400, "validation-error"),
		get("/jobs?order_by=colour", 400, "validation-error"),
		get("/jobs?type=script", 400, "validation-error"),
		get("/jobs?type=deploy&task=x", 400, "validation-error"),
		get("/jobs?min_finish_timestamp=yesterday", 400, "validation-error"),
		get("/plan_jobs/99", 404, "unknown-job"),
		get("/plan_jobs?results=some", 400, "validation-error"),
		get("/scheduled_jobs/environment_jobs/99", 404, "unknown-scheduled-job"),
		get("/scopes/task_targets/99", 404, "unknown-task-target"),
		get("/tasks?environment=nowhere", 404, "unknown-environment"),
		get("/tasks/pack/other", 404, "unknown-task"),
		get("/tasks/pack/..", 404, "not-found"),
		get("/plans/a/b", 404, "unknown-plan"),
		get("/environments/nowhere", 404, "unknown-environment"),
		get("/environments/nowhere/instances", 404, "unknown-environment"),
		get("/environments/nowhere/applications", 404, "unknown-environment"),
		get("/usage?events=all", 400, "validation-error"),
		get("/usage?start_date=never", 400, "validation-error"),
		get("/inventory/..%2Fx", 404, "not-found"),
		post("stop", `{}`, 400, "validation-error"),
		post("stop", `{"job":"99"}`, 404, "unknown-job"),
		post("stop", `{"job":"x"}`, 400, "validation-error"),
		post("stop", `{"job":true}`, 400, "validation-error"),
		post("plan_run", `{}`, 400, "validation-error"),
		post("plan_run", `{"plan_name":"a::b"}`, 404, "unknown-plan"),
		post("environment_plan_run", `{"plan_name":"a::b"}`, 404, "unknown-plan"),
		post("schedule_plan", `{"plan_name":"a::b"}`, 404, "unknown-plan"),
		post("stop_plan", `{"plan_job":"99"}`, 404, "unknown-job"),
		post("plan_finish", `{"plan_job":"99","status":"success"}`, 404, "unknown-job"),
		post("plan_finish", `{"plan_job":"99","status":"perhaps"}`, 400, "validation-error"),
		post("plan_task", at(`,"plan_job":"99"`), 404, "unknown-job"),
		post("plan_task", at(``), 400, "validation-error"),
		post("plan_start", `{"params":[]}`, 400, "validation-error"),
		post("task_target", `{"display_name":"x"}`, 400, "validation-error"),
		post("schedule_task", at(`,"scheduled_time":"2020-01-01T00:00:00Z"`), 400, "invalid-time"),
		post("schedule_task", at(`,"scheduled_time":"soon"`), 400, "invalid-time"),
		post("schedule_task", at(`,"scheduled_time":"2030-01-01T00:00:00Z","schedule_options":{"interval":{"units":"seconds","value":1}}`), 400, "validation-error"),
		post("schedule_task", at(`,"scheduled_time":"2030-01-01T00:00:00Z","schedule_options":{"interval":{"units":"moons","value":1}}`), 400, "validation-error"),
		{"inventory without nodes", "admin", "POST", "/inventory", `{}`, 400, prefix + "validation-error"},
		{"inventory of no name", "admin", "POST", "/inventory", `{"nodes":["a b"]}`, 400, prefix + "validation-error"},
	}
}

func wrongRights() []wrong {
	return []wrong{
		{"no token", "", "GET", "/jobs", "", 401, "puppetlabs.rbac/user-unauthenticated"},
		{"no token, root", "", "GET", "", "", 401, "puppetlabs.rbac/user-unauthenticated"},
		{"wrong token", "guess", "POST", "/command/task", `{}`, 401, "puppetlabs.rbac/user-unauthenticated"},
		{"no right to see", "plain", "GET", "/jobs", "", 403, prefix + "not-permitted"},
		{"no right to run", "reader", "POST", "/command/deploy", `{"environment":"production"}`, 403, prefix + "not-permitted"},
		{"checked before the body", "reader", "POST", "/command/task", `{`, 403, prefix + "not-permitted"},
		{"no right to stop", "reader", "POST", "/command/stop", `{"job":"1"}`, 403, prefix + "not-permitted"},
		{"some nodes only, others meant", "web", "POST", "/command/deploy", `{"environment":"production","scope":{"nodes":["db-1","web-1"]}}`, 403, prefix +
			"not-permitted"},
		{"none of the nodes left", "web", "POST", "/command/task", `{` + goodTask + `,"scope":{"nodes":["db-1"]}}`, 403, prefix + "not-permitted"},
		{"nodes that are not theirs to see", "web", "POST", "/inventory", `{"nodes":["db-1"]}`, 403, prefix + "not-permitted"},
	}
}

// What is wrong is said in JSON, under the kind that clients look for.
func TestWhatIsWrong(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, list := range [][]wrong{wrongOrders(), wrongOthers(), wrongRights()} {
		for _, c := range list {
			w := b.call(c.token, c.method, c.path, c.body)
			b.wantProblem(t, c.name, w, c.status, c.kind)
		}
	}
	if jobs := b.do("GET", "/jobs", "", 200); at[float64](t, jobs, "pagination", "total") != 0 {
		t.Error("something was started")
	}
}

func (b *bench) wantProblem(t *testing.T, what string, w *httptest.ResponseRecorder, status int, kind string) {
	t.Helper()
	var problem struct {
		Kind, Msg string
		Details   map[string]any
	}
	err := json.Unmarshal(w.Body.Bytes(), &problem)
	if err != nil || w.Code != status || problem.Kind != kind || problem.Msg == "" || problem.Details == nil ||
		w.Header().Get("Content-Type") != "application/json; charset=utf-8" {
		t.Errorf("%.200s: %d %.300s (%v), want %d %s", what, w.Code, w.Body, err, status, kind)
	}
}

// routes is every path, with a method that it has and a method that it does not have.
var routes = []struct{ method, path, other string }{
	{"GET", "", "POST"},
	{"GET", "/status", "POST"},
	{"GET", "/usage", "PUT"},
	{"POST", "/command/deploy", "GET"},
	{"POST", "/command/task", "GET"},
	{"POST", "/command/stop", "GET"},
	{"POST", "/command/task_target", "GET"},
	{"POST", "/command/schedule_task", "GET"},
	{"POST", "/command/schedule_deploy", "GET"},
	{"POST", "/command/schedule_plan", "GET"},
	{"POST", "/command/plan_start", "GET"},
	{"POST", "/command/plan_task", "GET"},
	{"POST", "/command/plan_finish", "GET"},
	{"POST", "/command/stop_plan", "GET"},
	{"POST", "/command/plan_run", "GET"},
	{"POST", "/command/environment_plan_run", "GET"},
	{"GET", "/jobs", "POST"},
	{"GET", "/jobs/1", "DELETE"},
	{"GET", "/jobs/1/nodes", "POST"},
	{"GET", "/jobs/1/report", "POST"},
	{"GET", "/jobs/1/events", "POST"},
	{"GET", "/plan_jobs", "POST"},
	{"GET", "/plan_jobs/1", "POST"},
	{"GET", "/plan_jobs/1/events", "POST"},
	{"GET", "/plan_jobs/1/event/1", "POST"},
	{"GET", "/scheduled_jobs", "POST"},
	{"DELETE", "/scheduled_jobs/1", "GET"},
	{"GET", "/scheduled_jobs/environment_jobs", "PATCH"},
	{"POST", "/scheduled_jobs/environment_jobs", "DELETE"},
	{"GET", "/scheduled_jobs/environment_jobs/1", "POST"},
	{"PUT", "/scheduled_jobs/environment_jobs/1", "DELETE"},
	{"GET", "/scopes/task_targets", "POST"},
	{"GET", "/scopes/task_targets/1", "POST"},
	{"GET", "/inventory", "PUT"},
	{"POST", "/inventory", "DELETE"},
	{"GET", "/inventory/web-1", "POST"},
	{"GET", "/tasks", "POST"},
	{"GET", "/tasks/pack/init", "POST"},
	{"GET", "/plans", "POST"},
	{"GET", "/plans/a/b", "POST"},
	{"GET", "/environments", "POST"},
	{"GET", "/environments/production", "POST"},
	{"GET", "/environments/production/applications", "POST"},
	{"GET", "/environments/production/instances", "POST"},
}

// Every route answers strangers, other methods, bodies that are no JSON and who takes none in JSON.
func TestEveryRouteSpeaksJSON(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, route := range routes {
		what := route.method + " " + route.path
		b.wantProblem(t, what+" without a token", b.call("", route.method, route.path, bodyFor(route.method)), 401, "puppetlabs.rbac/user-unauthenticated")
		b.wantProblem(t, route.other+" "+route.path, b.call("admin", route.other, route.path, ""), 405, prefix+"method-not-allowed")
		if needsRight := route.path != "" && route.path != "/status"; needsRight {
			b.wantProblem(t, what+" without a right", b.call("plain", route.method, route.path, bodyFor(route.method)), 403, prefix+"not-permitted")
		}
		r := httptest.NewRequest(route.method, "/orchestrator/v1"+route.path, nil)
		r.Header.Set("Accept", "text/html")
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		b.wantProblem(t, what+" as HTML", w, 406, prefix+"not-acceptable")
		if route.method != "POST" && route.method != "PUT" {
			continue
		}
		r = httptest.NewRequest(route.method, "/orchestrator/v1"+route.path, strings.NewReader("a=b"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w = httptest.NewRecorder()
		b.ServeHTTP(w, r)
		b.wantProblem(t, what+" with a form", w, 415, prefix+"unsupported-type")
		b.wantProblem(t, what+" without JSON", b.call("admin", route.method, route.path, `{"x":`), 400, prefix+"validation-error")
	}
}

func bodyFor(method string) string {
	if method == "GET" || method == "DELETE" {
		return ""
	}
	return "{}"
}

// A page beyond the end is empty, and one that is larger than all has all.
func TestHugePages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.started("task", `{`+goodTask+`,"scope":{"nodes":["web-1","web-2"]}}`)
	b.over(id)
	b.do("POST", "/command/plan_start", `{"plan_name":"a::b","params":{}}`, 202)
	b.do("POST", "/command/schedule_task", `{`+goodTask+`,"scope":{"nodes":["web-1"]},"scheduled_time":"2030-01-01T00:00:00Z"}`, 202)
	const most = "2147483647"
	for path, all := range map[string]int{"/jobs": 1, "/jobs/" + id + "/nodes": 2, "/plan_jobs": 1, "/scheduled_jobs/environment_jobs": 1} {
		if items := at[[]any](t, b.do("GET", path+"?limit="+most, "", 200), "items"); len(items) != all {
			t.Errorf("%s with a huge limit has %v", path, items)
		}
		for _, page := range []string{"?offset=" + most, "?offset=" + most + "&limit=" + most, "?offset=5&limit=" + most} {
			if items := at[[]any](t, b.do("GET", path+page, "", 200), "items"); len(items) != 0 {
				t.Errorf("%s%s has %v", path, page, items)
			}
		}
		for _, page := range []string{"?limit=-1", "?offset=-1", "?limit=2147483648", "?offset=9223372036854775807", "?offset=1e3"} {
			b.wantProblem(t, path+page, b.call("admin", "GET", path+page, ""), 400, prefix+"validation-error")
		}
	}
	if items := at[[]any](t, b.do("GET", "/jobs/"+id+"/events?start="+most, "", 200), "items"); len(items) != 0 {
		t.Errorf("events from far on: %v", items)
	}
}

// A slash is refused at the end as everywhere.
func TestASlashAtTheEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.wantProblem(t, "jobs/", b.call("admin", "GET", "/jobs/", ""), 404, prefix+"not-found")
}
