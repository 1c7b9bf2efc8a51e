package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/memo"
	"github.com/tutti-project/tutti/internal/protocol/pejson"
	"github.com/tutti-project/tutti/internal/rbac"
)

// planStart notes a plan that a client runs.
func (h *plans) planStart(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Name        string          `json:"plan_name"`
		Description string          `json:"description"`
		Params      json.RawMessage `json:"params"`
		Sensitive   []string        `json:"sensitive"`
	}
	if err := h.read(w, r, maxBody, &body); err != nil {
		return err
	}
	content := memo.PlanContent{Name: body.Name, Description: body.Description, Sensitive: body.Sensitive}
	if !isNull(body.Params) {
		var params map[string]json.RawMessage
		if json.Unmarshal(body.Params, &params) != nil {
			return h.invalid("params", "it is an object")
		}
		for _, name := range body.Sensitive { // a client that did not take them out
			delete(params, name)
		}
		content.Params, _ = json.Marshal(params) //nolint:errchkjson // it was JSON
	}
	if err := memo.Check(content); err != nil {
		return err
	}
	actor := fleet.ActorFrom(r.Context())
	p, err := h.Memos.CreatePlan(r.Context(), memo.Plan{
		Actor: actor.Name, ActorKind: actor.Kind, Status: memo.Running, CreatedAt: h.Now().UTC(), PlanContent: content,
	})
	if err != nil {
		return err
	}
	pejson.Write(w, http.StatusAccepted, linksOf(r).numbered("plan_jobs", p.ID))
	return nil
}

// plan is a plan that who asks may act on: their own, or any with the permission without scope.
func (h *plans) plan(ctx context.Context, permission fleet.Permission, field, text string) (memo.Plan, error) {
	id, err := h.number(field, text)
	if err != nil {
		return memo.Plan{}, err
	}
	p, err := h.Memos.Plan(ctx, id)
	if err != nil {
		return p, h.missing(unknownJob, map[string]string{"plan_job": text}, err)
	}
	actor := fleet.ActorFrom(ctx)
	if p.Actor == actor.Name && p.ActorKind == actor.Kind || rbac.Allow(actor, permission, fleet.Object{}) == nil {
		return p, nil
	}
	return p,
		h.explained(ctx, actor, permission, fault.New(fault.Denied, "plan job %d is somebody else's, and %s %s does not have the permission %s without scope",
			id, actor.Kind, actor.Name, permission))
}

// planTask runs a task as part of a plan that a client runs.
func (h *plans) planTask(w http.ResponseWriter, r *http.Request) error {
	var body taskBody
	if err := h.read(w, r, maxTaskBody, &body); err != nil {
		return err
	}
	o, err := h.taskOrder(body)
	if err != nil {
		return err
	}
	p, err := h.plan(r.Context(), fleet.TaskRun, "plan_job", string(body.Plan))
	if err != nil {
		return err
	}
	if p.Status != memo.Running {
		return h.bad(planOver, map[string]string{"plan_job": string(body.Plan)}, "plan job %d is over (%s); start a new one", p.ID, p.Status)
	}
	o.Spec.Plan = p.ID
	return h.start(w, r, o)
}

// planFinish notes how a plan ended.
func (h *plans) planFinish(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Plan   pejson.Text     `json:"plan_job"`
		Result json.RawMessage `json:"result"`
		Status string          `json:"status"`
	}
	if err := h.read(w, r, maxBody, &body); err != nil {
		return err
	}
	status := memo.Status(body.Status)
	if status != memo.Success && status != memo.Failure {
		return h.invalid("status", "it is success or failure, not %.40q", body.Status)
	}
	return h.endPlan(w, r, fleet.TaskRun, string(body.Plan), memo.End{Status: status, Result: body.Result})
}

// stopPlan ends a plan: its next task is refused. What it started goes on, and so does the client that runs it.
func (h *plans) stopPlan(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Plan pejson.Text `json:"plan_job"`
	}
	if err := h.read(w, r, maxBody, &body); err != nil {
		return err
	}
	result, err := json.Marshal("stopped by " + fleet.ActorFrom(r.Context()).Name)
	if err != nil {
		return err
	}
	return h.endPlan(w, r, fleet.JobStop, string(body.Plan), memo.End{Status: memo.Failure, Result: result})
}

