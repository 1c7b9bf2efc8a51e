package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/appgraph"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/jobtest"
	"github.com/tutti-project/tutti/internal/job/memo/memotest"
	"github.com/tutti-project/tutti/internal/job/schedule"
	"github.com/tutti-project/tutti/internal/job/schedule/scheduletest"
	"github.com/tutti-project/tutti/internal/job/submit"
	"github.com/tutti-project/tutti/internal/protocol/orchestrator"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/rbac/rbactest"
	"github.com/tutti-project/tutti/internal/target"
	"github.com/tutti-project/tutti/internal/task"
	"github.com/tutti-project/tutti/internal/task/tasktest"
)

const groupID = "11111111-1111-4111-8111-111111111111"

// world is what the handler stands on: web-1 and web-2 are connected, db-1 is not; all are of production.
type world struct {
	fleet *jobtest.Fleet
	code  tasktest.Version
}

func (*world) Resolve(_ context.Context, t job.Targets) ([]fleet.Certname, error) {
	switch {
	case t.Group != "" && t.Group != groupID:
		return nil, fault.New(fault.NotFound, "there is no group %s", t.Group)
	case t.Group != "":
		return []fleet.Certname{"web-1"}, nil
	case strings.HasPrefix(t.Query, "nonsense"):
		return nil, fault.New(fault.Invalid, "the query cannot be read")
	case strings.HasPrefix(t.Query, "none"):
		return nil, nil
	case t.Query != "":
		return []fleet.Certname{"web-1", "web-2"}, nil
	case t.App == "Shop" || t.App == "Shop[eu]":
		return []fleet.Certname{"web-1", "web-2"}, nil
	case t.App != "":
		return nil, fault.New(fault.NotFound, "there is no application %s", t.App)
	}
	nodes := slices.Clone(t.Nodes)
	slices.Sort(nodes)
	return slices.Compact(nodes), nil
}

func (*world) Of(_ context.Context, env fleet.Environment) ([]fleet.Certname, error) {
	if env == "empty" {
		return nil, nil
	}
	return []fleet.Certname{"db-1", "web-1", "web-2"}, nil
}

func (*world) RefusedTo(_ context.Context, actor fleet.Actor, permission fleet.Permission, s job.Spec,
	nodes []fleet.Certname,
) (map[fleet.Certname]string, error) {
	refused := map[fleet.Certname]string{}
	for _, node := range nodes {
		object := fleet.Object{Node: node, Environment: "production"}
		if s.Task != nil {
			object.Task = s.Task.Name
		}
		if strings.HasPrefix(string(node), "web") {
			object.Inside = []string{"web"}
		}
		if err := rbac.Allow(actor, permission, object); err != nil {
			refused[node] = fault.Detail(err)
		}
	}
	return refused, nil
}

func (w *world) Refused(ctx context.Context, actor fleet.Actor, s job.Spec, nodes []fleet.Certname) (map[fleet.Certname]string, error) {
	return w.RefusedTo(ctx, actor, target.Permissions()[s.Kind], s, nodes)
}

func (*world) Connected() []fleet.Certname { return []fleet.Certname{"web-2", "web-1"} }

func (*world) Presence(node fleet.Certname) (inventory.Presence, bool) {
	return inventory.Presence{Server: "tutti.example", Since: time.Date(2026, 11, 26, 20, 0, 0, 5e6, time.UTC)}, strings.HasPrefix(string(node), "web")
}

var code = tasktest.Version{
	"pack/tasks/init.json":   `{"description":"Packages","supports_noop":true,"parameters":{"name":{"type":"String[1]","description":"which"},"password":{"type":"Optional[String]","sensitive":true}}}`,
	"pack/tasks/init.sh":     "#!/bin/sh\n",
	"pack/tasks/free.sh":     "#!/bin/sh\n",
	"pack/tasks/hidden.json": `{"private":true}`,
	"pack/tasks/hidden.sh":   "",
}

