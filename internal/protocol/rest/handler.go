package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strconv"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/codecheck"
	"github.com/tutti-project/tutti/internal/compile"
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
	Presences    inventory.Presences
	Runs         inventory.RunStore
	Breakages    compile.Breakages
	Facts        inventory.FactStore
	Catalogs     inventory.CatalogStore
	Inputs       CatalogInputs
	Deliveries   Deliveries
	Compiling    Compiling
	Verifying    Verifying
	Usages       Usages
	Reports      inventory.ReportStore
	Events       Events
	Inventory    inventory.Asker
	Groups       classify.Store
	Tasks        Tasks
	Jobs         Jobs
	JobFiles     JobFiles
	Previews     Previews
	Releases     Releaser
	Policies     Policies
	PreviewJudge PreviewJudge
	Applications Applications
	Classifier   Classifier
	Access       *rbac.Access
	Audit        *rbac.Audit
	AuditLog     rbac.AuditStore
	AuditChain   *rbac.Chain
	AuditReads   func() bool // whether questions are recorded, too
	Scopes       Scopes
	Entry        func(context.Context) rbac.Entry   // when, from where, under which reference
	RequestID    func(context.Context) string       // the reference that logs and callers share
	NoteActor    func(context.Context, fleet.Actor) // is told who asks, for the log
	Streams      func(context.Context)              // is told that a body is not kept in memory
	Stopping     <-chan struct{}                    // closed when the server begins to stop: streams end then, too
	Log          *slog.Logger
}

// Handler serves /api/v1.
type Handler struct {
	Config
	mux       *http.ServeMux
	glass     glass
	comparing chan struct{} // has room for as many catalogs as are compared at once
}

// streamed is the answer of an action that has written it.
type streamed struct{}

// action is what an operation does once it is allowed. It calls begin when the
// request is read and right, and before it does anything.
type action func(w http.ResponseWriter, r *http.Request, begin func(request any) error) (any, error)

// New wires every operation to its action. It returns an error when an
// operation has none, or an action has no operation.
func New(c Config) (*Handler, error) {
	h := &Handler{Config: c, mux: http.NewServeMux(), comparing: make(chan struct{}, maxComparing)}
	actions := h.actions()
	maps.Copy(actions, h.compileActions())
	maps.Copy(actions, h.releaseActions())
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
		api.RequestClean.Name:      typed(h.cleanRequests),
		api.ServerRotate.Name:      typed(h.rotateServer),
		api.JoinTokenCreate.Name:   typed(h.createJoinToken),
		api.EnvironmentList.Name:   typed(h.listEnvironments),
		api.EnvironmentDelete.Name: typed(h.deleteEnvironment),
		api.VersionList.Name:       typed(h.listVersions),
		api.EnvironmentStatus.Name: typed(h.environmentStatus),
		api.VersionDeploy.Name:     typed(h.deployVersion),
		api.BlobMissing.Name:       typed(h.missingBlobs),
		api.BlobUpload.Name:        h.uploadBlobs,
		api.NodeList.Name:          typed(h.listNodes),
		api.NodeShow.Name:          typed(h.showNode),
		api.NodeFacts.Name:         typed(h.showFacts),
		api.NodeDeactivate.Name:    typed(h.deactivateNode),
		api.NodePurge.Name:         typed(h.purgeNode),
		api.NodeCatalog.Name:       typed(h.showCatalog),
		api.NodeInputs.Name:        typed(h.showInputs),
		api.CatalogDiff.Name:       typed(h.diffCatalogs),
		api.CatalogRelease.Name:    h.releaseCatalogs,
		api.NodeDelivery.Name:      typed(h.showDelivery),
		api.NodeModeSet.Name:       typed(h.setNodeMode),
		api.NodePin.Name:           typed(h.pinNode),
		api.NodeUnpin.Name:         typed(h.unpinNode),
		api.CatalogLosses.Name:     typed(h.listLosses),
		api.NodeLet.Name:           typed(h.letNode),
		api.CatalogLetGo.Name:      typed(h.letVersion),
		api.GroupModeSet.Name:      typed(h.setGroupMode),
		api.ModeList.Name:          typed(h.listModes),
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
		api.EventStream.Name:       h.streamEvents,
		api.EventList.Name:         typed(h.listEvents),
		api.TaskList.Name:          typed(h.listTasks),
		api.TaskShow.Name:          typed(h.showTask),
		api.ResourceVariants.Name:  typed(h.compareResources),
		api.QueryRun.Name:          h.runQuery,
		api.JobPuppet.Name:         ordering(h, api.JobPuppet, func(r api.JobPuppetRequest) api.JobOrder { return r.JobOrder }, h.puppetSpec),
		api.JobTask.Name:           ordering(h, api.JobTask, func(r api.JobTaskRequest) api.JobOrder { return r.JobOrder }, h.taskSpec),
		api.JobCommand.Name:        ordering(h, api.JobCommand, func(r api.JobCommandRequest) api.JobOrder { return r.JobOrder }, h.commandSpec),
		api.JobScript.Name:         ordering(h, api.JobScript, func(r api.JobScriptRequest) api.JobOrder { return r.JobOrder }, h.scriptSpec),
		api.JobFile.Name:           ordering(h, api.JobFile, func(r api.JobFileRequest) api.JobOrder { return r.JobOrder }, h.fileSpec),
		api.JobUpload.Name:         h.uploadJobFile,
		api.JobList.Name:           typed(h.listJobs),
		api.JobShow.Name:           typed(h.showJob),
		api.JobRuns.Name:           typed(h.listRuns),
		api.JobOutput.Name:         typed(h.listOutput),
		api.JobEvents.Name:         h.streamJob,
		api.JobStop.Name:           typed(h.stopJob),
		api.JobRerun.Name:          h.rerunJob,
		api.PreviewCreate.Name:     typed(h.createPreview),
		api.AppList.Name:           typed(h.listApps),
		api.AppGraph.Name:          typed(h.appGraph),
		api.PreviewList.Name:       typed(h.listPreviews),
		api.PreviewShow.Name:       typed(h.showPreview),
		api.PreviewEvents.Name:     h.streamPreview,
		api.PreviewNodes.Name:      typed(h.listPreviewNodes),
		api.PreviewNodeOf.Name:     typed(h.showPreviewNode),
		api.PreviewSay.Name:        typed(h.sayOnPreview),
		api.PreviewCancel.Name:     typed(h.cancelPreview),
		api.NoiseList.Name:         typed(h.listNoise),
		api.NoiseSet.Name:          typed(h.setNoise),
		api.NoiseRemove.Name:       typed(h.removeNoise),
		api.NoiseHistory.Name:      typed(h.listNoiseHistory),
		api.NoiseSuggest.Name:      typed(h.suggestNoise),
		api.PolicyList.Name:        typed(h.listPolicies),
		api.PolicyShow.Name:        typed(h.showPolicy),
		api.PolicySet.Name:         typed(h.setPolicy),
		api.PolicyRemove.Name:      typed(h.removePolicy),
		api.PolicyHistory.Name:     typed(h.listPolicyHistory),
		api.PolicyTest.Name:        typed(h.testPolicies),
		api.FreezeList.Name:        typed(h.listFreezes),
		api.FreezeSet.Name:         typed(h.setFreeze),
		api.FreezeRemove.Name:      typed(h.removeFreeze),
		api.FreezeHistory.Name:     typed(h.listFreezeHistory),
		api.SessionOpen.Name:       h.login,
		api.SessionShow.Name:       typed(h.showSession),
		api.SessionClose.Name:      typed(h.closeSession),
		api.TokenList.Name:         typed(h.listTokens),
		api.TokenCreate.Name:       typed(h.createToken),
		api.TokenRevoke.Name:       typed(h.revokeToken),
		api.TokenRevokeAll.Name:    typed(h.revokeTokens),
		api.UserList.Name:          typed(h.listUsers),
		api.UserShow.Name:          typed(h.showUser),
		api.UserCreate.Name:        typed(h.createUser),
		api.UserEdit.Name:          typed(h.editUser),
		api.UserDelete.Name:        typed(h.deleteUser),
		api.UserPassword.Name:      typed(h.setPassword),
		api.RoleList.Name:          typed(h.listRoles),
		api.RoleShow.Name:          typed(h.showRole),
		api.RoleCreate.Name:        typed(h.createRole),
		api.RoleEdit.Name:          typed(h.editRole),
		api.RoleDelete.Name:        typed(h.deleteRole),
		api.AuditList.Name:         typed(h.listAudit),
		api.AuditChain.Name:        typed(h.auditChain),
		api.AuditVerify.Name:       typed(h.verifyAudit),
		api.AuditSign.Name:         typed(h.signAudit),
		api.ServerUsage.Name:       typed(h.showUsage),
	}
}

