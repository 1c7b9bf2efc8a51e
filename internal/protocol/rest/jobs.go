package rest

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action/filter"
	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/target"
)

// JobOrders takes orders; *job.Service does. Errors are job's.
type JobOrders interface {
	// Plan is what an order would do now.
	Plan(ctx context.Context, actor fleet.Actor, spec job.Spec) (job.Plan, error)
	// Create orders a job.
	Create(ctx context.Context, actor fleet.Actor, spec job.Spec) (job.Job, error)
	// Rerun orders what a job did again, as a new job.
	Rerun(ctx context.Context, actor fleet.Actor, id int64, again job.Again) (job.Job, error)
	// Stop lets nothing more of a job begin.
	Stop(ctx context.Context, actor fleet.Actor, id int64, kill bool) (job.Job, error)
}

// JobRecords answers what became of jobs; *job.Service does.
type JobRecords interface {
	Job(ctx context.Context, id int64) (job.Job, error)
	Jobs(ctx context.Context, page job.Page) ([]job.Job, error)
	Runs(ctx context.Context, id int64, page job.RunPage) ([]job.Run, error)
	Output(ctx context.Context, id int64, page job.OutputPage) ([]job.Line, job.Place, error)
	// Changes is what changed behind the change with a number, at most about n runs.
	Changes(ctx context.Context, id, after int64, n int) (job.Changes, error)
	// Wait returns when a job may have changed since, or after a moment.
	Wait(ctx context.Context, id, after int64) error
	// Glance is a job as it is, or was a moment ago: many may ask for it again and again. WaitGlance is Wait for these.
	Glance(ctx context.Context, id int64) (job.Job, error)
	WaitGlance(ctx context.Context, id, after int64) error
}

// subject is what an order is about, for the audit log.
type subject struct {
	Name string `json:"name"`
}

// orders takes orders of jobs, and the files that they send.
type orders struct {
	gate        *gate
	recorder    *recorder
	roster      *roster
	differences *differences
	nodes       inventory.NodeStore
	jobs        *jobs
	orders      JobOrders
	records     JobRecords
	tasks       Tasks
	invoker     Invoker
	blobs       cas.Store
	deliveries  Deliveries
	changes     CatalogChanges
}

func (h *orders) bindings() []binding {
	return []binding{
		each(ordering(h, api.JobPuppet, func(r api.JobPuppetRequest) api.JobOrder { return r.JobOrder }, h.puppetSpec)),
		each(ordering(h, api.JobTask, func(r api.JobTaskRequest) api.JobOrder { return r.JobOrder }, h.taskSpec)),
		each(ordering(h, api.JobAction, func(r api.JobActionRequest) api.JobOrder { return r.JobOrder }, h.actionSpec)),
		each(ordering(h, api.JobCommand, func(r api.JobCommandRequest) api.JobOrder { return r.JobOrder }, h.commandSpec)),
		each(ordering(h, api.JobScript, func(r api.JobScriptRequest) api.JobOrder { return r.JobOrder }, h.scriptSpec)),
		each(ordering(h, api.JobFile, func(r api.JobFileRequest) api.JobOrder { return r.JobOrder }, h.fileSpec)),
		when(h.gate.allowUpload, raw(api.JobUpload, h.uploadJobFile)),
		each(raw(api.JobRerun, h.rerunJob)),
	}
}

// ordering binds an operation that orders a job: spec says what the
// request asks for. A dry run is no act.
func ordering[Request any](
	h *orders, op api.Op[Request, api.JobStarted], common func(Request) api.JobOrder, spec func(context.Context, Request) (job.Spec, error),
) binding {
	return raw(op, func(_ http.ResponseWriter, r *http.Request, begin func(any) error) (any, error) {
		var request Request
		if err := api.Bind(r, &request); err != nil {
			return nil, err
		}
		ctx, order := r.Context(), common(request)
		s, err := spec(ctx, request)
		if err != nil {
			return nil, err
		}
		if err := fill(&s, order); err != nil {
			return nil, err
		}
		if err := h.roster.checkNodes(ctx, s.Targets.Nodes); err != nil {
			return nil, err
		}
		d := submission{orders: h, permission: op.Operation().Permission, order: order, begin: func() error { return begin(subject{auditText(s)}) }}
		return d.enter(ctx, s, func(s job.Spec) (job.Job, error) { return h.orders.Create(ctx, fleet.ActorFrom(ctx), s) })
	})
}

