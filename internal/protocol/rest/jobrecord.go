package rest

import (
	"context"
	"slices"
	"strconv"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/rbac"
)

// jobID reads the id of a job.
func jobID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		return 0, fault.New(fault.Invalid, "a job's id is a number such as 12, not %.40q", text)
	}
	return id, nil
}

// jobs answers what became of jobs, and stops them.
type jobs struct {
	gate    *gate
	streams *streams
	jobs    JobRecords
	orders  JobOrders // to stop
}

func (h *jobs) bindings() []binding {
	return []binding{
		each(answer(api.JobList, h.listJobs)),
		each(answer(api.JobShow, h.showJob)),
		each(answer(api.JobRuns, h.listRuns)),
		each(answer(api.JobOutput, h.listOutput)),
		each(raw(api.JobEvents, h.streamJob)),
		each(answer(api.JobStop, h.stopJob)),
	}
}

// job is one that who asks has the permission for.
func (h *jobs) job(ctx context.Context, permission fleet.Permission, text string) (job.Job, error) {
	id, err := jobID(text)
	if err != nil {
		return job.Job{}, err
	}
	j, err := h.jobs.Job(ctx, id)
	if err != nil {
		return job.Job{}, err
	}
	return j, h.allowOwn(ctx, permission, j)
}

func (h *jobs) showJob(ctx context.Context, request api.JobRequest) (api.Job, error) {
	j, err := h.job(ctx, fleet.JobRead, request.Job)
	if err != nil {
		return api.Job{}, err
	}
	return wholeJob(j), nil
}

// active stands for the states of jobs that go on.
const active = "active"

func (h *jobs) listJobs(ctx context.Context, request api.JobListRequest) (api.List[api.Job], error) {
	list := api.List[api.Job]{Items: []api.Job{}}
	page, err := h.jobPage(ctx, request)
	if err != nil {
		return list, err
	}
	jobs, err := h.jobs.Jobs(ctx, page)
	for _, j := range jobs {
		list.Items = append(list.Items, jobOf(j))
	}
	if len(jobs) == page.Limit {
		list.Next = list.Items[len(jobs)-1].ID
	}
	return list, err
}

// jobPage is what a list asks for; with the permission for some nodes only, their own jobs.
func (h *jobs) jobPage(ctx context.Context, request api.JobListRequest) (page job.Page, err error) {
	paging, err := pageOf(request.After, request.Limit)
	if err != nil {
		return page, err
	}
	page = job.Page{Limit: paging.Limit, Actor: request.Actor, Task: request.Task}
	if request.After != "" {
		if page.Before, err = jobID(request.After); err != nil {
			return page, err
		}
	}
	if request.Node != "" {
		if page.Node, err = fleet.ParseCertname(request.Node); err != nil {
			return page, err
		}
	}
	if page.Statuses, err = statusesOf(request.State); err != nil {
		return page, err
	}
	if kind := job.Kind(request.Kind); kind != "" {
		if !slices.Contains([]job.Kind{job.Puppet, job.Task, job.Action, job.Command, job.Script, job.File}, kind) {
			return page, fault.New(fault.Invalid, "kind must be puppet, task, action, command, script or file, not %.40q", request.Kind)
		}
		page.Kinds = []job.Kind{kind}
	}
	actor := fleet.ActorFrom(ctx)
	if !rbac.Scoped(actor, fleet.JobRead) {
		return page, nil
	}
	if page.Actor != "" && page.Actor != actor.Name {
		return page, h.gate.explained(ctx, fleet.JobRead, fault.New(fault.Denied,
			"%s %s has the permission %s for some nodes only, and so for jobs of their own",
			actor.Kind, actor.Name, fleet.JobRead))
	}
	page.Actor = actor.Name
	return page, nil
}

func statusesOf(state string) ([]job.Status, error) {
	switch status := job.Status(state); {
	case state == "":
		return nil, nil
	case state == active:
		return []job.Status{job.Queued, job.Working, job.Stopping}, nil
	case slices.Contains(job.Statuses(), status):
		return []job.Status{status}, nil
	}
	return nil, fault.New(fault.Invalid, "state must be queued, running, stopping, finished, failed, stopped or %s, not %.40q", active, state)
}

