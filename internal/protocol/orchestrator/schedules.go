package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/schedule"
	"github.com/tutti-project/tutti/internal/job/submit"
	"github.com/tutti-project/tutti/internal/protocol/pejson"
	"github.com/tutti-project/tutti/internal/rbac"
)

// interval is how often an order is given again; nil: it is given once.
type interval struct {
	Units string `json:"units"`
	Value int64  `json:"value"`
}

// timing reads when an order is given.
func (h *schedules) timing(field, start string, every *interval) (at schedule.Timing, err error) {
	if at.Start, err = parseTime(start); err != nil {
		return at, h.bad(invalidTime, map[string]string{"field": field}, "field %s: it is a time such as 2026-11-26T20:00:00Z, not %.40q", field, start)
	}
	if every == nil {
		return at, nil
	}
	units := map[string]time.Duration{"seconds": time.Second, "minutes": time.Minute, "hours": time.Hour, "days": 24 * time.Hour, "weeks": 7 * 24 * time.Hour}
	unit, known := units[every.Units]
	if !known || every.Value < 1 || every.Value > int64(schedule.MaxInterval/unit) {
		return at, h.invalid("interval", "it has units (seconds, minutes, hours, days or weeks) and a value above zero, a year at most")
	}
	at.Interval = time.Duration(every.Value) * unit
	return at, nil
}

// scheduled keeps an order for later and says its number.
func (h *schedules) scheduled(w http.ResponseWriter, r *http.Request, where string, o submit.Order, at schedule.Timing) error {
	if !at.Start.After(h.Now()) && at.Interval == 0 {
		return h.bad(invalidTime, nil, "%s is past; give a time to come", at.Start.Format(wireTime))
	}
	e, err := h.Schedules.Create(r.Context(), fleet.ActorFrom(r.Context()), o, at)
	if err != nil {
		return h.refused(err, o)
	}
	pejson.Write(w, http.StatusAccepted, map[string]named{"scheduled_job": linksOf(r).numbered(where, e.ID)})
	return nil
}

// The places of scheduled jobs.
const (
	oldSchedules = "scheduled_jobs"
	newSchedules = "scheduled_jobs/environment_jobs"
)

// oldTiming is when schedule_task and schedule_deploy are told to give an order.
type oldTiming struct {
	Time    string `json:"scheduled_time"`
	Options struct {
		Interval *interval `json:"interval"`
	} `json:"schedule_options"`
}

// scheduleTask runs a task at a time.
func (h *schedules) scheduleTask(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		taskBody
		oldTiming
	}
	if err := h.read(w, r, maxTaskBody, &body); err != nil {
		return err
	}
	o, err := h.taskOrder(body.taskBody)
	if err != nil {
		return err
	}
	at, err := h.timing("scheduled_time", body.Time, body.Options.Interval)
	if err != nil {
		return err
	}
	return h.scheduled(w, r, oldSchedules, o, at)
}

// scheduleDeploy runs Puppet at a time.
func (h *schedules) scheduleDeploy(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		deployBody
		oldTiming
	}
	if err := h.read(w, r, maxBody, &body); err != nil {
		return err
	}
	o, err := h.deployOrder(body.deployBody)
	if err != nil {
		return err
	}
	at, err := h.timing("scheduled_time", body.Time, body.Options.Interval)
	if err != nil {
		return err
	}
	return h.scheduled(w, r, oldSchedules, o, at)
}

// scheduleBody is what a scheduled job of an environment is made of and changed with; what is missing stays.
type scheduleBody struct {
	Type        *string         `json:"type"`
	Environment *string         `json:"environment"`
	Input       json.RawMessage `json:"input"`
	Description *string         `json:"description"`
	Userdata    json.RawMessage `json:"userdata"`
	Enabled     *bool           `json:"enabled"`
	Schedule    *struct {
		Start    string    `json:"start_time"`
		Interval *interval `json:"interval"`
	} `json:"schedule"`
}

// wrapped is a parameter of a scheduled task.
type wrapped struct {
	Value json.RawMessage `json:"value"`
}

