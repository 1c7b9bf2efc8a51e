package rest

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

// Scopes answers which nodes a grant's condition holds for.
type Scopes interface {
	// Inside returns those of the nodes that the condition holds for.
	Inside(ctx context.Context, condition string, nodes []fleet.Certname) (map[fleet.Certname]bool, error)
}

// perObject are the operations whose handlers ask for each object, because the
// request does not name it: lists show what their caller may see.
var perObject = []string{
	api.NodeList.Name, api.ReportList.Name, api.ReportShow.Name, api.EventStream.Name, api.EventList.Name, api.EnvironmentList.Name,
	api.CatalogRelease.Name, api.ModeList.Name, api.CatalogLosses.Name,
	api.PreviewList.Name, api.PreviewShow.Name, api.PreviewEvents.Name, api.PreviewNodes.Name, api.PreviewNodeOf.Name, api.PreviewSay.Name, // of which environment
	api.PreviewCancel.Name,
	api.ReleaseCreate.Name, api.ReleaseRollback.Name, // each node
	api.ReleaseList.Name, api.ReleaseShow.Name, api.ReleaseTargets.Name, api.ReleasePause.Name, api.ReleaseResume.Name, api.ReleasePromote.Name, // of which environment
	api.ReleaseAbort.Name, api.ReleaseApprove.Name, api.ReleaseRefresh.Name,
	api.NoiseList.Name, api.NoiseSet.Name, api.NoiseRemove.Name, api.NoiseHistory.Name, // the environments of the rule
	api.PolicyList.Name, api.PolicyShow.Name, api.PolicySet.Name, api.PolicyRemove.Name, api.PolicyHistory.Name, api.PolicyTest.Name,
	api.FreezeList.Name, api.FreezeSet.Name, api.FreezeRemove.Name, api.FreezeHistory.Name,
	api.JobPuppet.Name, api.JobTask.Name, api.JobCommand.Name, api.JobScript.Name, api.JobFile.Name, // each target
	api.CompileList.Name, api.CompileShow.Name, api.CompileNow.Name, api.CompileVerify.Name, api.CompileSample.Name, api.CompileVerified.Name, // each node
	api.CompilePause.Name, api.CompileResume.Name, // the environment that the request names
	api.JobList.Name, api.JobShow.Name, api.JobRuns.Name, api.JobOutput.Name, api.JobEvents.Name, api.JobStop.Name, api.JobRerun.Name, // whose job
}

// permit returns nil when who asks may do op with what the request names.
func (h *Handler) permit(r *http.Request, op api.Operation) error {
	ctx := r.Context()
	switch op.Name {
	case api.JobUpload.Name:
		return h.allowUpload(ctx)
	case api.BlobMissing.Name, api.BlobUpload.Name: // blobs are of no environment until a version names them
		return h.allowBlobs(ctx)
	}
	if slices.Contains(perObject, op.Name) {
		return h.explained(ctx, op.Permission, rbac.AllowSome(fleet.ActorFrom(ctx), op.Permission))
	}
	return h.allow(ctx, op.Permission, objectOf(r, op))
}

// allowBlobs is who may store files of code: everybody who may deploy some, or have some previewed.
func (h *Handler) allowBlobs(ctx context.Context) error {
	actor := fleet.ActorFrom(ctx)
	if rbac.AllowSome(actor, fleet.PreviewCreate) == nil {
		return nil
	}
	return h.explained(ctx, fleet.CodeDeploy, rbac.AllowSome(actor, fleet.CodeDeploy))
}

// allowEach returns nil when who asks has the permission for each of the nodes.
func (h *Handler) allowEach(ctx context.Context, permission fleet.Permission, nodes []fleet.Certname) error {
	actor := fleet.ActorFrom(ctx)
	if !rbac.Scoped(actor, permission) {
		return h.explained(ctx, permission, rbac.AllowSome(actor, permission))
	}
	kept, err := seen(ctx, h, permission, nodes, func(node fleet.Certname) fleet.Object { return fleet.Object{Node: node} })
	if err != nil || len(kept) == len(nodes) {
		return err
	}
	lacking := slices.DeleteFunc(slices.Clone(nodes), func(node fleet.Certname) bool { return slices.Contains(kept, node) })
	named, err := h.nameable(ctx, lacking)
	if err != nil {
		return err
	}
	return fault.New(fault.Denied, "%s is needed for %d of %d nodes%s; leave them out with --exclude, or ask for a role that has it",
		permission, len(lacking), len(nodes), named)
}

// maxDeniedNamed is how many nodes a refusal names.
const maxDeniedNamed = 10

// visibleNodes is those of the nodes that who asks may see: a refusal must not tell names of nodes
// that their list leaves out.
func (h *Handler) visibleNodes(ctx context.Context, nodes []fleet.Certname) (names []string, err error) {
	if rbac.AllowSome(fleet.ActorFrom(ctx), fleet.NodeRead) != nil {
		return nil, nil
	}
	for part := range slices.Chunk(nodes, scopeBatch) {
		kept, err := seen(ctx, h, fleet.NodeRead, part, func(node fleet.Certname) fleet.Object { return fleet.Object{Node: node} })
		if err != nil {
			return nil, err
		}
		for _, node := range kept {
			names = append(names, string(node))
		}
	}
	return names, nil
}

