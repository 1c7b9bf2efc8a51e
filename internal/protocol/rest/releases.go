package rest

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/release"
)

// ReleasePlanner makes releases, or says what they would do; *release.Planner is one.
type ReleasePlanner interface {
	Plan(ctx context.Context, actor fleet.Actor, o release.Order) (release.Plan, error)
	Create(ctx context.Context, actor fleet.Actor, o release.Order) (release.Plan, error)
	Refresh(ctx context.Context, actor fleet.Actor, id int64) (preview int64, err error)
}

// ReleaseRecords knows those that were made; *release.Records does.
type ReleaseRecords interface {
	Release(ctx context.Context, id int64) (release.Release, error)
	Releases(ctx context.Context, page release.Page) ([]release.Release, error)
	Targets(ctx context.Context, id int64, page release.TargetPage) ([]release.Target, error)
	Entries(ctx context.Context, id int64) ([]release.Entry, error)
	Approvals(ctx context.Context, id int64) ([]release.Approval, error)
	Wait(ctx context.Context, id, after int64) error
}

// ReleaseControl is what people do with a release; *release.Control does it.
type ReleaseControl interface {
	Pause(ctx context.Context, actor fleet.Actor, id int64, why string) (release.Release, error)
	Resume(ctx context.Context, actor fleet.Actor, id int64, maxFailures *int) (release.Release, error)
	Promote(ctx context.Context, actor fleet.Actor, id int64) (release.Release, error)
	Abort(ctx context.Context, actor fleet.Actor, id int64, why string, kill bool) (release.Release, error)
	Approve(ctx context.Context, actor fleet.Actor, id int64, text string) (release.Release, error)
}

// ReleaseDifferences compares what the targets of a release have with what they are given.
type ReleaseDifferences interface {
	// Difference is what leads from what targets have to what they are given, and what of it stays on them.
	Difference(ctx context.Context, targets []release.Target) (api.FleetDifference, api.Vanishing, error)
}

func releaseOptions(o api.ReleaseOptions) (release.Options, error) {
	for _, seconds := range []int64{o.Soak, o.Timeout, o.WaitOffline} {
		if seconds < 0 || seconds > math.MaxInt32 {
			return release.Options{}, fault.New(fault.Invalid, "field soak, timeout, wait_offline: they are seconds, not %d", seconds)
		}
	}
	return release.Options{
		MaxFailures: o.MaxFailures, Promotion: release.Promotion(o.Promote), Soak: time.Duration(o.Soak) * time.Second, NoopFirst: o.NoopFirst,
		Concurrency: o.Concurrency, Timeout: time.Duration(o.Timeout) * time.Second, WaitOffline: time.Duration(o.WaitOffline) * time.Second, ApproveBy: o.ApproveBy,
	}, nil
}

// releases answers the operations of releases.
type releases struct {
	gate        *gate
	roster      *roster
	releases    ReleaseRecords
	planner     ReleasePlanner
	control     ReleaseControl
	differences ReleaseDifferences
}

func (h *releases) bindings() []binding {
	return []binding{
		each(answer(api.ReleaseCreate, h.createRelease)),
		each(answer(api.ReleaseRollback, h.rollBack)),
		each(answer(api.ReleaseList, h.listReleases)),
		each(answer(api.ReleaseShow, h.showRelease)),
		each(answer(api.ReleaseTargets, h.listReleaseTargets)),
		each(answer(api.ReleasePause, h.pauseRelease)),
		each(answer(api.ReleaseResume, h.resumeRelease)),
		each(answer(api.ReleasePromote, h.promoteRelease)),
		each(answer(api.ReleaseAbort, h.abortRelease)),
		each(answer(api.ReleaseApprove, h.approveRelease)),
		each(answer(api.ReleaseRefresh, h.refreshRelease)),
	}
}

func (h *releases) createRelease(ctx context.Context, request api.ReleaseCreateRequest) (api.ReleaseReport, error) {
	options, err := releaseOptions(request.ReleaseOptions)
	if err == nil && request.Preview < 1 {
		err = fault.New(fault.Invalid, "field preview: which preview is to be released?")
	}
	if err != nil {
		return api.ReleaseReport{}, err
	}
	if len(request.Targets.Nodes) > 0 || request.Targets.Query != "" {
		if _, err := targetsOf(request.Targets); err != nil {
			return api.ReleaseReport{}, err
		}
	}
	return h.makeRelease(ctx, release.Order{
		Options: options, Preview: request.Preview, Targets: request.Targets, Waves: request.Waves, Description: request.Description, Refresh: request.Refresh,
	}, request.DryRun)
}