// inputOrder is the order that a type and an input ask for.
func (h *schedules) inputOrder(kind, env string, input json.RawMessage) (o submit.Order, err error) {
	switch kind {
	case "deploy":
		var body deployBody
		if err := h.service.Decode(orEmpty(input), validationError, &body); err != nil {
			return o, err
		}
		body.Environment = &env
		return h.deployOrder(body)
	case "task":
		var body struct {
			taskBody
			Name       string             `json:"name"`
			Parameters map[string]wrapped `json:"parameters"`
		}
		if err := h.service.Decode(orEmpty(input), validationError, &body); err != nil {
			return o, err
		}
		params := map[string]json.RawMessage{}
		for name, p := range body.Parameters {
			if len(p.Value) == 0 {
				return o, h.invalid("input.parameters", "%.80q is {\"value\": ...}", name)
			}
			params[name] = p.Value
		}
		body.Environment, body.Task = &env, body.Name
		if body.Params, err = json.Marshal(params); err != nil {
			return o, err
		}
		return h.taskOrder(body.taskBody)
	case "plan":
		return o, h.noPlan("", env)
	}
	return o, h.invalid("type", "it is deploy or task, not %.40q", kind)
}

func orEmpty(text json.RawMessage) []byte {
	if isNull(text) {
		return []byte("{}")
	}
	return text
}

// allowKind returns nil when who asks may give orders of a kind to some nodes.
func (h *schedules) allowKind(ctx context.Context, kind job.Kind) error {
	permission := fleet.TaskRun
	if kind == job.Puppet {
		permission = fleet.PuppetRun
	}
	actor := fleet.ActorFrom(ctx)
	return h.explained(ctx, actor, permission, rbac.AllowSome(actor, permission))
}

// createScheduledJob keeps an order of an environment for later.
func (h *schedules) createScheduledJob(w http.ResponseWriter, r *http.Request) error {
	var body scheduleBody
	if err := h.read(w, r, maxTaskBody, &body); err != nil {
		return err
	}
	switch {
	case body.Type == nil:
		return h.invalid("type", "it is missing: deploy or task")
	case body.Environment == nil:
		return h.invalid("environment", "it is missing")
	case body.Schedule == nil:
		return h.invalid("schedule", "it is missing: {\"start_time\": ..., \"interval\": null}")
	}
	o, err := h.inputOrder(*body.Type, *body.Environment, body.Input)
	if err != nil {
		return err
	}
	if err := h.allowKind(r.Context(), o.Spec.Kind); err != nil {
		return err
	}
	if body.Description != nil {
		o.Spec.Description = *body.Description
	}
	if !isNull(body.Userdata) {
		o.Spec.Userdata = body.Userdata
	}
	at, err := h.timing("schedule.start_time", body.Schedule.Start, body.Schedule.Interval)
	if err != nil {
		return err
	}
	return h.scheduled(w, r, newSchedules, o, at)
}

// schedule is an entry that who asks may see or, with the permission to stop others' jobs, change.
func (h *schedules) schedule(r *http.Request, permission fleet.Permission) (schedule.Entry, error) {
	ctx := r.Context()
	id, err := h.number("id", r.PathValue("id"))
	if err != nil {
		return schedule.Entry{}, err
	}
	e, err := h.Schedules.Entry(ctx, id)
	if err != nil {
		return e, h.missing(unknownScheduledJob, map[string]string{"scheduled_job": r.PathValue("id")}, err)
	}
	actor := fleet.ActorFrom(ctx)
	if isOwner(actor, e) || rbac.Allow(actor, permission, fleet.Object{}) == nil {
		return e, nil
	}
	return e, h.explained(ctx, actor, permission, fault.New(fault.Denied,
		"scheduled job %d is somebody else's, and %s %s does not have the permission %s without scope", id, actor.Kind, actor.Name, permission))
}

func isOwner(actor fleet.Actor, e schedule.Entry) bool {
	return e.Owner.Name == actor.Name && e.Owner.Kind == actor.Kind
}