func (w *world) TaskVersion(_ context.Context, env fleet.Environment) (fleet.Digest, task.Version, error) {
	if env != "production" && env != "empty" {
		return "", nil, fault.New(fault.NotFound, "environment %s has no code", env)
	}
	return "version-1", w.code, nil
}

func (*world) Environments(context.Context) (map[fleet.Environment]fleet.Digest, error) {
	return map[fleet.Environment]fleet.Digest{"production": "version-1", "empty": "version-1"}, nil
}

func (*world) Applications(context.Context, string, fleet.Environment) ([]appgraph.Application, error) {
	eu := appgraph.Ref{Type: "Shop", Title: "eu"}
	return []appgraph.Application{{Environment: "production", Name: eu, Components: []appgraph.Component{
		{Name: appgraph.Ref{Type: "Shop::Db", Title: "eu"}, Node: "db-1", Produces: []appgraph.Ref{{Type: "Sql", Title: "eu"}}},
	}}}, nil
}

func (*world) Explain(_ context.Context, _ fleet.Actor, _ fleet.Permission, refusal error) error {
	return refusal
}

// Ask answers how many nodes there are, and reports of transactions.
func (*world) Ask(_ context.Context, q inventory.Question, row func(json.RawMessage) error) error {
	if q.Query.Query().Entity == "nodes" {
		return row(json.RawMessage(`{"count":3}`))
	}
	return row(json.RawMessage(`{"transaction_uuid":"t-web-1","certname":"web-1","environment":"production","configuration_version":"v1","resource_events":{"data":[
		{"status":"success","report":"abc","corrective_change":false,"run_start_time":"2026-11-26T20:00:00.123Z","property":"ensure","file":null,"old_value":"absent",
		"new_value":{"x":1},"containing_class":"Web","line":12,"resource_type":"File","resource_title":"/etc/motd","configuration_version":"v1","environment":"production",
		"timestamp":"2026-11-26T20:00:01.5Z","run_end_time":"2026-11-26T20:00:02Z","report_receive_time":"2026-11-26T20:00:03Z","containment_path":["Stage[main]"],
		"certname":"web-1","message":"created","name":null,"corrective":null}]},
		"metrics":{"data":[{"category":"resources","name":"total","value":7},{"category":"time","name":"total","value":0.25},{"category":"events","name":"success","value":1},
		{"category":"changes","name":"total","value":1}]}}`))
}

func (*world) Actor(_ context.Context, _ fleet.ActorKind, name string) (fleet.Actor, error) {
	actor, known := actors[name]
	if !known || name == "gone" {
		return actor, fault.New(fault.Denied, "the user %s is not there any more", name)
	}
	return actor, nil
}

// actors are who shows which token.
var actors = map[string]fleet.Actor{
	"admin":  {Kind: fleet.UserActor, Name: "admin", Grants: []fleet.Grant{{Permission: fleet.Everything}}},
	"reader": {Kind: fleet.UserActor, Name: "reader", Grants: []fleet.Grant{{Permission: fleet.JobRead}, {Permission: fleet.NodeRead}}},
	"plain":  {Kind: fleet.UserActor, Name: "plain"},
	"web":    {Kind: fleet.UserActor, Name: "web", Grants: []fleet.Grant{{Permission: fleet.Everything, Nodes: "web"}}},
	"gone":   {Kind: fleet.UserActor, Name: "gone", Grants: []fleet.Grant{{Permission: fleet.Everything}}},
}

// bench is a handler with what is behind it.
type bench struct {
	*orchestrator.Handler
	*world
	t         *testing.T
	jobs      *job.Service
	store     *jobtest.Store
	schedules *schedule.Service
	acts      *rbactest.Fake
}