// final stands for the states of runs that have ended.
const final = "final"

func statesOf(state string) ([]job.State, error) {
	ended := func(s job.State) bool { return !s.Final() }
	switch one := job.State(state); {
	case state == "":
		return nil, nil
	case state == final:
		return slices.DeleteFunc(job.States(), ended), nil
	case state == failing:
		return slices.DeleteFunc(job.States(), func(s job.State) bool { return ended(s) || s == job.Succeeded }), nil
	case slices.Contains(job.States(), one):
		return []job.State{one}, nil
	}
	return nil,
		fault.New(fault.Invalid, "state must be a state of runs such as waiting, running, succeeded, failed or offline, or %s or %s, not %.40q", final,
			failing, state)
}

func (h *jobs) listRuns(ctx context.Context, request api.JobRunsRequest) (api.List[api.JobRun], error) {
	list := api.List[api.JobRun]{Items: []api.JobRun{}}
	page, err := runPage(request)
	if err != nil {
		return list, err
	}
	j, err := h.job(ctx, fleet.JobRead, request.Job)
	if err != nil {
		return list, err
	}
	runs, err := h.jobs.Runs(ctx, j.ID, page)
	for _, r := range runs {
		list.Items = append(list.Items, runOf(j.ID, r))
	}
	if len(runs) == page.Limit {
		list.Next = strconv.Itoa(runs[len(runs)-1].Number)
	}
	if len(runs) == 0 && page.Node != "" && page.After == 0 && page.States == nil && err == nil {
		err = noRun(j.ID, page.Node)
	}
	return list, err
}

func noRun(id int64, node fleet.Certname) error {
	return fault.New(fault.NotFound, "job %d has no run on %s", id, node)
}

func runPage(request api.JobRunsRequest) (page job.RunPage, err error) {
	paging, err := pageOf(request.After, request.Limit)
	if err != nil {
		return page, err
	}
	page.Limit = paging.Limit
	if page.After, err = afterOf(request.After); err != nil {
		return page, err
	}
	if request.Node != "" {
		if page.Node, err = fleet.ParseCertname(request.Node); err != nil {
			return page, err
		}
	}
	page.States, err = statesOf(request.State)
	return page, err
}

// afterOf reads a place in a list of numbers.
func afterOf(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, badAfter(text)
	}
	return n, nil
}

func badAfter(text string) error {
	return fault.New(fault.Invalid, "after must be the next of the page before, not %.40q", text)
}

func (h *jobs) listOutput(ctx context.Context, request api.JobOutputRequest) (api.List[api.JobLine], error) {
	list := api.List[api.JobLine]{Items: []api.JobLine{}}
	paging, err := pageOf(request.After, request.Limit)
	if err != nil {
		return list, err
	}
	page := job.OutputPage{Limit: paging.Limit}
	var ok bool
	if page.After, ok = parsePlace(request.After); !ok {
		return list, badAfter(request.After)
	}
	j, err := h.job(ctx, fleet.JobRead, request.Job)
	if err != nil {
		return list, err
	}
	if request.Node != "" {
		if page.Node, err = h.runOn(ctx, j.ID, request.Node); err != nil {
			return list, err
		}
	}
	lines, end, err := h.jobs.Output(ctx, j.ID, page)
	for _, l := range lines {
		list.Items = append(list.Items, api.JobLine{Node: string(l.Node), Stream: string(l.Stream), Number: l.Number, At: l.At.UTC(), Text: l.Text, More: l.More})
	}
	if len(lines) == page.Limit {
		list.Next = placeText(end)
	}
	return list, err
}

// runOn is a node of a job.
func (h *jobs) runOn(ctx context.Context, id int64, name string) (fleet.Certname, error) {
	node, err := fleet.ParseCertname(name)
	if err != nil {
		return "", err
	}
	runs, err := h.jobs.Runs(ctx, id, job.RunPage{Limit: 1, Node: node})
	if err == nil && len(runs) == 0 {
		err = noRun(id, node)
	}
	return node, err
}
