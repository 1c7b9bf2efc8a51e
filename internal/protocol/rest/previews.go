package rest

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/diff"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/preview"
)

// Previews knows previews; *preview.Service does.
type Previews interface {
	Preview(ctx context.Context, id int64) (preview.Preview, error)
	Previews(ctx context.Context, page preview.Page) ([]preview.Preview, error)
	Wait(ctx context.Context, id int64, after int) error
	AcrossEngines(ctx context.Context, p preview.Preview, share preview.Share) (bool, error)
	Shares(ctx context.Context, id int64, page preview.SharePage) ([]preview.Share, error)
	Groups(ctx context.Context, p preview.Preview, page preview.GroupPage) ([]api.ChangeGroup, error)
	Members(ctx context.Context, p preview.Preview, keys []string, page preview.SharePage) ([]preview.Share, error)
	Remarks(ctx context.Context, id int64) ([]preview.Remark, error)
	Warnings(ctx context.Context, p preview.Preview) (all []preview.Warning, unknown int, err error)
}

// PreviewOrders is what people do with previews; *preview.Service does it.
type PreviewOrders interface {
	Create(ctx context.Context, actor fleet.Actor, o preview.Order) (preview.Preview, error)
	Say(ctx context.Context, actor fleet.Actor, id int64, say preview.Saying) ([]preview.Remark, error)
	Cancel(ctx context.Context, actor fleet.Actor, id int64) (preview.Preview, error)
}

// previews answers the operations of previews.
type previews struct {
	gate        *gate
	streams     *streams
	differences *differences
	noise       *noise
	previews    Previews
	orders      PreviewOrders
	code        Code
	blobs       cas.Store
	log         *slog.Logger
}

func (h *previews) bindings() []binding {
	return []binding{
		answer(api.PreviewCreate, h.createPreview),
		each(answer(api.PreviewList, h.listPreviews)),
		each(answer(api.PreviewShow, h.showPreview)),
		each(raw(api.PreviewEvents, h.streamPreview)),
		each(answer(api.PreviewNodes, h.listPreviewNodes)),
		each(answer(api.PreviewNodeOf, h.showPreviewNode)),
		each(answer(api.PreviewWarnings, h.listPreviewWarnings)),
		each(answer(api.PreviewSay, h.sayOnPreview)),
		each(answer(api.PreviewCancel, h.cancelPreview)),
	}
}

func (h *previews) createPreview(ctx context.Context, request api.PreviewCreateRequest) (api.Preview, error) {
	env, err := fleet.ParseEnvironment(request.Environment)
	if err != nil {
		return api.Preview{}, err
	}
	if _, err := targetsOf(request.Targets); err != nil {
		return api.Preview{}, err
	}
	version, err := h.previewed(ctx, env, request)
	if err != nil {
		return api.Preview{}, err
	}
	versions, err := h.code.Versions(ctx, env, 1)
	if err != nil {
		return api.Preview{}, err
	}
	p, err := h.orders.Create(ctx, fleet.ActorFrom(ctx), preview.Order{
		Environment: env, New: len(versions) == 0, Version: version.ID, Commit: version.Commit, Description: request.Description,
		Targets: request.Targets, InWords: inWords(env, request.Targets),
		Allowed: func(ctx context.Context, nodes []fleet.Certname) error {
			return h.gate.allowEach(ctx, fleet.PreviewCreate, nodes)
		},
	})
	shown := previewOf(p)
	if err == nil && (len(request.Manifest) > 0 || request.Engine != "") {
		shown.Check = h.inspected(ctx, env, version.ID)
	}
	return shown, err
}

// inspected is what is wrong with files of a previewed version. The preview compiles it anyway: without this it says less.
func (h *previews) inspected(ctx context.Context, env fleet.Environment, version fleet.Digest) *api.CodeCheck {
	report, err := h.code.Inspect(ctx, env, version)
	if err != nil {
		h.log.WarnContext(ctx, "the files of a preview could not be checked", "environment", env, "version", version.Short(), "err", err)
		return nil
	}
	return checkOf(&report)
}

// previewed is the version that a request is about.
func (h *previews) previewed(ctx context.Context, env fleet.Environment, request api.PreviewCreateRequest) (code.Version, error) {
	if len(request.Manifest) > 0 {
		if request.Version != "" {
			return code.Version{}, fault.New(fault.Invalid, "field version: a manifest is one already; give one of them")
		}
		manifest, err := code.ParseManifest(request.Manifest)
		if err != nil {
			return code.Version{}, err
		}
		manifest.Engine = cmp.Or(request.Engine, manifest.Engine)
		return h.code.Stage(ctx, code.Deployment{
			Environment: env, Manifest: manifest, Commit: request.Commit, Origin: request.Origin, Actor: fleet.ActorFrom(ctx).Name, At: time.Now(),
		})
	}
	version, err := h.deployed(ctx, env, request.Version)
	if err != nil || request.Engine == "" {
		return version, err
	}
	manifest, err := h.code.Manifest(ctx, env, version.ID)
	if err != nil {
		return code.Version{}, err
	}
	manifest.Engine = request.Engine
	return h.code.Stage(ctx, code.Deployment{
		Environment: env, Manifest: manifest, Commit: version.Commit, Origin: version.Origin, Actor: fleet.ActorFrom(ctx).Name, At: time.Now(),
	})
}

