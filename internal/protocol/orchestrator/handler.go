package orchestrator

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/appgraph"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/memo"
	"github.com/tutti-project/tutti/internal/job/schedule"
	"github.com/tutti-project/tutti/internal/job/submit"
	"github.com/tutti-project/tutti/internal/protocol/pejson"
	"github.com/tutti-project/tutti/internal/rbac"
)

// Prefix is where the API begins.
const Prefix = "/orchestrator/v1"

// Jobs is what became of jobs, and stops them; *job.Service does.
type Jobs interface {
	Job(ctx context.Context, id int64) (job.Job, error)
	Jobs(ctx context.Context, page job.Page) ([]job.Job, error)
	CountJobs(ctx context.Context, page job.Page) (int, error)
	Runs(ctx context.Context, id int64, page job.RunPage) ([]job.Run, error)
	Written(ctx context.Context, r job.Run) (map[job.Stream]string, error)
	Changes(ctx context.Context, id, after int64, n int) (job.Changes, error)
	Stop(ctx context.Context, actor fleet.Actor, id int64, kill bool) (job.Job, error)
}

// Orders makes jobs of orders; submit.Service does.
type Orders interface {
	Submit(ctx context.Context, actor fleet.Actor, o submit.Order) (job.Job, error)
}

// Schedules keeps orders for later; *schedule.Service does.
type Schedules interface {
	Create(ctx context.Context, actor fleet.Actor, o submit.Order, at schedule.Timing) (schedule.Entry, error)
	Change(ctx context.Context, actor fleet.Actor, id int64, c schedule.Change) (schedule.Entry, error)
	Entry(ctx context.Context, id int64) (schedule.Entry, error)
	Entries(ctx context.Context) ([]schedule.Entry, error)
}

// Connections is who is connected.
type Connections interface {
	inventory.Presences
	Connected() []fleet.Certname
}

// Gate says which nodes somebody may not see; target.Gate does.
type Gate interface {
	RefusedTo(ctx context.Context, actor fleet.Actor, permission fleet.Permission, s job.Spec, nodes []fleet.Certname) (map[fleet.Certname]string, error)
}

// Applications knows applications; appgraph.Service does.
type Applications interface {
	Applications(ctx context.Context, text string, env fleet.Environment) ([]appgraph.Application, error)
}

// Environments knows which environments have code.
type Environments interface {
	Environments(ctx context.Context) (map[fleet.Environment]fleet.Digest, error)
}

// Inventory answers queries; an inventory.Asker does.
type Inventory interface {
	Ask(ctx context.Context, q inventory.Question, row func(json.RawMessage) error) error
}

// Access says who asks, and who could help them.
type Access interface {
	Explain(ctx context.Context, actor fleet.Actor, permission fleet.Permission, refusal error) error
}

// Config hands in the parts.
type Config struct {
	Jobs         Jobs
	Orders       Orders
	Schedules    Schedules
	Memos        memo.Store
	Tasks        submit.Tasks
	Connections  Connections
	Gate         Gate
	Applications Applications
	Environments Environments
	Inventory    Inventory
	Access       Access
	Actor        func(*http.Request) (fleet.Actor, error) // who asks
	Audit        *rbac.Audit
	Entry        func(context.Context) rbac.Entry // when, from where, under which reference
	RequestID    func(context.Context) string
	Now          func() time.Time
	Stopping     <-chan struct{} // closed when the server begins to stop: who waits for events is answered then
	Log          *slog.Logger
}

// Handler serves the orchestrator's API: it knows who asks, whether they may, and which area answers.
type Handler struct {
	*base
	served http.Handler
}

// base is what every area stands on.
type base struct {
	Config
	service *pejson.Service
	feeds   feeds
}

// The areas. Plans and schedules take orders, too.
type (
	orders      struct{ *base }
	jobs        struct{ *base }
	plans       struct{ orders }
	schedules   struct{ orders }
	contents    struct{ *base }
	connections struct{ *base }
	targets     struct{ *base }
	roots       struct{ *base }
)

// New returns a handler; routes is the table of what it answers.
func New(c Config) *Handler {
	h := &Handler{base: &base{Config: c, service: pejson.New(pejson.Config{
		Prefix: "puppetlabs.orchestrator", Statuses: statuses(), Words: faults(), RequestID: c.RequestID, Log: c.Log,
	})}}
	h.feeds = feeds{jobs: c.Jobs, now: c.Now, stopping: c.Stopping, open: map[int64]*feed{}}
	table := map[string]pejson.Act{}
	for pattern, r := range h.routes() {
		table[pattern] = h.guarded(pattern, r)
	}
	h.served = h.service.Routes(table)
	return h
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.served.ServeHTTP(w, r) }

