package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/protocol/pejson"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/target"
)

// job is one that who asks has the permission for, without what is large in it.
func (h *base) job(ctx context.Context, permission fleet.Permission, field, text string) (job.Job, error) {
	id, err := h.number(field, text)
	if err != nil {
		return job.Job{}, err
	}
	changes, err := h.Jobs.Changes(ctx, id, math.MaxInt64, 1)
	if err != nil {
		return job.Job{}, h.missing(unknownJob, map[string]string{"job": text}, err)
	}
	return changes.Job, h.allowOwn(ctx, permission, changes.Job)
}

func (h *base) allowOwn(ctx context.Context, permission fleet.Permission, j job.Job) error {
	actor := fleet.ActorFrom(ctx)
	return h.explained(ctx, actor, permission, target.AllowOwn(actor, permission, j))
}

// jobStates is what the states of jobs are called.
var jobStates = map[job.Status]string{
	job.Queued: "ready", job.Working: "running", job.Stopping: "stopping", job.Finished: "finished", job.Failed: "failed", job.Stopped: "stopped",
}

// runStates is what the states of runs are called.
var runStates = map[job.State]string{
	job.Waiting: "new", job.Sent: "ready", job.Running: "running", job.Succeeded: "finished", job.RunFailed: "failed", job.Killed: "stopped",
	job.Skipped: "skipped", job.Errored: "errored", job.TimedOut: "errored", job.Refused: "errored", job.Offline: "errored", job.Lost: "errored",
}

// nodeStates counts runs by what their states are called; only those that there are.
func nodeStates(counts job.Counts) map[string]int {
	states := map[string]int{}
	for state, n := range counts {
		if n > 0 {
			states[runStates[state]] += n
		}
	}
	return states
}

// owner is who ordered something.
func owner(name string) map[string]any {
	return map[string]any{
		"id": pejson.UserID(name), "login": name, "display_name": name, "email": "", "is_revoked": false, "is_remote": false, "is_superuser": false,
		"is_group": false, "last_login": nil, "role_ids": []int{}, "inherited_role_ids": []int{}, "group_ids": []string{},
	}
}

// stage is a state of a job and when it was in it.
type stage struct {
	State string `json:"state"`
	Enter any    `json:"enter_time"`
	Exit  any    `json:"exit_time"`
}

// stages is the states of a job, one after the other.
func stages(j job.Job) []stage {
	list := []stage{{State: "ready", Enter: stamp(j.CreatedAt)}}
	next := func(state string, at time.Time) {
		if !at.IsZero() {
			list[len(list)-1].Exit = stamp(at)
			list = append(list, stage{State: state, Enter: stamp(at)})
		}
	}
	next("running", j.StartedAt)
	next("stopping", j.StoppingAt)
	if j.Status.Final() {
		next(jobStates[j.Status], j.FinishedAt)
	}
	return list
}

// changedAt is when a job last became something else.
func changedAt(j job.Job) time.Time {
	at := j.CreatedAt
	for _, later := range []time.Time{j.StartedAt, j.StoppingAt, j.FinishedAt} {
		if later.After(at) {
			at = later
		}
	}
	return at
}

// kindOf is the type of a job. What clients of the orchestrator cannot start has the name that it has here.
func kindOf(s job.Spec) string {
	switch {
	case s.Kind == job.Puppet:
		return "deploy"
	case s.Kind == job.Task && s.Plan > 0:
		return "plan_task"
	}
	return string(s.Kind)
}

// jobView is a job as it is listed.
func (h *jobs) jobView(l links, j job.Job) map[string]any {
	id := strconv.FormatInt(j.ID, 10)
	view := map[string]any{
		"id": l.to("jobs", id), "name": id, "state": jobStates[j.Status], "command": kindOf(j.Spec), "type": kindOf(j.Spec),
		"node_count": j.Counts.Total(), "node_states": nodeStates(j.Counts), "options": options(j), "owner": owner(j.Actor),
		"description": j.Spec.Description, "environment": map[string]any{"name": string(j.Spec.Environment)},
		"timestamp": stamp(changedAt(j)), "started_timestamp": stamp(j.StartedAt), "finished_timestamp": stamp(j.FinishedAt), "duration": nil,
		"report": named{ID: l.to("jobs", id, "report")}, "events": named{ID: l.to("jobs", id, "events")}, "nodes": named{ID: l.to("jobs", id, "nodes")},
		"userdata": userdata(j.Spec.Userdata),
	}
	if !j.StartedAt.IsZero() && !j.FinishedAt.IsZero() {
		view["duration"] = fmt.Sprintf("%.1f", j.FinishedAt.Sub(j.StartedAt).Seconds())
	}
	return view
}

func userdata(text json.RawMessage) any {
	if len(text) == 0 {
		return struct{}{}
	}
	return text
}