// deployed is a version of an environment by its first digits, or else the current one.
func (h *previews) deployed(ctx context.Context, env fleet.Environment, prefix string) (code.Version, error) {
	versions, err := h.code.Versions(ctx, env, maxVersions)
	if err != nil {
		return code.Version{}, err
	}
	for _, v := range versions {
		if prefix == "" || strings.HasPrefix(string(v.ID), prefix) {
			return v, nil
		}
	}
	if len(versions) == 0 {
		return code.Version{}, fault.New(fault.NotFound, "environment %s has no code; deploy it, or preview a directory", env)
	}
	return code.Version{}, fault.New(fault.NotFound, "environment %s has no version %.80q; see `tutti code versions %s`", env, prefix, env)
}

// inWords says for people which nodes are meant.
func inWords(env fleet.Environment, t api.JobTargets) string {
	var parts []string
	if n := len(t.Nodes); n > 0 {
		parts = append(parts, strings.Join(t.Nodes[:min(n, 3)], ", "))
		if n > 3 {
			parts[0] += fmt.Sprintf(" and %d more", n-3)
		}
	}
	if t.Group != "" {
		parts = append(parts, "group "+t.Group)
	}
	if t.Query != "" {
		parts = append(parts, "nodes where "+t.Query)
	}
	if t.App != "" {
		parts = append(parts, "application "+t.App)
	}
	switch {
	case t.All:
		parts = append(parts, "all nodes")
	case len(parts) == 0:
		parts = append(parts, "environment "+string(env))
	}
	text := strings.Join(parts, "; ")
	if n := len(t.Exclude); n > 0 {
		text += fmt.Sprintf(", without %d", n)
	}
	return text
}

func (h *previews) listPreviews(ctx context.Context, request api.PreviewListRequest) (api.List[api.Preview], error) {
	list := api.List[api.Preview]{Items: []api.Preview{}}
	page, err := newestOf(newestRequest(request), preview.States())
	if err != nil {
		return list, err
	}
	previews, err := h.previews.Previews(ctx, page)
	if err != nil {
		return list, err
	}
	if len(previews) == page.Limit {
		list.Next = strconv.FormatInt(previews[len(previews)-1].ID, 10)
	}
	previews, err = seen(ctx, h.gate, fleet.PreviewRead, previews, func(p preview.Preview) fleet.Object {
		return fleet.Object{Environment: p.Environment}
	})
	for _, p := range previews {
		quiet, err := h.noise.rules.Quiet(ctx, p)
		if err != nil {
			return list, err
		}
		item := previewOf(p)
		item.Quiet, item.EngineOnly = len(quiet.Nodes), len(quiet.Form)
		list.Items = append(list.Items, item)
	}
	return list, err
}

// preview reads a preview that who asks may see, or act on.
func (h *previews) preview(ctx context.Context, permission fleet.Permission, id string) (preview.Preview, error) {
	number, err := numberOf("preview", id)
	if err != nil {
		return preview.Preview{}, err
	}
	p, err := h.previews.Preview(ctx, number)
	if err != nil {
		return p, err
	}
	return p, h.gate.allow(ctx, permission, fleet.Object{Environment: p.Environment})
}

// engineOf is the engine that a preview's version names. A version that is not kept any more names none.
func (h *previews) engineOf(ctx context.Context, p preview.Preview) (string, error) {
	manifest, err := h.code.Manifest(ctx, p.Environment, p.Version)
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	return manifest.Engine, err
}