// changeScheduledJob changes an order that is kept. Only its owner changes what it does.
func (h *schedules) changeScheduledJob(w http.ResponseWriter, r *http.Request) error {
	var body scheduleBody
	if err := h.read(w, r, maxTaskBody, &body); err != nil {
		return err
	}
	e, err := h.schedule(r, fleet.JobStop)
	if err != nil {
		return err
	}
	change := schedule.Change{Enabled: body.Enabled}
	if body.Schedule != nil {
		at, err := h.timing("schedule.start_time", body.Schedule.Start, body.Schedule.Interval)
		if err != nil {
			return err
		}
		change.Timing = &at
	}
	if body.Type != nil || body.Environment != nil || !isNull(body.Input) || body.Description != nil || !isNull(body.Userdata) {
		if !isOwner(fleet.ActorFrom(r.Context()), e) {
			return fault.New(fault.Denied, "scheduled job %d runs as %s: only they can change what it does; others can disable it", e.ID, e.Owner.Name)
		}
		o, err := h.changedOrder(r.Context(), e, body)
		if err != nil {
			return err
		}
		change.Order = &o
	}
	if e, err = h.Schedules.Change(r.Context(), fleet.ActorFrom(r.Context()), e.ID, change); err != nil {
		if !e.Enabled && fault.Is(err, fault.Conflict) {
			return h.service.Named(disabledSchedule, map[string]string{"scheduled_job": r.PathValue("id")}, err)
		}
		return h.refused(err, submit.Order{})
	}
	pejson.Write(w, http.StatusAccepted, map[string]named{"scheduled_job": linksOf(r).numbered(newSchedules, e.ID)})
	return nil
}

// changedOrder is an entry's order with what a body says of it.
func (h *schedules) changedOrder(ctx context.Context, e schedule.Entry, body scheduleBody) (o submit.Order, err error) {
	kind, env := entryKind(e), string(entryEnvironment(e))
	if body.Type != nil {
		kind = *body.Type
	}
	if body.Environment != nil {
		env = *body.Environment
	}
	o = e.Order
	switch {
	case !isNull(body.Input):
		if o, err = h.inputOrder(kind, env, body.Input); err != nil {
			return o, err
		}
		o.Spec.Description, o.Spec.Userdata = e.Order.Spec.Description, e.Order.Spec.Userdata
	case kind != entryKind(e):
		return o, h.invalid("type", "another type needs an input")
	case len(e.Hidden) > 0:
		return o, h.invalid("input", "%s is secret and cannot be read again: give the input once more", e.Hidden[0])
	case body.Environment != nil:
		if _, err := fleet.ParseEnvironment(env); err != nil {
			return o, h.invalid("environment", "%s", fault.Detail(err))
		}
		o = movedTo(o, fleet.Environment(env))
	}
	if body.Description != nil {
		o.Spec.Description = *body.Description
	}
	if !isNull(body.Userdata) {
		o.Spec.Userdata = body.Userdata
	}
	return o, h.allowKind(ctx, o.Spec.Kind)
}

func movedTo(o submit.Order, env fleet.Environment) submit.Order {
	if o.Spec.Environment != "" || o.Task != nil {
		o.Spec.Environment = env
	}
	if o.Whole != "" {
		o.Whole = env
	}
	return o
}