func (h *plans) endPlan(w http.ResponseWriter, r *http.Request, permission fleet.Permission, plan string, e memo.End) error {
	if err := memo.Check(memo.PlanContent{Result: e.Result}); err != nil {
		return err
	}
	p, err := h.plan(r.Context(), permission, "plan_job", plan)
	if err != nil {
		return err
	}
	e.At = h.Now().UTC()
	if p, err = h.Memos.FinishPlan(r.Context(), p.ID, e); err != nil {
		return err
	}
	pejson.Write(w, http.StatusAccepted, linksOf(r).numbered("plan_jobs", p.ID))
	return nil
}

// planRun is what plans would be started by that the server runs.
func (h *plans) planRun(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Name        string `json:"plan_name"`
		Environment string `json:"environment"`
	}
	if err := h.read(w, r, maxBody, &body); err != nil {
		return err
	}
	if body.Name == "" {
		return h.invalid("plan_name", "it is missing")
	}
	return h.noPlan(body.Name, cmp.Or(body.Environment, defaultEnvironment))
}

func (h *base) noPlan(name, env string) error {
	return h.bad(unknownPlan, map[string]string{"plan": name, "environment": env},
		"the plan %.80q is not known: this server runs no plans; run it with bolt or OpenBolt, whose tasks come here", name)
}

// planView is a plan as it is listed.
func planView(l links, p memo.Plan) map[string]any {
	id := strconv.FormatInt(p.ID, 10)
	view := map[string]any{
		"id": l.to("plan_jobs", id), "name": id, "state": p.Status, "result": value(p.Result), "owner": owner(p.Actor),
		"options": map[string]any{
			"description": p.Description, "plan_name": p.Name, "parameters": value(p.Params), "sensitive": texts(p.Sensitive), "environment": "",
		},
		"created_timestamp": stamp(p.CreatedAt), "finished_timestamp": stamp(p.FinishedAt), "duration": nil,
		"events": named{ID: l.to("plan_jobs", id, "events")}, "userdata": struct{}{},
	}
	if !p.FinishedAt.IsZero() {
		view["duration"] = p.FinishedAt.Sub(p.CreatedAt).Seconds()
	}
	return view
}

// value is a JSON value, or null.
func value(text json.RawMessage) any {
	if len(text) == 0 {
		return nil
	}
	return text
}

func (h *plans) listPlanJobs(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	p, err := h.paging(r, maxPage, "name", "timestamp")
	if err != nil {
		return err
	}
	page := memo.Page{Limit: p.limit, Offset: p.offset, Ascending: p.ascending()}
	if page.FinishedFrom, err = h.time(query, "min_finish_timestamp"); err != nil {
		return err
	}
	if page.FinishedUntil, err = h.time(query, "max_finish_timestamp"); err != nil {
		return err
	}
	results := query.Get("results")
	if results != "" && results != "include" && results != "exclude" {
		return h.invalid("results", "it is include or exclude, not %.40q", results)
	}
	if actor := fleet.ActorFrom(r.Context()); rbac.Scoped(actor, fleet.JobRead) { // their own
		page.Actor = actor.Name
	}
	plans, total, err := h.Memos.Plans(r.Context(), page)
	if err != nil {
		return err
	}
	items := make([]any, len(plans))
	for i, one := range plans {
		view := planView(linksOf(r), one)
		if results == "exclude" {
			delete(view, "result")
		}
		items[i] = view
	}
	pejson.Write(w, http.StatusOK, map[string]any{"items": items, "pagination": map[string]any{
		"limit": p.limit, "offset": p.offset, "order": p.word(), "order_by": cmp.Or(p.by, "name"), "total": total,
	}})
	return nil
}

// jobsOf is the jobs that a plan ordered, the first one first.
func (h *plans) jobsOf(ctx context.Context, plan int64) (all []job.Job, err error) {
	for page := (job.Page{Plan: plan, Limit: maxPage, Ascending: true}); ; page.Offset += maxPage {
		jobs, err := h.Jobs.Jobs(ctx, page)
		if err != nil {
			return nil, err
		}
		if all = append(all, jobs...); len(jobs) < maxPage {
			return all, nil
		}
	}
}

func (h *plans) showPlanJob(w http.ResponseWriter, r *http.Request) error {
	p, err := h.plan(r.Context(), fleet.JobRead, "id", r.PathValue("id"))
	if err != nil {
		return err
	}
	jobs, err := h.jobsOf(r.Context(), p.ID)
	if err != nil {
		return err
	}
	status := map[string][]stage{}
	for _, j := range jobs {
		status[strconv.FormatInt(j.ID, 10)] = stages(j)
	}
	view := planView(linksOf(r), p)
	at := p.CreatedAt
	if !p.FinishedAt.IsZero() {
		at = p.FinishedAt
	}
	view["timestamp"], view["status"] = stamp(at), status
	pejson.Write(w, http.StatusOK, view)
	return nil
}