func (h *previews) showPreview(ctx context.Context, request api.PreviewShowRequest) (api.PreviewReport, error) {
	report := api.PreviewReport{Changes: []api.PreviewChange{}, Remarks: []api.PreviewRemark{}}
	p, err := h.preview(ctx, fleet.PreviewRead, request.Preview)
	if err != nil {
		return report, err
	}
	page, err := groupPage(request.After, request.Limit)
	if err != nil {
		return report, err
	}
	groups, err := h.previews.Groups(ctx, p, page)
	if err != nil {
		return report, err
	}
	remarks, err := h.previews.Remarks(ctx, p.ID)
	if err != nil {
		return report, err
	}
	said := map[string][]preview.Remark{}
	for _, r := range remarks {
		said[r.Group] = append(said[r.Group], r)
	}
	quiet, err := h.noise.rules.Quiet(ctx, p)
	if err != nil {
		return report, err
	}
	report.Preview, report.Hidden = previewOf(p), hiddenOf(quiet)
	if report.Engine, err = h.engineOf(ctx, p); err != nil {
		return report, err
	}
	report.Quiet, report.EngineOnly = len(quiet.Nodes), len(quiet.Form)
	for _, group := range groups {
		change := previewChangeOf(group, said[group.Key])
		change.Noise = quiet.By[group.Key]
		report.Changes = append(report.Changes, change)
	}
	for _, r := range said[""] {
		report.Remarks = append(report.Remarks, remarkOf(r))
	}
	if len(groups) == page.Limit {
		report.Next = strconv.Itoa(page.From + page.Limit)
	}
	return report, nil
}

// groupPage is the page behind the change at a place.
func groupPage(after string, limit int) (preview.GroupPage, error) {
	paging, err := pageOf("", limit)
	page := preview.GroupPage{Limit: paging.Limit}
	if err == nil && after != "" {
		var from int64
		from, err = numberOf("after", after)
		page.From = int(from)
	}
	return page, err
}

func previewChangeOf(group api.ChangeGroup, remarks []preview.Remark) api.PreviewChange {
	change := api.PreviewChange{ChangeGroup: group}
	for _, r := range remarks {
		switch r.Kind {
		case preview.Acknowledged:
			change.Acknowledged = r.Author
		case preview.Withdrawn:
			change.Acknowledged = ""
		case preview.Comment:
		}
		change.Remarks = append(change.Remarks, remarkOf(r))
	}
	return change
}

func (h *previews) listPreviewWarnings(ctx context.Context, request api.PreviewRequest) (api.PreviewWarned, error) {
	list := api.PreviewWarned{Items: []api.PreviewWarning{}}
	p, err := h.preview(ctx, fleet.PreviewRead, request.Preview)
	if err != nil {
		return list, err
	}
	warnings, unknown, err := h.previews.Warnings(ctx, p)
	list.Unknown = unknown
	for _, w := range warnings {
		shown := api.PreviewWarning{Level: w.Level, Message: w.Message, File: w.File, Line: w.Line, Nodes: w.Nodes, New: w.New, Examples: []string{}}
		for _, node := range w.Examples {
			shown.Examples = append(shown.Examples, string(node))
		}
		list.Items = append(list.Items, shown)
	}
	return list, err
}

func (h *previews) listPreviewNodes(ctx context.Context, request api.PreviewNodesRequest) (api.List[api.PreviewNode], error) {
	list := api.List[api.PreviewNode]{Items: []api.PreviewNode{}}
	p, err := h.preview(ctx, fleet.PreviewRead, request.Preview)
	if err != nil {
		return list, err
	}
	paging, err := pageOf("", request.Limit)
	if err != nil {
		return list, err
	}
	page := preview.SharePage{Limit: paging.Limit}
	if request.After != "" {
		after, err := numberOf("after", request.After)
		if err != nil {
			return list, err
		}
		page.From = uint32(min(after, preview.MaxTargets)) + 1 //nolint:gosec // bounded
	}
	if request.State != "" {
		state, err := stateOf(request.State, preview.ShareStates())
		if err != nil {
			return list, err
		}
		page.States = []preview.ShareState{state}
	}
	var shares []preview.Share
	switch {
	case request.Change != "" && request.State != "":
		return list, fault.New(fault.Invalid, "state and change are two ways to choose nodes: give one of them")
	case request.Change != "":
		shares, err = h.previews.Members(ctx, p, strings.Split(request.Change, ","), page)
	default:
		shares, err = h.previews.Shares(ctx, p.ID, page)
	}
	if err != nil {
		return list, err
	}
	quiet, err := h.noise.rules.Quiet(ctx, p)
	for _, s := range shares {
		item := previewNodeOf(s)
		_, item.Quiet = slices.BinarySearch(quiet.Nodes, s.Number)
		_, item.EngineOnly = slices.BinarySearch(quiet.Form, s.Number)
		list.Items = append(list.Items, item)
	}
	if len(shares) == page.Limit {
		list.Next = strconv.FormatUint(uint64(shares[len(shares)-1].Number), 10)
	}
	return list, err
}