// fill completes a spec with what all orders have in common.
func fill(s *job.Spec, order api.JobOrder) (err error) {
	if s.Targets, err = targetsOf(order.Targets); err != nil {
		return err
	}
	s.Ordered, s.Concurrency, s.MaxFailures, s.Description = order.Ordered, order.Concurrency, order.MaxFailures, order.Description
	if s.Timeout, err = secondsOf("timeout", order.Timeout); err != nil {
		return err
	}
	s.WaitOffline, err = secondsOf("wait_offline", order.WaitOffline)
	return err
}

// secondsOf is a duration of a request.
func secondsOf(field string, seconds int64) (time.Duration, error) {
	if seconds < 0 || seconds > int64(job.MaxTime/time.Second) {
		return 0, fault.New(fault.Invalid, "field %s: it is a number of seconds, 0 to %d", field, int64(job.MaxTime/time.Second))
	}
	return time.Duration(seconds) * time.Second, nil
}

func targetsOf(t api.JobTargets) (targets job.Targets, err error) {
	targets = job.Targets{
		Group: t.Group, Query: t.Query, App: t.App, All: t.All, Filter: (*filter.Filter)(t.Filter), Limit: t.Limit, Seed: t.Seed,
	}
	if t.All && (len(t.Nodes) > 0 || t.Group != "" || t.Query != "" || t.App != "") {
		return targets, fault.New(fault.Invalid, "field targets: all is every node, so it stands alone: leave out nodes, group, query and app")
	}
	if targets.Nodes, err = certnamesOf(t.Nodes); err != nil {
		return targets, err
	}
	targets.Exclude, err = certnamesOf(t.Exclude)
	return targets, err
}

func certnamesOf(names []string) ([]fleet.Certname, error) {
	var certnames []fleet.Certname
	for _, name := range names {
		certname, err := fleet.ParseCertname(name)
		if err != nil {
			return nil, err
		}
		certnames = append(certnames, certname)
	}
	return certnames, nil
}

// submission is an order on its way: its plan is shown, or checked, and it becomes a job.
type submission struct {
	orders     *orders
	permission fleet.Permission
	order      api.JobOrder
	begin      func() error // of the act
}

// enter answers a dry run with the plan, and otherwise makes a job of the spec.
func (d submission) enter(ctx context.Context, s job.Spec, create func(job.Spec) (job.Job, error)) (api.JobStarted, error) {
	if !d.order.DryRun {
		if err := d.begin(); err != nil {
			return api.JobStarted{}, err
		}
	}
	plan, err := d.orders.orders.Plan(ctx, fleet.ActorFrom(ctx), s)
	if err != nil {
		return api.JobStarted{}, err
	}
	shown, denied := d.planOf(plan)
	if shown.Denied, err = d.orders.gate.visibleNodes(ctx, denied); err != nil {
		return api.JobStarted{}, err
	}
	shown.DeniedUnseen = len(denied) - len(shown.Denied)
	if d.order.DryRun {
		err := d.expect(ctx, s.Kind, &shown)
		return api.JobStarted{Plan: shown}, err
	}
	if err := d.may(ctx, plan, denied); err != nil {
		return api.JobStarted{}, err
	}
	if shown.Nodes == 0 {
		return api.JobStarted{}, fault.New(fault.Invalid, "no node is meant by these targets; nothing was started")
	}
	if d.order.Expect != "" && d.order.Expect != shown.Digest {
		return api.JobStarted{},
			fault.New(fault.Conflict, "the nodes are not those of the plan any more: there are %d now; look at the plan again. Nothing was started", shown.Nodes)
	}
	s.Targets.Exclude = append(s.Targets.Exclude, denied...)
	for _, t := range shown.Targets { // looking again could find others, and asks nodes once more
		s.Targets.Settled = append(s.Targets.Settled, fleet.Certname(t.Node))
	}
	created, err := create(s)
	if err != nil {
		return api.JobStarted{}, d.whoHelps(ctx, err)
	}
	shown.Targets = nil
	return api.JobStarted{Job: new(wholeJob(created)), Plan: shown}, nil
}