func (h *releases) rollBack(ctx context.Context, request api.RollbackRequest) (api.ReleaseReport, error) {
	options, err := releaseOptions(request.ReleaseOptions)
	if err != nil {
		return api.ReleaseReport{}, err
	}
	o := release.Order{Options: options, Of: request.Release, To: request.To, Waves: request.Waves, Description: request.Description}
	for _, name := range request.Nodes {
		node, err := fleet.ParseCertname(name)
		if err != nil {
			return api.ReleaseReport{}, err
		}
		o.Nodes = append(o.Nodes, node)
	}
	if err := h.roster.checkNodes(ctx, o.Nodes); err != nil {
		return api.ReleaseReport{}, err
	}
	return h.makeRelease(ctx, o, request.DryRun)
}

// makeRelease does what an order says, or says what that would be.
func (h *releases) makeRelease(ctx context.Context, o release.Order, dryRun bool) (api.ReleaseReport, error) {
	actor := fleet.ActorFrom(ctx)
	o.Allowed = func(ctx context.Context, env fleet.Environment, nodes []fleet.Certname) error {
		if env != "" {
			if err := h.gate.allow(ctx, fleet.ReleaseCreate, fleet.Object{Environment: env}); err != nil {
				return err
			}
		}
		return h.gate.allowEach(ctx, fleet.ReleaseCreate, nodes)
	}
	if o.Refresh && !dryRun {
		if err := h.gate.explained(ctx, fleet.PreviewCreate, rbac.AllowSome(actor, fleet.PreviewCreate)); err != nil {
			return api.ReleaseReport{}, err
		}
	}
	act := h.planner.Create
	if dryRun {
		act = h.planner.Plan
	}
	plan, err := act(ctx, actor, o)
	if err != nil {
		return api.ReleaseReport{}, err
	}
	report := planOf(plan)
	if o.Preview == 0 && dryRun {
		difference, vanishing, err := h.differences.Difference(ctx, plan.Targets)
		if err != nil {
			return report, err
		}
		report.Difference, report.Vanishing = &difference, &vanishing
	}
	return report, nil
}

// maxLeft is how many nodes that a release cannot be given to are named when it is made.
const maxLeft = 100

// maxFirst is how many nodes of each wave are named then.
const maxFirst = 5

func planOf(p release.Plan) api.ReleaseReport {
	report := api.ReleaseReport{Release: releaseOf(p.Release), Already: p.Already}
	if p.Refreshed > 0 {
		report.Refreshed = strconv.FormatInt(p.Refreshed, 10)
	}
	for _, t := range p.Targets {
		switch {
		case t.Wave == 0 && len(report.Left) < maxLeft:
			report.Left = append(report.Left, releaseTargetOf(t))
		case t.Wave > 0 && len(report.Waves[t.Wave-1].First) < maxFirst:
			report.Waves[t.Wave-1].First = append(report.Waves[t.Wave-1].First, string(t.Node))
		}
	}
	for _, f := range p.Findings {
		report.Findings = append(report.Findings, api.ReleaseFinding{Rule: f.Rule, Effect: string(f.Effect), Role: f.Role, Message: f.Message, Nodes: f.Nodes})
	}
	if p.Frozen != nil {
		report.Frozen = "until " + p.Frozen.Until.UTC().Format(time.RFC3339) + ": " + p.Frozen.Why
	}
	report.Needs = needsOf(p.Release, nil)
	return report
}

func needsOf(r release.Release, approvals []release.Approval) (needs []api.ReleaseNeed) {
	lacking := release.Lacking(r, approvals)
	for _, n := range r.Needs {
		needs = append(needs, api.ReleaseNeed{Role: n.Role, Rule: n.Rule, Message: n.Message, Met: !slices.Contains(lacking, n)})
	}
	return needs
}

