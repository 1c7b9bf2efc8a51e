package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/rbac"
)

// Config hands in the parts that the operations work on.
type Config struct {
	Certificates Certificates
	Code         Code
	Blobs        cas.Store
	Nodes        inventory.NodeStore
	Facts        inventory.FactStore
	Catalogs     inventory.CatalogStore
	Reports      inventory.ReportStore
	Inventory    inventory.Asker
	Groups       classify.Store
	Tasks        Tasks
	Classifier   Classifier
	Tokens       rbac.TokenStore
	RequestID    func(context.Context) string       // the reference that logs and callers share
	NoteActor    func(context.Context, fleet.Actor) // is told who asks, for the log
	Log          *slog.Logger
}

// Handler serves /api/v1.
type Handler struct {
	Config
	mux *http.ServeMux
}

// streamed is the answer of an action that has written it.
type streamed struct{}

// action is what an operation does once it is allowed.
type action func(w http.ResponseWriter, r *http.Request) (any, error)

// New wires every operation to its action. It returns an error when an
// operation has none, or an action has no operation.
func New(c Config) (*Handler, error) {
	h := &Handler{Config: c, mux: http.NewServeMux()}
	actions := h.actions()
	for _, op := range api.Operations() {
		act, ok := actions[op.Name]
		if !ok {
			return nil, fmt.Errorf("operation %s has no handler", op.Name)
		}
		delete(actions, op.Name)
		h.mux.Handle(op.Method+" "+api.Prefix+op.Path, h.serve(op, act))
	}
	for name := range actions {
		return nil, fmt.Errorf("handler %s has no operation", name)
	}
	h.mux.HandleFunc(api.Prefix+"/", func(w http.ResponseWriter, r *http.Request) {
		h.problem(w, r, fault.New(fault.NotFound, "there is no operation %s %.200s", r.Method, r.URL.Path))
	})
	return h, nil
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

func (h *Handler) actions() map[string]action {
	return map[string]action{
		api.CertificateList.Name:   typed(h.listCertificates),
		api.CertificateShow.Name:   typed(h.showCertificate),
		api.CertificateSign.Name:   typed(h.signCertificate),
		api.CertificateRevoke.Name: typed(h.revokeCertificate),
		api.CertificateClean.Name:  typed(h.cleanCertificate),
		api.JoinTokenCreate.Name:   typed(h.createJoinToken),
		api.EnvironmentList.Name:   typed(h.listEnvironments),
		api.EnvironmentDelete.Name: typed(h.deleteEnvironment),
		api.VersionList.Name:       typed(h.listVersions),
		api.VersionDeploy.Name:     typed(h.deployVersion),
		api.BlobMissing.Name:       typed(h.missingBlobs),
		api.BlobUpload.Name:        h.uploadBlobs,
		api.NodeList.Name:          typed(h.listNodes),
		api.NodeShow.Name:          typed(h.showNode),
		api.NodeFacts.Name:         typed(h.showFacts),
		api.NodeDeactivate.Name:    typed(h.deactivateNode),
		api.NodePurge.Name:         typed(h.purgeNode),
		api.NodeCatalog.Name:       typed(h.showCatalog),
		api.GroupList.Name:         typed(h.listGroups),
		api.GroupShow.Name:         typed(h.showGroup),
		api.GroupCreate.Name:       typed(h.createGroup),
		api.GroupEdit.Name:         typed(h.editGroup),
		api.GroupDelete.Name:       typed(h.deleteGroup),
		api.GroupNodes.Name:        typed(h.listGroupNodes),
		api.GroupApply.Name:        typed(h.applyGroups),
		api.GroupExplain.Name:      typed(h.explainGroups),
		api.ReportList.Name:        typed(h.listReports),
		api.ReportShow.Name:        typed(h.showReport),
		api.TaskList.Name:          typed(h.listTasks),
		api.TaskShow.Name:          typed(h.showTask),
		api.ResourceVariants.Name:  typed(h.compareResources),
		api.QueryRun.Name:          h.runQuery,
	}
}

// typed makes an action of a function from request type to response type.
func typed[Request, Response any](act func(context.Context, Request) (Response, error)) action {
	return func(_ http.ResponseWriter, r *http.Request) (any, error) {
		var request Request
		if err := api.Bind(r, &request); err != nil {
			return nil, err
		}
		return act(r.Context(), request)
	}
}

// nothing is the request or response of an operation that has none.
type nothing struct{}

func (h *Handler) serve(op api.Operation, act action) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		actor, err := h.Actor(r)
		if err == nil {
			err = rbac.Allow(actor, op.Permission)
		}
		if err != nil {
			h.problem(w, r, err)
			return
		}
		r = r.WithContext(fleet.WithActor(r.Context(), actor))
		r.Body = paced{r.Body, http.NewResponseController(w)}
		answer, err := act(w, r)
		if err != nil {
			h.problem(w, r, err)
			return
		}
		if _, done := answer.(streamed); done {
			return
		}
		if op.Response == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		writeJSON(w, http.StatusOK, answer)
	})
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // the caller is gone if this fails
}

// problem answers with an error: its kind, what may be shown of it, and a
// reference to the log.
func (h *Handler) problem(w http.ResponseWriter, r *http.Request, err error) {
	body := h.told(r, err)
	kind := fault.Of(err)
	if kind == fault.Denied && fleet.ActorFrom(r.Context()).Kind == fleet.Anonymous {
		w.Header().Set("WWW-Authenticate", `Bearer realm="tutti"`)
	}
	if body.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(body.RetryAfter, 10))
	}
	writeJSON(w, api.Status(kind), body)
}

// told is what the caller is told of an error; the log is told the rest.
func (h *Handler) told(r *http.Request, err error) api.Problem {
	kind, id := fault.Of(err), h.RequestID(r.Context())
	body := api.Problem{Kind: kind.String(), Message: fault.Detail(err), RequestID: id}
	if kind == fault.Internal && !errors.Is(err, context.Canceled) {
		h.Log.ErrorContext(r.Context(), "request failed", "err", err, "request_id", id, "path", r.URL.Path)
	}
	if body.Message == "" {
		body.Message = "the server made a mistake; its log names the cause under this request's id"
	}
	body.RetryAfter = api.RetrySeconds(err)
	return body
}