// nameable is a list of some of the nodes for a refusal; it begins with a colon, or is empty.
func (h *Handler) nameable(ctx context.Context, nodes []fleet.Certname) (string, error) {
	names, err := h.visibleNodes(ctx, nodes)
	if err != nil || len(names) == 0 {
		return "", err
	}
	names = names[:min(len(names), maxDeniedNamed)]
	text := ": " + strings.Join(names, ", ")
	if more := len(nodes) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text, nil
}

// objectOf is what the path names.
func objectOf(r *http.Request, op api.Operation) fleet.Object {
	object := fleet.Object{Environment: fleet.Environment(r.PathValue("environment")), Task: r.PathValue("task")}
	if strings.HasPrefix(op.Path, "/nodes/") || strings.HasPrefix(op.Path, "/certificates/") {
		object.Node = fleet.Certname(r.PathValue("name"))
	}
	return object
}

// allow returns nil when who asks has the permission for the object.
func (h *Handler) allow(ctx context.Context, permission fleet.Permission, object fleet.Object) error {
	actor := fleet.ActorFrom(ctx)
	if object.Node != "" && rbac.Scoped(actor, permission) {
		known, err := h.known(ctx, actor, permission, []fleet.Object{object})
		if err != nil {
			return err
		}
		object = known[0]
	}
	return h.explained(ctx, permission, rbac.Allow(actor, permission, object))
}

// explained says of a refusal who could help.
func (h *Handler) explained(ctx context.Context, permission fleet.Permission, refusal error) error {
	if refusal == nil {
		return nil
	}
	return h.Access.Explain(ctx, fleet.ActorFrom(ctx), permission, refusal)
}

// known completes objects with what scoped grants ask for: the environment of a
// node, and which conditions hold for it. Of a node that is not known, nothing holds.
func (h *Handler) known(ctx context.Context, actor fleet.Actor, permission fleet.Permission, objects []fleet.Object) ([]fleet.Object, error) {
	nodes := make([]fleet.Certname, len(objects))
	for i := range objects {
		nodes[i] = objects[i].Node
		if objects[i].Environment != "" || nodes[i] == "" {
			continue
		}
		node, err := h.Nodes.Node(ctx, nodes[i])
		if err != nil && fault.Of(err) != fault.NotFound {
			return nil, err
		}
		objects[i].Environment = node.Environment
	}
	for _, condition := range rbac.NodeScopes(actor, permission) {
		inside, err := h.Scopes.Inside(ctx, condition, nodes)
		if err != nil {
			return nil, err
		}
		for i := range objects {
			if inside[nodes[i]] {
				objects[i].Inside = append(objects[i].Inside, condition)
			}
		}
	}
	return objects, nil
}

// seen keeps those of items that who asks may see.
func seen[T any](ctx context.Context, h *Handler, permission fleet.Permission, items []T, objectOf func(T) fleet.Object) ([]T, error) {
	actor := fleet.ActorFrom(ctx)
	if len(items) == 0 || !rbac.Scoped(actor, permission) {
		return items, nil
	}
	objects := make([]fleet.Object, len(items))
	for i := range items {
		objects[i] = objectOf(items[i])
	}
	objects, err := h.known(ctx, actor, permission, objects)
	if err != nil {
		return nil, err
	}
	var kept []T
	for i := range items {
		if rbac.Allow(actor, permission, objects[i]) == nil {
			kept = append(kept, items[i])
		}
	}
	return kept, nil
}

// record begins the audit entry of an act.
func (h *Handler) record(ctx context.Context, op api.Operation, request any) (finish func(error), err error) {
	if op.Permission == fleet.Open || op.Kind != api.Act && !h.AuditReads() {
		return func(error) {}, nil
	}
	return h.Audit.Begin(ctx, h.entry(ctx, op.Name, objectText(request)))
}

// entry is an audit entry of who asks.
func (h *Handler) entry(ctx context.Context, operation, object string) rbac.Entry {
	actor, entry := fleet.ActorFrom(ctx), h.Entry(ctx)
	entry.ActorKind, entry.Actor, entry.Token = actor.Kind, actor.Name, actor.Token
	entry.Operation, entry.Object = operation, object
	if actor.BreakGlass {
		entry.Mark = rbac.BreakGlass
	}
	if rest, ok := strings.CutPrefix(object, api.Me); ok && actor.Kind == fleet.UserActor {
		entry.Object = actor.Name + rest
	}
	return entry
}

// refuse records a refusal; other errors are nobody's fault.
func (h *Handler) refuse(ctx context.Context, operation, object string, err error) {
	if fault.Of(err) == fault.Denied {
		h.Audit.Refused(ctx, h.entry(ctx, operation, object), err)
	}
}

// named are the body's fields that say what an act is about. Nothing else of a
// body is recorded: it may hold secrets.
var named = []string{"name", "label"}

// objectText is what a request is about: the fields of its path, and its name.
func objectText(request any) string {
	if request == nil {
		return ""
	}
	var words []string
	value := reflect.ValueOf(request)
	for field, from := range value.Fields() {
		_, inPath := field.Tag.Lookup("path")
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if (inPath || slices.Contains(named, key)) && from.Kind() == reflect.String && from.String() != "" {
			words = append(words, from.String())
		}
	}
	return strings.Join(words, " ")
}

// pathText is objectText before the request was read.
func pathText(r *http.Request, op api.Operation) string {
	var words []string
	for part := range strings.SplitSeq(op.Path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			words = append(words, r.PathValue(strings.TrimSuffix(name, "}")))
		}
	}
	return strings.Join(words, " ")
}