func (h *releases) listReleases(ctx context.Context, request api.ReleaseListRequest) (api.List[api.Release], error) {
	list := api.List[api.Release]{Items: []api.Release{}}
	page, err := newestOf(newestRequest(request), release.States())
	if err != nil {
		return list, err
	}
	releases, err := h.releases.Releases(ctx, page)
	if err != nil {
		return list, err
	}
	if len(releases) == page.Limit {
		list.Next = strconv.FormatInt(releases[len(releases)-1].ID, 10)
	}
	releases, err = seen(ctx, h.gate, fleet.ReleaseRead, releases, func(r release.Release) fleet.Object {
		return fleet.Object{Environment: r.Environment}
	})
	for _, r := range releases {
		list.Items = append(list.Items, releaseOf(r))
	}
	return list, err
}

// release reads a release that who asks may see, or act on.
func (h *releases) release(ctx context.Context, permission fleet.Permission, id string) (release.Release, error) {
	number, err := numberOf("release", id)
	if err != nil {
		return release.Release{}, err
	}
	r, err := h.releases.Release(ctx, number)
	if err != nil {
		return r, err
	}
	return r, h.gate.allow(ctx, permission, fleet.Object{Environment: r.Environment})
}

func (h *releases) showRelease(ctx context.Context, request api.ReleaseShowRequest) (api.ReleaseReport, error) {
	r, err := h.release(ctx, fleet.ReleaseRead, request.Release)
	if err == nil && request.Behind > 0 {
		if err = h.releases.Wait(ctx, r.ID, int64(request.Behind)); err == nil {
			r, err = h.releases.Release(ctx, r.ID)
		}
	}
	if err != nil {
		return api.ReleaseReport{}, err
	}
	report := api.ReleaseReport{Release: releaseOf(r)}
	approvals, err := h.releases.Approvals(ctx, r.ID)
	if err != nil {
		return report, err
	}
	for _, a := range approvals {
		report.Approvals = append(report.Approvals, api.ReleaseApproval{Role: a.Role, By: a.By, Text: a.Text, At: a.At.UTC()})
	}
	report.Needs = needsOf(r, approvals)
	entries, err := h.releases.Entries(ctx, r.ID)
	for _, e := range entries {
		report.Entries = append(report.Entries, api.ReleaseEntry{At: e.At.UTC(), By: e.By, Text: e.Text})
	}
	return report, err
}

func (h *releases) listReleaseTargets(ctx context.Context, request api.ReleaseTargetsRequest) (api.List[api.ReleaseTarget], error) {
	list := api.List[api.ReleaseTarget]{Items: []api.ReleaseTarget{}}
	r, err := h.release(ctx, fleet.ReleaseRead, request.Release)
	if err != nil {
		return list, err
	}
	paging, err := pageOf("", request.Limit)
	if err != nil {
		return list, err
	}
	page := release.TargetPage{Limit: paging.Limit, Wave: request.Wave, Since: int64(request.Since)}
	if request.After != "" {
		after, err := numberOf("after", request.After)
		if err != nil {
			return list, err
		}
		page.After = int(after)
	}
	if request.State != "" {
		for word := range strings.SplitSeq(request.State, ",") {
			state, err := stateOf(word, release.Standings())
			if err != nil {
				return list, err
			}
			page.States = append(page.States, state)
		}
	}
	targets, err := h.releases.Targets(ctx, r.ID, page)
	for _, t := range targets {
		list.Items = append(list.Items, releaseTargetOf(t))
	}
	if len(targets) == page.Limit {
		list.Next = strconv.Itoa(targets[len(targets)-1].Number)
	}
	return list, err
}

func (h *releases) pauseRelease(ctx context.Context, request api.ReleaseActRequest) (api.Release, error) {
	return h.actOnRelease(ctx, fleet.ReleaseControl, request.Release, func(actor fleet.Actor, id int64) (release.Release, error) {
		return h.control.Pause(ctx, actor, id, request.Why)
	})
}

func (h *releases) resumeRelease(ctx context.Context, request api.ReleaseResumeRequest) (api.Release, error) {
	return h.actOnRelease(ctx, fleet.ReleaseControl, request.Release, func(actor fleet.Actor, id int64) (release.Release, error) {
		return h.control.Resume(ctx, actor, id, request.MaxFailures)
	})
}