// deleteScheduledJob disables an order that is kept.
func (h *schedules) deleteScheduledJob(w http.ResponseWriter, r *http.Request) error {
	e, err := h.schedule(r, fleet.JobStop)
	if err != nil {
		return err
	}
	off := false
	if _, err := h.Schedules.Change(r.Context(), fleet.ActorFrom(r.Context()), e.ID, schedule.Change{Enabled: &off}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func entryKind(e schedule.Entry) string {
	if e.Order.Task != nil {
		return "task"
	}
	return "deploy"
}

func entryEnvironment(e schedule.Entry) fleet.Environment {
	return cmp.Or(e.Order.Spec.Environment, e.Order.Whole)
}

func (h *schedules) showScheduledJob(w http.ResponseWriter, r *http.Request) error {
	e, err := h.schedule(r, fleet.JobRead)
	if err != nil {
		return err
	}
	pejson.Write(w, http.StatusOK, scheduleView(linksOf(r), newSchedules, e))
	return nil
}

// entryColumns is what scheduled jobs can be ordered by.
var entryColumns = map[string]func(a, b schedule.Entry) int{
	"next_run_time": func(a, b schedule.Entry) int { return a.NextRun.Compare(b.NextRun) },
	"environment":   func(a, b schedule.Entry) int { return cmp.Compare(entryEnvironment(a), entryEnvironment(b)) },
	"owner":         func(a, b schedule.Entry) int { return cmp.Compare(a.Owner.Name, b.Owner.Name) },
	"name":          func(a, b schedule.Entry) int { return cmp.Compare(a.ID, b.ID) },
	"type":          func(a, b schedule.Entry) int { return cmp.Compare(entryKind(a), entryKind(b)) },
}

func (h *schedules) listScheduledJobs(w http.ResponseWriter, r *http.Request) error {
	return h.listSchedules(w, r, newSchedules)
}

func (h *schedules) listScheduledTasks(w http.ResponseWriter, r *http.Request) error {
	return h.listSchedules(w, r, oldSchedules)
}

// listSchedules lists the orders that are kept and not disabled.
func (h *schedules) listSchedules(w http.ResponseWriter, r *http.Request, where string) error {
	p, err := h.paging(r, maxPage, "next_run_time", "environment", "owner", "name", "type")
	if err != nil {
		return err
	}
	kind := r.URL.Query().Get("type")
	if kind != "" && kind != "deploy" && kind != "task" && kind != "plan" {
		return h.invalid("type", "it is deploy, task or plan, not %.40q", kind)
	}
	all, err := h.Schedules.Entries(r.Context())
	if err != nil {
		return err
	}
	actor := fleet.ActorFrom(r.Context())
	others := rbac.Allow(actor, fleet.JobRead, fleet.Object{}) == nil
	all = slices.DeleteFunc(all, func(e schedule.Entry) bool {
		return !e.Enabled || kind != "" && kind != entryKind(e) || !others && !isOwner(actor, e)
	})
	slices.SortStableFunc(all, entryColumns[cmp.Or(p.by, "name")])
	if p.order == "desc" {
		slices.Reverse(all)
	}
	from := min(p.offset, len(all))
	items := []any{}
	for _, e := range all[from:min(from+p.limit, len(all))] {
		items = append(items, scheduleView(linksOf(r), where, e))
	}
	pejson.Write(w, http.StatusOK, map[string]any{"items": items, "pagination": map[string]any{
		"limit": p.limit, "offset": p.offset, "order": cmp.Or(p.order, "asc"), "order_by": cmp.Or(p.by, "name"), "total": len(all), "type": kind,
	}})
	return nil
}

// scheduleView is an order that is kept.
func scheduleView(l links, where string, e schedule.Entry) map[string]any {
	link := l.numbered(where, e.ID)
	spec := e.Order.Spec
	view := map[string]any{
		"id": link.ID, "name": link.Name, "type": entryKind(e), "environment": string(entryEnvironment(e)), "enabled": e.Enabled, "owner": owner(e.Owner.Name),
		"description": spec.Description, "userdata": userdata(spec.Userdata), "input": inputView(e),
		"schedule": map[string]any{"start_time": stamp(e.Start), "interval": nil}, "next_run": nil, "last_run": nil,
		"scheduled_time": stamp(e.NextRun),
	}
	if e.Interval > 0 {
		view["schedule"] = map[string]any{"start_time": stamp(e.Start), "interval": interval{"seconds", int64(e.Interval / time.Second)}}
	}
	if !e.NextRun.IsZero() {
		view["next_run"] = map[string]any{"time": stamp(e.NextRun)}
	}
	if e.LastRun.IsZero() {
		return view
	}
	ran := map[string]any{"name": nil}
	if e.LastJob != 0 {
		id := strconv.FormatInt(e.LastJob, 10)
		ran = map[string]any{"id": l.to("jobs", id), "name": id}
	}
	if e.LastError != "" {
		ran["submission_error"] = map[string]any{"kind": "puppetlabs.orchestrator/submission-error", "msg": e.LastError, "details": struct{}{}}
	}
	view["last_run"] = map[string]any{"time": stamp(e.LastRun), "job": ran}
	return view
}

// inputView is what an order does, without what is secret.
func inputView(e schedule.Entry) map[string]any {
	spec := e.Order.Spec
	view := map[string]any{"scope": scopeView(spec.Targets), "concurrency": nil, "sensitive_parameters": texts(e.Hidden)}
	if spec.Concurrency > 0 {
		view["concurrency"] = spec.Concurrency
	}
	if e.Order.Task == nil {
		puppetOptions(view, *spec.Puppet)
		view["enforce_environment"] = spec.Environment != ""
		return view
	}
	parameters := map[string]wrapped{}
	var given map[string]json.RawMessage
	_ = json.Unmarshal(e.Order.Task.Params, &given) // they were checked
	for name, text := range given {
		parameters[name] = wrapped{text}
	}
	view["name"], view["parameters"], view["noop"], view["transport"] = e.Order.Task.Name, parameters, e.Order.Task.Noop, "pcp"
	return view
}