// route is what a pattern needs and does.
type route struct {
	permission fleet.Permission // empty: none, besides being somebody
	each       bool             // the permission for some objects is enough: the act looks at each
	act        bool             // it is recorded
	do         pejson.Act
}

// routes is the table of what is answered.
func (h *Handler) routes() map[string]route {
	b := h.base
	o, j, p, s := &orders{b}, &jobs{b}, &plans{orders{b}}, &schedules{orders{b}}
	c, n, t, r := &contents{b}, &connections{b}, &targets{b}, &roots{b}
	return map[string]route{
		"GET " + Prefix:             {do: r.root},
		"GET " + Prefix + "/status": {do: r.status},
		"GET " + Prefix + "/usage":  {permission: fleet.NodeRead, do: r.usage},

		"POST " + Prefix + "/command/deploy":               {permission: fleet.PuppetRun, each: true, act: true, do: o.deploy},
		"POST " + Prefix + "/command/task":                 {permission: fleet.TaskRun, each: true, act: true, do: o.task},
		"POST " + Prefix + "/command/stop":                 {permission: fleet.JobStop, each: true, act: true, do: o.stop},
		"POST " + Prefix + "/command/task_target":          {permission: fleet.RoleWrite, act: true, do: t.createTaskTarget},
		"POST " + Prefix + "/command/schedule_task":        {permission: fleet.TaskRun, each: true, act: true, do: s.scheduleTask},
		"POST " + Prefix + "/command/plan_start":           {permission: fleet.TaskRun, each: true, act: true, do: p.planStart},
		"POST " + Prefix + "/command/plan_task":            {permission: fleet.TaskRun, each: true, act: true, do: p.planTask},
		"POST " + Prefix + "/command/plan_finish":          {permission: fleet.TaskRun, each: true, act: true, do: p.planFinish},
		"POST " + Prefix + "/command/stop_plan":            {permission: fleet.JobStop, each: true, act: true, do: p.stopPlan},
		"POST " + Prefix + "/command/plan_run":             {permission: fleet.TaskRun, each: true, do: p.planRun},
		"POST " + Prefix + "/command/environment_plan_run": {permission: fleet.TaskRun, each: true, do: p.planRun},
		"POST " + Prefix + "/command/schedule_plan":        {permission: fleet.TaskRun, each: true, do: p.planRun},
		"POST " + Prefix + "/command/schedule_deploy":      {permission: fleet.PuppetRun, each: true, act: true, do: s.scheduleDeploy},

		"GET " + Prefix + "/jobs":             {permission: fleet.JobRead, each: true, do: j.listJobs},
		"GET " + Prefix + "/jobs/{id}":        {permission: fleet.JobRead, each: true, do: j.showJob},
		"GET " + Prefix + "/jobs/{id}/nodes":  {permission: fleet.JobRead, each: true, do: j.jobNodes},
		"GET " + Prefix + "/jobs/{id}/report": {permission: fleet.JobRead, each: true, do: j.jobReport},
		"GET " + Prefix + "/jobs/{id}/events": {permission: fleet.JobRead, each: true, do: j.jobEvents},

		"GET " + Prefix + "/plan_jobs":                    {permission: fleet.JobRead, each: true, do: p.listPlanJobs},
		"GET " + Prefix + "/plan_jobs/{id}":               {permission: fleet.JobRead, each: true, do: p.showPlanJob},
		"GET " + Prefix + "/plan_jobs/{id}/events":        {permission: fleet.JobRead, each: true, do: p.planJobEvents},
		"GET " + Prefix + "/plan_jobs/{id}/event/{event}": {permission: fleet.JobRead, each: true, do: p.planJobEvent},

		"GET " + Prefix + "/scheduled_jobs":                          {permission: fleet.JobRead, each: true, do: s.listScheduledTasks},
		"DELETE " + Prefix + "/scheduled_jobs/{id}":                  {permission: fleet.JobRead, each: true, act: true, do: s.deleteScheduledJob},
		"GET " + Prefix + "/scheduled_jobs/environment_jobs":         {permission: fleet.JobRead, each: true, do: s.listScheduledJobs},
		"POST " + Prefix + "/scheduled_jobs/environment_jobs":        {permission: fleet.JobRead, each: true, act: true, do: s.createScheduledJob},
		"GET " + Prefix + "/scheduled_jobs/environment_jobs/{id}":    {permission: fleet.JobRead, each: true, do: s.showScheduledJob},
		"PUT " + Prefix + "/scheduled_jobs/environment_jobs/{id}":    {permission: fleet.JobRead, each: true, act: true, do: s.changeScheduledJob},
		"GET " + Prefix + "/scopes/task_targets":                     {permission: fleet.RoleRead, do: t.listTaskTargets},
		"GET " + Prefix + "/scopes/task_targets/{id}":                {permission: fleet.RoleRead, do: t.showTaskTarget},
		"GET " + Prefix + "/inventory":                               {permission: fleet.NodeRead, each: true, do: n.listInventory},
		"POST " + Prefix + "/inventory":                              {permission: fleet.NodeRead, each: true, do: n.askInventory},
		"GET " + Prefix + "/inventory/{node}":                        {permission: fleet.NodeRead, each: true, do: n.showInventory},
		"GET " + Prefix + "/tasks":                                   {permission: fleet.TaskRead, each: true, do: c.listTasks},
		"GET " + Prefix + "/tasks/{module}/{task}":                   {permission: fleet.TaskRead, each: true, do: c.showTask},
		"GET " + Prefix + "/plans":                                   {permission: fleet.TaskRead, each: true, do: p.listPlans},
		"GET " + Prefix + "/plans/{module}/{plan}":                   {permission: fleet.TaskRead, each: true, do: p.showPlan},
		"GET " + Prefix + "/environments":                            {permission: fleet.CodeRead, each: true, do: c.listEnvironments},
		"GET " + Prefix + "/environments/{environment}":              {permission: fleet.CodeRead, each: true, do: c.showEnvironment},
		"GET " + Prefix + "/environments/{environment}/applications": {permission: fleet.NodeRead, do: c.listApplications},
		"GET " + Prefix + "/environments/{environment}/instances":    {permission: fleet.NodeRead, do: c.listInstances},
	}
}

