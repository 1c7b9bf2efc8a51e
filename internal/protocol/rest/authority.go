package rest

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/rbac"
)

// Scopes answers which nodes a grant's condition holds for.
type Scopes interface {
	// Inside returns those of the nodes that the condition holds for.
	Inside(ctx context.Context, condition string, nodes []fleet.Certname) (map[fleet.Certname]bool, error)
}

// gate says who asks, and what they may do.
type gate struct {
	access *rbac.Access
	nodes  inventory.NodeStore
	scopes Scopes
}

// permit returns nil when who asks may do an operation with what the request names.
func (h *gate) permit(r *http.Request, b binding) error {
	ctx, permission := r.Context(), b.op.Permission
	switch {
	case b.may != nil:
		return b.may(ctx)
	case b.each:
		return h.explained(ctx, permission, rbac.AllowSome(fleet.ActorFrom(ctx), permission))
	}
	return h.allow(ctx, permission, objectOf(r, b.op))
}

// allowBlobs is who may store files of code: everybody who may deploy some, or have some previewed. They are of no
// environment until a version names them.
func (h *gate) allowBlobs(ctx context.Context) error {
	actor := fleet.ActorFrom(ctx)
	if rbac.AllowSome(actor, fleet.PreviewCreate) == nil {
		return nil
	}
	return h.explained(ctx, fleet.CodeDeploy, rbac.AllowSome(actor, fleet.CodeDeploy))
}

// allowEach returns nil when who asks has the permission for each of the nodes.
func (h *gate) allowEach(ctx context.Context, permission fleet.Permission, nodes []fleet.Certname) error {
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
	return fault.New(fault.Denied, "%s is needed for %d of %s%s; leave them out with --exclude, or ask for a role that has it",
		permission, len(lacking), fault.Count(len(nodes), "node"), named)
}

// maxDeniedNamed is how many nodes a refusal names.
const maxDeniedNamed = 10

// visibleNodes is those of the nodes that who asks may see: a refusal must not tell names of nodes
// that their list leaves out.
func (h *gate) visibleNodes(ctx context.Context, nodes []fleet.Certname) (names []string, err error) {
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
func (h *gate) nameable(ctx context.Context, nodes []fleet.Certname) (string, error) {
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
func (h *gate) allow(ctx context.Context, permission fleet.Permission, object fleet.Object) error {
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
func (h *gate) explained(ctx context.Context, permission fleet.Permission, refusal error) error {
	if refusal == nil {
		return nil
	}
	return h.access.Explain(ctx, fleet.ActorFrom(ctx), permission, refusal)
}

// known completes objects with what scoped grants ask for: the environment of a
// node, and which conditions hold for it. Of a node that is not known, nothing holds.
func (h *gate) known(ctx context.Context, actor fleet.Actor, permission fleet.Permission, objects []fleet.Object) ([]fleet.Object, error) {
	nodes := make([]fleet.Certname, len(objects))
	for i := range objects {
		nodes[i] = objects[i].Node
		if objects[i].Environment != "" || nodes[i] == "" {
			continue
		}
		node, err := h.nodes.Node(ctx, nodes[i])
		if err != nil && fault.Of(err) != fault.NotFound {
			return nil, err
		}
		objects[i].Environment = node.Environment
	}
	for _, condition := range rbac.NodeScopes(actor, permission) {
		inside, err := h.scopes.Inside(ctx, condition, nodes)
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
func seen[T any](ctx context.Context, h *gate, permission fleet.Permission, items []T, objectOf func(T) fleet.Object) ([]T, error) {
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

// recorder writes to the audit log what is done and refused.
type recorder struct {
	audit      *rbac.Audit
	connection func(context.Context) rbac.Entry
	auditReads func() bool
	log        *slog.Logger
	glass      glass
}

// record begins the audit entry of an act.
func (h *recorder) record(ctx context.Context, op api.Operation, request any) (finish func(error), err error) {
	if op.Permission == fleet.Open || op.Kind != api.Act && !h.auditReads() {
		return func(error) {}, nil
	}
	return h.audit.Begin(ctx, h.entry(ctx, op.Name, objectText(request)))
}

// entry is an audit entry of who asks.
func (h *recorder) entry(ctx context.Context, operation, object string) rbac.Entry {
	actor, entry := fleet.ActorFrom(ctx), h.connection(ctx)
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
func (h *recorder) refuse(ctx context.Context, operation, object string, err error) {
	if fault.Of(err) == fault.Denied {
		h.audit.Refused(ctx, h.entry(ctx, operation, object), err)
	}
}

// named are the body's fields that say what an act is about, numbered those that say it with a number, and several those that say it with a list. Nothing
// else of a body is recorded: it may hold secrets.
var (
	named    = []string{"name", "label"}
	numbered = []string{"preview", "release"}
	several  = []string{"numbers"}
)

// mostOfSeveral is how much of a list is recorded.
const mostOfSeveral = 50

// objectText is what a request is about: the fields of its path, and its name. What says neither has it in what it describes, as
// a new group has.
func objectText(request any) string {
	if request == nil {
		return ""
	}
	return textOf(reflect.ValueOf(request))
}

func textOf(value reflect.Value) string {
	var words []string
	for field, from := range value.Fields() {
		_, inPath := field.Tag.Lookup("path")
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case (inPath || slices.Contains(named, key)) && from.Kind() == reflect.String && from.String() != "":
			words = append(words, from.String())
		case slices.Contains(numbered, key) && from.Kind() == reflect.Int64 && from.Int() != 0:
			words = append(words, key, strconv.FormatInt(from.Int(), 10))
		case slices.Contains(several, key):
			list, _ := reflect.TypeAssert[[]string](from)
			words = append(words, list[:min(len(list), mostOfSeveral)]...)
			if more := len(list) - mostOfSeveral; more > 0 {
				words = append(words, fmt.Sprintf("and %d more", more))
			}
		}
	}
	if len(words) > 0 {
		return strings.Join(words, " ")
	}
	for _, from := range value.Fields() {
		if from.Kind() != reflect.Struct {
			continue
		}
		if text := textOf(from); text != "" {
			return text
		}
	}
	return ""
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