func (h *previews) showPreviewNode(ctx context.Context, request api.PreviewNodeRequest) (api.CatalogDifference, error) {
	var none api.CatalogDifference
	p, err := h.preview(ctx, fleet.PreviewRead, request.Preview)
	if err != nil {
		return none, err
	}
	name, err := fleet.ParseCertname(request.Name)
	if err != nil {
		return none, err
	}
	shares, err := h.previews.Shares(ctx, p.ID, preview.SharePage{Limit: 1, Node: name})
	switch {
	case err != nil:
		return none, err
	case len(shares) == 0:
		return none, &fault.Error{
			Kind: fault.NotFound, Detail: fmt.Sprintf("%s is no node of preview %d", name, p.ID), Hint: fmt.Sprintf("`tutti preview nodes %d` lists them", p.ID),
		}
	}
	switch s := shares[0]; {
	case s.State == preview.Waiting:
		return none, fault.Later(time.Second, "the catalog of %s is not there yet", name)
	case s.Failure.Message != "":
		return none, fault.New(fault.Conflict, "%s has no catalog of this version: %s", name, s.Failure.Message)
	case s.Base == "":
		return none, fault.New(fault.Conflict, "%s has no catalog to compare with: this version would be its first", name)
	default:
		across, err := h.previews.AcrossEngines(ctx, p, s)
		if err != nil {
			return none, err
		}
		d, err := h.difference(ctx, name, s.Base, s.Fresh, across)
		if err == nil {
			err = h.noise.markNoise(ctx, p, name, d.Resources)
		}
		return d, err
	}
}

// difference compares two stored catalogs of a node; across says that engines differ.
func (h *previews) difference(ctx context.Context, name fleet.Certname, base, fresh fleet.Digest, across bool) (api.CatalogDifference, error) {
	var none api.CatalogDifference
	done, err := h.differences.turnToCompare(ctx)
	if err != nil {
		return none, err
	}
	defer done()
	before, err := h.differences.document(ctx, base)
	if err != nil {
		return none, err
	}
	after, err := h.differences.document(ctx, fresh)
	if err != nil {
		return none, err
	}
	difference, err := diff.Compare(before, after)
	if err != nil {
		return none, err
	}
	if across {
		difference.AcrossEngines()
	}
	answer := diff.NewShower(blobReader{h.blobs}, diff.DefaultLimits()).Show(ctx, difference)
	side := func(c *diff.Catalog, d fleet.Digest) api.CatalogSide {
		return api.CatalogSide{Name: string(name), Environment: c.Environment(), Digest: string(d)}
	}
	answer.Old, answer.New = side(before, base), side(after, fresh)
	return answer, ctx.Err()
}

func (h *previews) sayOnPreview(ctx context.Context, request api.PreviewSayRequest) (api.List[api.PreviewRemark], error) {
	list := api.List[api.PreviewRemark]{Items: []api.PreviewRemark{}}
	p, err := h.preview(ctx, fleet.PreviewCreate, request.Preview)
	if err != nil {
		return list, err
	}
	remarks, err := h.orders.Say(ctx, fleet.ActorFrom(ctx), p.ID, preview.Saying{
		Kind: preview.RemarkKind(request.Kind), Groups: request.Changes, All: request.All, Text: request.Text,
	})
	for _, r := range remarks {
		list.Items = append(list.Items, remarkOf(r))
	}
	return list, err
}

func (h *previews) cancelPreview(ctx context.Context, request api.PreviewRequest) (api.Preview, error) {
	p, err := h.preview(ctx, fleet.PreviewCreate, request.Preview)
	if err != nil {
		return api.Preview{}, err
	}
	p, err = h.orders.Cancel(ctx, fleet.ActorFrom(ctx), p.ID)
	return previewOf(p), err
}

func previewOf(p preview.Preview) api.Preview {
	counts, unseen := map[string]int{}, make([]api.Unseen, len(p.Unseen))
	for state, n := range p.Counts {
		counts[string(state)] = n
	}
	for i, u := range p.Unseen {
		unseen[i] = api.Unseen(u)
	}
	return api.Preview{
		ID: strconv.FormatInt(p.ID, 10), Environment: string(p.Environment), Version: string(p.Version), Commit: p.Commit, Description: p.Description,
		Targets: p.Targets, Author: p.Author, State: string(p.State), Reason: p.Reason, Nodes: p.Counts.Total(), Counts: counts, Unseen: unseen,
		CreatedAt: p.CreatedAt.UTC(), EndedAt: timeOf(p.EndedAt),
	}
}

func previewNodeOf(s preview.Share) api.PreviewNode {
	return api.PreviewNode{
		Name: string(s.Node), State: string(s.State), Catalog: string(s.Fresh), Base: string(s.Base), Reused: s.Reused,
		Message: s.Failure.Message, File: s.Failure.File, Line: s.Failure.Line, Volatile: s.Volatile,
	}
}

func remarkOf(r preview.Remark) api.PreviewRemark {
	return api.PreviewRemark{Change: r.Group, Kind: string(r.Kind), Text: r.Text, Author: r.Author, At: r.At.UTC()}
}