// guarded lets those through who have the route's permission. What is an act is recorded before it is done, and so is what is refused.
func (h *Handler) guarded(pattern string, route route) pejson.Act {
	return func(w http.ResponseWriter, r *http.Request) error {
		actor, err := h.Actor(r)
		r = r.WithContext(fleet.WithActor(r.Context(), actor))
		if err == nil {
			err = h.allowed(r.Context(), actor, route) //nolint:contextcheck // the request carries it
		}
		if err != nil {
			return h.denied(r, pattern, actor, err)
		}
		if !route.act {
			return route.do(w, r)
		}
		finish, err := h.Audit.Begin(r.Context(), h.entry(r, pattern)) //nolint:contextcheck // the request carries it
		if err != nil {
			return err
		}
		err = route.do(w, r)
		finish(pejson.Fault(err))
		return err
	}
}

// allowed returns nil when actor has what a route needs.
func (h *Handler) allowed(ctx context.Context, actor fleet.Actor, route route) error {
	switch {
	case actor.Kind == fleet.Anonymous || actor.Kind == "":
		return rbac.Allow(actor, fleet.JobRead, fleet.Object{}) // it says how to become somebody
	case route.permission == "":
		return nil
	case route.each:
		return h.explained(ctx, actor, route.permission, rbac.AllowSome(actor, route.permission))
	}
	return h.explained(ctx, actor, route.permission, rbac.Allow(actor, route.permission, fleet.Object{}))
}

// explained says of a refusal who could help.
func (h *base) explained(ctx context.Context, actor fleet.Actor, permission fleet.Permission, refusal error) error {
	if refusal == nil {
		return nil
	}
	return h.Access.Explain(ctx, actor, permission, refusal)
}

// denied records a refusal.
func (h *Handler) denied(r *http.Request, pattern string, actor fleet.Actor, err error) error {
	if !fault.Is(err, fault.Denied) {
		return err
	}
	h.Audit.Refused(r.Context(), h.entry(r, pattern), err)
	if actor.Name == "" {
		return pejson.Stranger(err)
	}
	return err
}

func (h *Handler) entry(r *http.Request, pattern string) rbac.Entry {
	actor, entry := fleet.ActorFrom(r.Context()), h.Entry(r.Context())
	entry.ActorKind, entry.Actor, entry.Token = actor.Kind, actor.Name, actor.Token
	entry.Operation, entry.Object = pattern, r.PathValue("id")
	if actor.BreakGlass {
		entry.Mark = rbac.BreakGlass
	}
	return entry
}

// The bounds of bodies, in bytes. The parameters of a task may be large files.
const (
	maxBody     = 8 << 20
	maxTaskBody = 32 << 20
)

// MaxBodyBytes is the largest body of a request to this API.
const MaxBodyBytes = maxTaskBody

// read reads a JSON object.
func (h *base) read(w http.ResponseWriter, r *http.Request, limit int64, into any) error {
	return h.service.Read(w, r, limit, validationError, into)
}