func newBench(t *testing.T) *bench {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	b := &bench{t: t, store: jobtest.NewStore(), acts: rbactest.New(), world: &world{fleet: jobtest.NewFleet("web-1", "web-2"), code: code}}
	settings := job.DefaultSettings()
	settings.Reconnect = 0
	var edges jobtest.Edges
	jobs, err := job.New(job.Parts{
		Store: b.store, Sender: b.fleet, Resolver: b.world, Graph: edges, Gate: b.world, Sealer: jobtest.Seals{}, Ends: jobtest.Ends{},
		NewID: jobtest.NewID, Now: time.Now, Log: log,
	}, settings)
	if err != nil {
		t.Fatal(err)
	}
	b.jobs = jobs
	b.fleet.Know(jobs)
	orders := submit.Service{Jobs: jobs, Tasks: b.world, Targets: b.world}
	b.schedules = schedule.New(schedule.Parts{
		Store: scheduletest.NewStore(), Orders: orders, Owners: b.world, Sealer: jobtest.Seals{}, Now: time.Now, Log: log,
	})
	b.Handler = orchestrator.New(orchestrator.Config{
		Jobs: jobs, Orders: orders, Schedules: b.schedules, Memos: memotest.NewStore(), Tasks: b.world, Connections: b.world, Gate: b.world,
		Applications: b.world, Environments: b.world, Inventory: b.world, Access: b.world,
		Actor: func(r *http.Request) (fleet.Actor, error) {
			token := r.Header.Get("X-Authentication")
			if token == "" {
				return fleet.Actor{Kind: fleet.Anonymous}, nil
			}
			if actor, known := actors[token]; known {
				return actor, nil
			}
			return fleet.Actor{Kind: fleet.Anonymous}, fault.New(fault.Denied, "the token is not known here")
		},
		Audit: rbac.NewAudit(b.acts, log), Entry: func(context.Context) rbac.Entry { return rbac.Entry{} },
		RequestID: func(context.Context) string { return "req-1" }, Now: time.Now, Stopping: make(chan struct{}), Log: log,
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- jobtest.Serve(ctx, jobs) }()
	go func() { ended <- b.schedules.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		b.fleet.Wait()
	})
	return b
}

// call is a request as clients send them.
func (b *bench) call(token, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/orchestrator/v1"+path, nil)
	if body != "" {
		r = httptest.NewRequest(method, "/orchestrator/v1"+path, strings.NewReader(body))
	}
	r.Host = "tutti.example:8143"
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("X-Authentication", token)
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w
}

// do is an administrator's call that must have the given status. Every answer is a JSON object.
func (b *bench) do(method, path, body string, status int) map[string]any {
	b.t.Helper()
	w := b.call("admin", method, path, body)
	var answer map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != status {
		b.t.Fatalf("%s %s %s: %d %s (%v), want %d", method, path, body, w.Code, w.Body, err, status)
	}
	return answer
}

// started is the number of a job that a command started.
func (b *bench) started(command, body string) string {
	b.t.Helper()
	link := at[map[string]any](b.t, b.do("POST", "/command/"+command, body, http.StatusAccepted), "job")
	name := at[string](b.t, link, "name")
	if link["id"] != "https://tutti.example:8143/orchestrator/v1/jobs/"+name {
		b.t.Errorf("the job is %v", link)
	}
	return name
}

// over waits for the end of a job as clients do.
func (b *bench) over(name string) map[string]any {
	b.t.Helper()
	for range 2000 {
		j := b.do("GET", "/jobs/"+name, "", http.StatusOK)
		if slices.Contains([]any{"finished", "failed", "stopped"}, j["state"]) {
			return j
		}
		<-time.After(5 * time.Millisecond)
	}
	b.t.Fatalf("job %s does not end", name)
	return nil
}

// at is what is inside of an answer.
func at[T any](t *testing.T, value any, keys ...any) T {
	t.Helper()
	for _, key := range keys {
		switch key := key.(type) {
		case string:
			object, ok := value.(map[string]any)
			if !ok {
				t.Fatalf("%v is no object with %s", value, key)
			}
			value = object[key]
		case int:
			list, ok := value.([]any)
			if !ok || key >= len(list) {
				t.Fatalf("%v has no item %d", value, key)
			}
			value = list[key]
		}
	}
	typed, ok := value.(T)
	if !ok {
		t.Fatalf("%v (%T) at %v", value, value, fmt.Sprint(keys...))
	}
	return typed
}