// planEvent is something that happened in a plan: it ordered a job, or ended. Jobs only come, so their place is their number.
type planEvent struct {
	ID      string         `json:"id"`
	Type    string         `json:"type"`
	At      any            `json:"timestamp"`
	Details map[string]any `json:"details"`
	Message string         `json:"message"`
}

func (h *plans) planEvents(ctx context.Context, p memo.Plan) ([]planEvent, error) {
	jobs, err := h.jobsOf(ctx, p.ID)
	if err != nil {
		return nil, err
	}
	var events []planEvent
	add := func(kind string, at time.Time, details map[string]any, message string) {
		events = append(events, planEvent{strconv.Itoa(len(events) + 1), kind, stamp(at), details, message})
	}
	for _, j := range jobs {
		kind := "task_start"
		if j.Spec.Kind == job.Task {
			names := map[string]string{
				"bolt_shim::command": "command_start", "bolt_shim::script": "script_start", "bolt_shim::upload": "upload_start",
			}
			kind = cmp.Or(names[j.Spec.Task.Name], kind)
		}
		add(kind, j.CreatedAt, map[string]any{"job-id": strconv.FormatInt(j.ID, 10)}, "Started job "+strconv.FormatInt(j.ID, 10))
	}
	details := map[string]any{"plan-id": strconv.FormatInt(p.ID, 10), "result": value(p.Result)}
	switch p.Status {
	case memo.Running:
	case memo.Success:
		add("plan_finished", p.FinishedAt, details, "The plan ended well")
	case memo.Failure:
		add("plan_failed", p.FinishedAt, details, "The plan failed")
	}
	return events, nil
}

func (h *plans) planJobEvents(w http.ResponseWriter, r *http.Request) error {
	start := 0
	if r.URL.Query().Has("start") {
		var err error
		if start, err = h.count(r.URL.Query(), "start", 0, 0); err != nil {
			return err
		}
	}
	p, err := h.plan(r.Context(), fleet.JobRead, "id", r.PathValue("id"))
	if err != nil {
		return err
	}
	events, err := h.planEvents(r.Context(), p)
	if err != nil {
		return err
	}
	next := strconv.Itoa(max(len(events)+1, start))
	items := slices.Clip(events[min(max(start-1, 0), len(events)):])
	if len(items) == 0 {
		items = []planEvent{}
	}
	where := linksOf(r).to("plan_jobs", r.PathValue("id"), "events") + "?start=" + next
	pejson.Write(w, http.StatusOK, map[string]any{"next-events": map[string]string{"id": where, "event": next}, "items": items})
	return nil
}

func (h *plans) planJobEvent(w http.ResponseWriter, r *http.Request) error {
	number, err := h.number("event", r.PathValue("event"))
	if err != nil {
		return err
	}
	p, err := h.plan(r.Context(), fleet.JobRead, "id", r.PathValue("id"))
	if err != nil {
		return err
	}
	events, err := h.planEvents(r.Context(), p)
	if err != nil {
		return err
	}
	if number > int64(len(events)) {
		return h.bad(mismatchedEvent, map[string]string{"plan_job": r.PathValue("id"), "event": r.PathValue("event")},
			"plan job %d has no event %d", p.ID, number)
	}
	pejson.Write(w, http.StatusOK, events[number-1])
	return nil
}

// listPlans lists the plans that the server runs: none.
func (h *plans) listPlans(w http.ResponseWriter, r *http.Request) error {
	env, _, err := h.content(r, cmp.Or(r.URL.Query().Get("environment"), defaultEnvironment))
	if err != nil {
		return err
	}
	pejson.Write(w, http.StatusOK, map[string]any{"environment": map[string]any{"name": string(env), "code_id": nil}, "items": []any{}})
	return nil
}

func (h *plans) showPlan(_ http.ResponseWriter, r *http.Request) error {
	env, _, err := h.content(r, cmp.Or(r.URL.Query().Get("environment"), defaultEnvironment))
	if err != nil {
		return err
	}
	return h.noPlan(strings.TrimSuffix(r.PathValue("module")+"::"+r.PathValue("plan"), "::init"), string(env))
}
