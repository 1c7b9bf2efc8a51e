package classifier

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

// Prefix is where the API begins.
const Prefix = "/classifier-api/v1"

// Fleet is what is known of nodes and code.
type Fleet interface {
	// GroupNodes lists the known nodes that are in a group, by name.
	GroupNodes(ctx context.Context, group classify.ID) ([]fleet.Certname, error)
	// Known returns what the rules look at of a node; nil for what is not known.
	Known(ctx context.Context, node fleet.Certname) (facts, trusted json.RawMessage, err error)
	// Deployed lists the environments that have code, by name, and when they last got some.
	Deployed(ctx context.Context) ([]Environment, error)
}

// Environment is one that has code.
type Environment struct {
	Name fleet.Environment
	At   time.Time
}

// Config hands in the parts.
type Config struct {
	Groups    classify.Store
	Fleet     Fleet
	Actor     func(*http.Request) (fleet.Actor, error) // who asks
	Audit     *rbac.Audit
	Entry     func(context.Context) rbac.Entry // when, from where, under which reference
	RequestID func(context.Context) string
	Log       *slog.Logger
}

// Handler serves the classifier's API.
type Handler struct {
	Config
	mux *http.ServeMux
}

// action answers a request, or returns what is wrong.
type action func(w http.ResponseWriter, r *http.Request) error

// New returns a handler; routes is the table of what it answers.
func New(c Config) *Handler {
	h := &Handler{Config: c, mux: http.NewServeMux()}
	for pattern, act := range h.routes() {
		h.mux.HandleFunc(pattern, h.checked(pattern, act))
	}
	h.mux.HandleFunc("/", h.checked("GET /", func(_ http.ResponseWriter, r *http.Request) error {
		return bad("not-found", r.URL.Path, "the resource could not be found: %s %.200s", r.Method, r.URL.Path)
	}))
	return h
}