func (h *releases) promoteRelease(ctx context.Context, request api.ReleaseRequest) (api.Release, error) {
	return h.actOnRelease(ctx, fleet.ReleaseControl, request.Release, func(actor fleet.Actor, id int64) (release.Release, error) {
		return h.control.Promote(ctx, actor, id)
	})
}

func (h *releases) abortRelease(ctx context.Context, request api.ReleaseAbortRequest) (api.Release, error) {
	return h.actOnRelease(ctx, fleet.ReleaseControl, request.Release, func(actor fleet.Actor, id int64) (release.Release, error) {
		return h.control.Abort(ctx, actor, id, request.Why, request.Kill)
	})
}

func (h *releases) approveRelease(ctx context.Context, request api.ReleaseActRequest) (api.Release, error) {
	return h.actOnRelease(ctx, fleet.ReleaseApprove, request.Release, func(actor fleet.Actor, id int64) (release.Release, error) {
		return h.control.Approve(ctx, actor, id, request.Why)
	})
}

func (h *releases) refreshRelease(ctx context.Context, request api.ReleaseRequest) (api.ReleaseRefreshed, error) {
	r, err := h.release(ctx, fleet.ReleaseCreate, request.Release)
	if err == nil {
		err = h.gate.allow(ctx, fleet.PreviewCreate, fleet.Object{Environment: r.Environment})
	}
	if err != nil {
		return api.ReleaseRefreshed{}, err
	}
	id, err := h.planner.Refresh(ctx, fleet.ActorFrom(ctx), r.ID)
	return api.ReleaseRefreshed{Preview: strconv.FormatInt(id, 10)}, err
}

func (h *releases) actOnRelease(
	ctx context.Context, permission fleet.Permission, id string, act func(fleet.Actor, int64) (release.Release, error),
) (api.Release, error) {
	r, err := h.release(ctx, permission, id)
	if err != nil {
		return api.Release{}, err
	}
	r, err = act(fleet.ActorFrom(ctx), r.ID)
	return releaseOf(r), err
}

func releaseOf(r release.Release) api.Release {
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	shown := api.Release{
		ID: number(r.ID), Kind: string(r.Kind), Preview: number(r.Preview), RollsBack: number(r.Of), Environment: string(r.Environment), Version: string(r.Version),
		Description: r.Description, Author: r.Author, State: string(r.State), Hold: string(r.Hold), Until: timeOf(r.Until), Reason: r.Reason, Wave: r.Wave,
		Waves: []api.ReleaseWave{}, Nodes: r.Counts.Total(), Counts: countsOf(r.Counts), Failures: r.Counts.Failures(),
		Digest: string(r.Digest), Revision: r.Revision, CreatedAt: r.CreatedAt.UTC(), StartedAt: timeOf(r.StartedAt), EndedAt: timeOf(r.EndedAt),
		Options: api.ReleaseOptions{
			MaxFailures: r.MaxFailures, Promote: string(r.Promotion), Soak: int64(r.Soak / time.Second), NoopFirst: r.NoopFirst, Concurrency: r.Concurrency,
			Timeout: int64(r.Timeout / time.Second), WaitOffline: int64(r.WaitOffline / time.Second), ApproveBy: r.ApproveBy,
		},
	}
	for _, w := range r.Waves {
		shown.Options.Waves = append(shown.Options.Waves, w.Size)
		shown.Waves = append(shown.Waves, api.ReleaseWave{
			Number: w.Number, Size: w.Size, Nodes: w.Nodes, State: string(w.Phase), Round: w.Round, Rehearsal: number(w.Rehearse), Job: number(w.Job),
			StartedAt: timeOf(w.StartedAt), EndedAt: timeOf(w.EndedAt), Counts: countsOf(w.Counts),
		})
	}
	return shown
}

// countsOf is how many targets are in each state; nil stays nil.
func countsOf(counts release.Counts) map[string]int {
	if counts == nil {
		return nil
	}
	shown := make(map[string]int, len(counts))
	for state, n := range counts {
		shown[string(state)] = n
	}
	return shown
}

func releaseTargetOf(t release.Target) api.ReleaseTarget {
	return api.ReleaseTarget{
		Name: string(t.Node), Wave: t.Wave, State: string(t.State), Reason: t.Reason, Catalog: string(t.Catalog.Digest), Base: string(t.Base),
		Generation: t.Generation, Report: t.Report, Revision: t.Revision,
	}
}