// typed makes an action of a function from request type to response type.
func typed[Request, Response any](act func(context.Context, Request) (Response, error)) action {
	return func(_ http.ResponseWriter, r *http.Request, begin func(any) error) (any, error) {
		var request Request
		if err := api.Bind(r, &request); err != nil {
			return nil, err
		}
		if err := begin(request); err != nil {
			return nil, err
		}
		return act(r.Context(), request)
	}
}

// nothing is the request or response of an operation that has none.
type nothing struct{}

func (h *Handler) serve(op api.Operation, act action) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r, err := h.identify(r)
		if err == nil || op.Permission == fleet.Open { // who logs in may show an old token
			err = h.permit(r, op)
		}
		if err != nil {
			h.refuse(r.Context(), op.Name, pathText(r, op), err) //nolint:contextcheck // the request carries it
			h.problem(w, r, err)
			return
		}
		if limit := op.BodyLimit(); limit > 0 {
			r.Body = http.MaxBytesReader(w, r.Body, limit)
		}
		if op.Uploads() {
			h.Streams(r.Context()) //nolint:contextcheck // the request carries it
		}
		answer, err := h.do(w, r, op, act)
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

// do performs an act and records it: that it begins, and before the answer is
// sent, how it ended.
func (h *Handler) do(w http.ResponseWriter, r *http.Request, op api.Operation, act action) (any, error) {
	var finish func(error)
	answer, err := act(w, r, func(request any) (err error) { //nolint:contextcheck // the request carries it
		finish, err = h.record(r.Context(), op, request)
		return err
	})
	switch {
	case finish == nil: // it did not begin
	case op.Kind == api.Act || h.AuditReads():
		finish(err)
	default: // a question whose object turned out to be none of theirs
		h.refuse(r.Context(), op.Name, pathText(r, op), err)
	}
	return answer, err
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
	status := api.StatusOf(err)
	if kind == fault.Denied && fleet.ActorFrom(r.Context()).Kind == fleet.Anonymous {
		w.Header().Set("WWW-Authenticate", `Bearer realm="tutti"`)
		status = http.StatusUnauthorized
	}
	if body.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(body.RetryAfter, 10))
	}
	writeJSON(w, status, body)
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
	if refused, ok := errors.AsType[*codecheck.Refused](err); ok {
		body.Check = checkOf(&refused.Report)
	}
	return body
}