func (h *Handler) routes() map[string]action {
	return map[string]action{
		"GET " + Prefix + "/groups":              h.listGroups,
		"POST " + Prefix + "/groups":             h.createGroup,
		"GET " + Prefix + "/groups/{id}":         h.showGroup,
		"PUT " + Prefix + "/groups/{id}":         h.replaceGroup,
		"POST " + Prefix + "/groups/{id}":        h.mergeGroup,
		"DELETE " + Prefix + "/groups/{id}":      h.deleteGroup,
		"POST " + Prefix + "/groups/{id}/pin":    h.pin,
		"POST " + Prefix + "/groups/{id}/unpin":  h.unpin,
		"GET " + Prefix + "/groups/{id}/rules":   h.showRules,
		"GET " + Prefix + "/groups/{id}/nodes":   h.listNodes,
		"GET " + Prefix + "/group-children/{id}": h.listChildren,

		"POST " + Prefix + "/validate/group":          h.validateGroup,
		"POST " + Prefix + "/import-hierarchy":        h.importHierarchy,
		"POST " + Prefix + "/rules/translate":         h.translateRule,
		"POST " + Prefix + "/commands/unpin-from-all": h.unpinFromAll,

		"POST " + Prefix + "/classified/nodes/{name}": h.classifyNode,

		"GET " + Prefix + "/environments":        h.listEnvironments,
		"GET " + Prefix + "/environments/{name}": h.showEnvironment,
		"GET " + Prefix + "/last-class-update":   h.lastClassUpdate,
		"POST " + Prefix + "/update-classes":     h.updateClasses,
	}
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// questions are the routes that change nothing although they are sent a body.
var questions = []string{
	"POST " + Prefix + "/validate/group", "POST " + Prefix + "/rules/translate", "POST " + Prefix + "/classified/nodes/{name}",
}

// permissionOf is what a route asks for.
func permissionOf(pattern string) fleet.Permission {
	if strings.HasPrefix(pattern, "GET ") || slices.Contains(questions, pattern) {
		return fleet.GroupRead
	}
	return fleet.GroupWrite
}

// checked lets those through who have the route's permission. What changes groups
// is recorded before it is done, and so is what is refused.
func (h *Handler) checked(pattern string, act action) http.HandlerFunc {
	permission := permissionOf(pattern)
	return func(w http.ResponseWriter, r *http.Request) {
		actor, err := h.Actor(r)
		r = r.WithContext(fleet.WithActor(r.Context(), actor))
		if err == nil {
			err = rbac.Allow(actor, permission, fleet.Object{})
		}
		if fault.Is(err, fault.Denied) {
			h.Audit.Refused(r.Context(), h.entry(r, pattern), err) //nolint:contextcheck // the request carries it
			kind := "permission-denied"
			if actor.Name == "" {
				kind = "user-unauthenticated"
			}
			err = bad(kind, nil, "%s", fault.Detail(err))
		}
		if err == nil {
			err = h.recorded(w, r, pattern, permission, act)
		}
		if err != nil {
			h.fail(w, r, err)
		}
	}
}

func (h *Handler) recorded(w http.ResponseWriter, r *http.Request, pattern string, permission fleet.Permission, act action) error {
	if permission == fleet.GroupRead {
		return act(w, r)
	}
	finish, err := h.Audit.Begin(r.Context(), h.entry(r, pattern))
	if err != nil {
		return err
	}
	err = act(w, r)
	if wrong, ok := errors.AsType[*problem](err); ok { // the audit log knows faults
		finish(fault.New(fault.Invalid, "%s", wrong.message))
		return err
	}
	finish(err)
	return err
}

func (h *Handler) entry(r *http.Request, pattern string) rbac.Entry {
	actor, entry := fleet.ActorFrom(r.Context()), h.Entry(r.Context())
	entry.ActorKind, entry.Actor, entry.Token = actor.Kind, actor.Name, actor.Token
	entry.Operation, entry.Object = pattern, cmp.Or(r.PathValue("id"), r.PathValue("name"))
	return entry
}

// The bounds of bodies, in bytes.
const (
	maxBody      = classify.MaxGroupBytes + 1<<20
	maxHierarchy = 64 << 20
)

// MaxBodyBytes is the largest body of a request to this API.
const MaxBodyBytes = maxHierarchy

// body reads a JSON body of at most limit bytes; an empty one leaves into as it is.
func body(w http.ResponseWriter, r *http.Request, limit int64, into any) error {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return bad("malformed-request", nil, "the body is larger than %d bytes", tooLarge.Limit)
	}
	if err != nil {
		return bad("malformed-request", nil, "the body could not be read")
	}
	if len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return bad("schema-violation", map[string]any{"error": map[string]string{wrong.Field: "not a JSON " + wrong.Value}},
				"the object submitted does not have the expected shape: %s cannot be a %s", field(wrong.Field), wrong.Value)
		}
		return bad("malformed-request", map[string]any{"error": err.Error()}, "the body is not valid JSON: %v", err)
	}
	return nil
}

func field(name string) string {
	if name == "" {
		return "it"
	}
	return name
}

// group finds the group that the path names.
func (h *Handler) group(r *http.Request) (classify.Group, []classify.Group, error) {
	id, err := pathID(r)
	if err != nil {
		return classify.Group{}, nil, err
	}
	groups, _, err := h.Groups.Groups(r.Context())
	if err != nil {
		return classify.Group{}, nil, err
	}
	for _, g := range groups {
		if g.ID == id {
			return g, groups, nil
		}
	}
	return classify.Group{}, nil, bad("not-found", string(id), "the group with the id %s could not be found", id)
}

func pathID(r *http.Request) (classify.ID, error) {
	id, err := classify.ParseID(r.PathValue("id"))
	if err != nil {
		return "", bad("malformed-uuid", r.PathValue("id"), "%s", fault.Detail(err))
	}
	return id, nil
}