// whoHelps says of a refusal who could help.
func (d submission) whoHelps(ctx context.Context, err error) error {
	if fault.Of(err) != fault.Denied {
		return err
	}
	return d.orders.gate.explained(ctx, d.permission, err)
}

// may returns nil when nobody of the plan is denied, or those are to be left out.
func (d submission) may(ctx context.Context, plan job.Plan, denied []fleet.Certname) error {
	if len(denied) == 0 || d.order.SkipDenied && len(denied) < len(plan.Targets) {
		return nil
	}
	i := slices.IndexFunc(plan.Targets, func(t job.Target) bool { return t.Denied != "" })
	named, err := d.orders.gate.nameable(ctx, denied)
	if err != nil {
		return err
	}
	return d.orders.gate.explained(ctx, d.permission, fault.New(fault.Denied,
		"%s. It is denied for %d of %s%s. Nothing was started; skip_denied leaves them out",
		strings.TrimSuffix(plan.Targets[i].Denied, "."), len(denied), fault.Count(len(plan.Targets), "node"), named))
}

// planOf is a plan for who asked, without those that are denied.
func (d submission) planOf(plan job.Plan) (shown api.JobPlan, denied []fleet.Certname) {
	var names []string
	layer, waits := places(plan)
	for _, t := range plan.Targets {
		if t.Denied != "" {
			denied = append(denied, t.Node)
			continue
		}
		target := api.JobTarget{Node: string(t.Node), Layer: layer[t.Node], WaitsFor: waits[t.Node]}
		if t.Connected {
			if target.Connected = d.orders.roster.connected(t.Node); target.Connected == nil { // it went a moment ago
				target.Connected = &api.Connected{Agent: t.Agent}
			}
		} else {
			shown.Offline = append(shown.Offline, target.Node)
			if d.orders.roster.lastConnected(t.Node) == nil {
				shown.NeverConnected = append(shown.NeverConnected, target.Node)
			}
		}
		names = append(names, target.Node)
		shown.Targets = append(shown.Targets, target)
	}
	shown.Nodes = len(names)
	shown.Digest = string(fleet.DigestOf([]byte(strings.Join(names, "\n"))))
	return shown, denied
}

// places is the layer of each node of a plan, and for whom it waits.
func places(plan job.Plan) (layer map[fleet.Certname]int, waits map[fleet.Certname][]string) {
	layer, waits = map[fleet.Certname]int{}, map[fleet.Certname][]string{}
	for i, nodes := range plan.Layers {
		for _, node := range nodes {
			layer[node] = i
		}
	}
	for _, e := range plan.Edges {
		waits[e.Waits] = append(waits[e.Waits], string(e.For))
	}
	return layer, waits
}

// auditText is what the audit log says of an order. The values of parameters are not in it.
func auditText(s job.Spec) string {
	return strings.TrimSpace(string(s.Kind)+" "+titleOf(s)) + " on " + s.Targets.Text()
}

// allowOwn returns nil when who asks has the permission without scope; with one, when the job
// is their own.
func (h *jobs) allowOwn(ctx context.Context, permission fleet.Permission, j job.Job) error {
	return h.gate.explained(ctx, permission, target.AllowOwn(fleet.ActorFrom(ctx), permission, j))
}