// options is an order as it was given, with defaults.
func options(j job.Job) map[string]any {
	s := j.Spec
	o := map[string]any{
		"description": s.Description, "scope": scopeView(s.Targets), "concurrency": nil, "timeout": int64(s.Timeout / time.Second),
		"environment": string(s.Environment), "target": s.Targets.App,
	}
	if s.Concurrency > 0 {
		o["concurrency"] = s.Concurrency
	}
	if s.Schedule > 0 {
		o["scheduled-job-id"] = strconv.FormatInt(s.Schedule, 10)
	}
	if s.Plan > 0 {
		o["plan_job"] = strconv.FormatInt(s.Plan, 10)
	}
	switch s.Kind {
	case job.Puppet:
		puppetOptions(o, *s.Puppet)
		o["enforce_environment"] = s.Environment != ""
	case job.Task:
		o["task"], o["params"], o["sensitive"], o["noop"], o["transport"] = s.Task.Name, params(*s.Task), texts(s.Task.Hidden), s.Task.Noop, "pcp"
	case job.Command:
		o["command"] = s.Command.Command
	case job.Script:
		o["script"] = s.Script.Script.Name
	case job.Action:
		o["action"] = s.Action.Module + "." + s.Action.Action
	case job.File:
		o["files"] = len(s.File.Entries)
	}
	return o
}

func puppetOptions(o map[string]any, p job.PuppetSpec) {
	o["noop"], o["no_noop"], o["debug"], o["trace"], o["evaltrace"] = p.Noop, p.NoNoop, p.Debug, p.Trace, p.Evaltrace
	for name, list := range map[string][]string{"tags": p.Tags, "skip_tags": p.SkipTags} {
		if len(list) > 0 {
			o[name] = strings.Join(list, ",")
		}
	}
	if p.Ordering != "" {
		o["ordering"] = p.Ordering
	}
	if p.UseCachedCatalog || p.NoCachedCatalog {
		o["use_cached_catalog"] = p.UseCachedCatalog
	}
	if p.UseCacheOnFailure != nil {
		o["usecacheonfailure"] = *p.UseCacheOnFailure
	}
	for name, seconds := range map[string]*int{
		"filetimeout": p.FileTimeout, "http_connect_timeout": p.HTTPConnectTimeout, "http_keepalive_timeout": p.HTTPKeepaliveTimeout,
		"http_read_timeout": p.HTTPReadTimeout,
	} {
		if seconds != nil {
			o[name] = *seconds
		}
	}
}

// params is what a task was given, without what is secret.
func params(t job.TaskSpec) any {
	if len(t.Parameters) == 0 {
		return struct{}{}
	}
	return t.Parameters
}

func texts(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// jobColumns is what lists of jobs can be ordered by; by name is by number.
var jobColumns = map[string]job.Column{
	"owner": job.ByActor, "timestamp": job.ByTime, "environment": job.ByEnvironment, "state": job.ByStatus, "name": "",
}

// listJobs lists jobs, the newest first unless somebody says otherwise.
func (h *jobs) listJobs(w http.ResponseWriter, r *http.Request) error {
	ctx, query := r.Context(), r.URL.Query()
	p, err := h.paging(r, maxPage, "owner", "timestamp", "environment", "name", "state")
	if err != nil {
		return err
	}
	page := job.Page{Limit: p.limit, Offset: p.offset, By: jobColumns[p.by], Ascending: p.ascending()}
	if err := h.jobTypes(&page, query.Get("type"), query.Get("task")); err != nil {
		return err
	}
	if page.FinishedFrom, err = h.time(query, "min_finish_timestamp"); err != nil {
		return err
	}
	if page.FinishedUntil, err = h.time(query, "max_finish_timestamp"); err != nil {
		return err
	}
	if actor := fleet.ActorFrom(ctx); rbac.Scoped(actor, fleet.JobRead) { // their own
		page.Actor = actor.Name
	}
	jobs, err := h.Jobs.Jobs(ctx, page)
	if err != nil {
		return err
	}
	total, err := h.Jobs.CountJobs(ctx, page)
	if err != nil {
		return err
	}
	items := make([]any, len(jobs))
	for i, j := range jobs {
		items[i] = h.jobView(linksOf(r), j)
	}
	pejson.Write(w, http.StatusOK, map[string]any{"items": items, "pagination": map[string]any{
		"limit": p.limit, "offset": p.offset, "order": p.word(), "order_by": cmp.Or(p.by, "name"), "total": total, "type": query.Get("type"),
	}})
	return nil
}

// jobTypes reads which types of jobs are wanted, and of which task.
func (h *jobs) jobTypes(page *job.Page, kind, task string) error {
	plans := kind == "plan_task"
	switch kind {
	case "":
	case "deploy":
		page.Kinds = []job.Kind{job.Puppet}
		if task != "" {
			return h.invalid("task", "it cannot be asked for together with type deploy")
		}
	case "task", "plan_task":
		page.Kinds, page.Plans = []job.Kind{job.Task}, &plans
	default:
		return h.invalid("type", "it is deploy, task or plan_task, not %.40q", kind)
	}
	page.TaskPart = strings.ToLower(task)
	return nil
}

// showJob is one job, with its states one after the other.
func (h *jobs) showJob(w http.ResponseWriter, r *http.Request) error {
	j, err := h.job(r.Context(), fleet.JobRead, "id", r.PathValue("id"))
	if err != nil {
		return err
	}
	if j, err = h.Jobs.Job(r.Context(), j.ID); err != nil { // with its nodes and parameters
		return err
	}
	view := h.jobView(linksOf(r), j)
	view["status"] = stages(j)
	pejson.Write(w, http.StatusOK, view)
	return nil
}
