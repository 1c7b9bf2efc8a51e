package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
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
	"github.com/tutti-project/tutti/internal/pql"
	"github.com/tutti-project/tutti/internal/rbac"
)

// Config hands in the parts that the operations work on.
type Config struct {
	Certificates       Certificates
	CertificateEnds    CertificateEnds
	Requests           CertificateRequests
	Code               Code
	Sources            Sources
	Engines            Engines
	Blobs              cas.Store
	Nodes              inventory.NodeStore
	Presences          inventory.Presences
	Asker              Asker
	Catalogue          Catalogue
	Invoker            Invoker
	Calls              CallRecords
	Judges             Judges
	Lookups            Lookups
	Targets            Targets
	Runs               inventory.RunStore
	Breakages          compile.Breakages
	Facts              inventory.FactStore
	Catalogs           inventory.CatalogStore
	Inputs             CatalogInputs
	Deliveries         Deliveries
	Losses             Losses
	CatalogReleases    CatalogReleases
	CatalogChanges     CatalogChanges
	Compilations       compile.Board
	CompilePauses      compile.Pauses
	CompileTurns       compile.Turns
	Wanting            Wanting
	Verifying          Verifying
	Usages             Usages
	Cluster            Cluster
	SetAside           SetAside // nil: there is none on this server
	Reports            inventory.ReportStore
	Events             Events
	Inventory          inventory.Asker
	SavedQueries       SavedQueries
	Groups             classify.Store
	Tasks              Tasks
	Jobs               JobRecords
	JobOrders          JobOrders
	JobFiles           JobFiles
	Previews           Previews
	PreviewOrders      PreviewOrders
	Noise              Noise
	Releases           ReleaseRecords
	ReleasePlanner     ReleasePlanner
	ReleaseControl     ReleaseControl
	ReleaseDifferences ReleaseDifferences
	Policies           Policies
	PreviewJudge       PreviewJudge
	Applications       Applications
	Classifier         Classifier
	GroupDoubts        GroupDoubts // nil: groups are compared with nothing
	Access             *rbac.Access
	Audit              *rbac.Audit
	AuditLog           rbac.AuditStore
	AuditChain         *rbac.Chain
	AuditReads         func() bool // whether questions are recorded, too
	Scopes             Scopes
	Console            func() string                      // the address of the console; empty: it is not served
	Entry              func(context.Context) rbac.Entry   // when, from where, under which reference
	RequestID          func(context.Context) string       // the reference that logs and callers share
	NoteActor          func(context.Context, fleet.Actor) // is told who asks, for the log
	Streams            func(context.Context)              // is told that a body is not kept in memory
	Stopping           <-chan struct{}                    // closed when the server begins to stop: streams end then, too
	Log                *slog.Logger
}

// Handler serves /api/v1: it knows who asks, whether they may, and which area answers.
type Handler struct {
	mux       *http.ServeMux
	gate      *gate
	recorder  *recorder
	problems  *problems
	files     *files
	noteActor func(context.Context, fleet.Actor)
	unkept    func(context.Context)
}

// New binds every operation to what it does. It returns an error when an
// operation is bound to nothing, or something to no operation.
func New(c Config) (*Handler, error) {
	h := &Handler{
		mux: http.NewServeMux(), gate: &gate{access: c.Access, nodes: c.Nodes, scopes: c.Scopes},
		recorder: &recorder{audit: c.Audit, connection: c.Entry, auditReads: c.AuditReads, log: c.Log},
		problems: &problems{log: c.Log, requestID: c.RequestID}, noteActor: c.NoteActor, unkept: c.Streams,
	}
	h.files = &files{files: c.JobFiles, blobs: c.Blobs, problems: h.problems}
	var bound []binding
	for _, area := range h.areas(c) {
		bound = append(bound, area.bindings()...)
	}
	if err := complete(api.Operations(), bound); err != nil {
		return nil, err
	}
	for _, b := range bound {
		h.mux.Handle(b.op.Method+" "+api.Prefix+b.op.Path, h.serve(b))
	}
	h.mux.HandleFunc(api.Prefix+"/", func(w http.ResponseWriter, r *http.Request) {
		h.problems.problem(w, r, fault.New(fault.NotFound, "there is no operation %s %.200s", r.Method, r.URL.Path))
	})
	return h, nil
}

// areas hands each area what it needs.
func (h *Handler) areas(c Config) []area {
	follow := &streams{gate: h.gate, log: c.Log, stopping: c.Stopping}
	there := &roster{nodes: c.Nodes, certificates: c.Certificates, ends: c.CertificateEnds, presences: c.Presences}
	chosen := &selector{
		gate: h.gate, nodes: c.Nodes, groups: c.Groups, inventory: c.Inventory, classifier: c.Classifier, presences: c.Presences,
		runs: c.Runs, breakages: c.Breakages, holders: &holders{code: c.Code, deliveries: c.Deliveries},
	}
	compared := &differences{gate: h.gate, blobs: c.Blobs, catalogs: c.Catalogs, comparing: make(chan struct{}, maxComparing)}
	delivered := &deliveries{
		gate: h.gate, roster: there, nodes: c.Nodes, groups: c.Groups, deliveries: c.Deliveries, losses: c.Losses,
		releases: c.CatalogReleases,
	}
	compiled := &compilations{
		gate: h.gate, selector: chosen, board: c.Compilations, pauses: c.CompilePauses, turns: c.CompileTurns,
		wanting: c.Wanting, verifying: c.Verifying,
	}
	done := &jobs{gate: h.gate, streams: follow, jobs: c.Jobs, orders: c.JobOrders}
	hidden := &noise{gate: h.gate, rules: c.Noise}
	previewed := &previews{
		gate: h.gate, streams: follow, differences: compared, noise: hidden, previews: c.Previews, orders: c.PreviewOrders, code: c.Code, blobs: c.Blobs, log: c.Log,
	}
	known := &nodes{
		nodes: c.Nodes, runs: c.Runs, breakages: c.Breakages, facts: c.Facts, catalogs: c.Catalogs, inputs: c.Inputs,
		roster: there, selector: chosen, deliveries: delivered, catalogue: c.Catalogue, reports: c.Reports,
	}
	logins := &sessions{gate: h.gate, recorder: h.recorder, access: c.Access, logins: rbac.Logins{Access: c.Access, Audit: c.Audit}, console: c.Console}
	return []area{
		compared, delivered, compiled, done, hidden, previewed, logins,
		&certificates{ca: c.Certificates, requests: c.Requests},
		&versions{gate: h.gate, code: c.Code, engines: c.Engines, blobs: c.Blobs, compilations: compiled, deliveries: delivered, selector: chosen},
		&sources{gate: h.gate, sources: c.Sources},
		known,
		&lookups{gate: h.gate, roster: there, lookups: c.Lookups},
		&actions{gate: h.gate, roster: there, catalogue: c.Catalogue},
		&pings{gate: h.gate, roster: there, nodes: known, targets: c.Targets, asker: c.Asker},
		&groups{groups: c.Groups, classifier: c.Classifier, doubts: c.GroupDoubts},
		&calls{gate: h.gate, streams: follow, roster: there, invoker: c.Invoker, judges: c.Judges},
		&pastCalls{gate: h.gate, calls: c.Calls},
		&reports{gate: h.gate, reports: c.Reports},
		&events{gate: h.gate, selector: chosen, events: c.Events, streams: follow},
		&tasks{tasks: c.Tasks},
		&questions{inventory: c.Inventory, saved: c.SavedQueries, problems: h.problems},
		&orders{
			gate: h.gate, recorder: h.recorder, roster: there, differences: compared, nodes: c.Nodes, jobs: done, orders: c.JobOrders, records: c.Jobs,
			tasks: c.Tasks, invoker: c.Invoker, blobs: c.Blobs, deliveries: c.Deliveries, changes: c.CatalogChanges,
		},
		&policies{gate: h.gate, previews: previewed, policies: c.Policies, judge: c.PreviewJudge},
		&releases{gate: h.gate, roster: there, releases: c.Releases, planner: c.ReleasePlanner, control: c.ReleaseControl, differences: c.ReleaseDifferences},
		&applications{applications: c.Applications},
		&users{sessions: logins, access: c.Access},
		&auditLog{entries: c.AuditLog, chain: c.AuditChain, log: c.Log},
		&usages{usages: c.Usages},
		&servers{cluster: c.Cluster},
		&asides{setAside: cmp.Or[SetAside](c.SetAside, none{})},
		newDescription(),
	}
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

func (h *Handler) serve(b binding) http.Handler {
	op := b.op
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r, err := h.identify(r)
		if err == nil || op.Permission == fleet.Open { // who logs in may show an old token
			err = h.gate.permit(r, b)
		}
		if err != nil {
			h.recorder.refuse(r.Context(), op.Name, pathText(r, op), err) //nolint:contextcheck // the request carries it
			h.problems.problem(w, r, err)
			return
		}
		if limit := op.BodyLimit(); limit > 0 {
			r.Body = http.MaxBytesReader(w, r.Body, limit)
		}
		if op.Uploads() {
			h.unkept(r.Context()) //nolint:contextcheck // the request carries it
		}
		answer, err := h.do(w, r, b)
		if err != nil {
			h.problems.problem(w, r, err)
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
func (h *Handler) do(w http.ResponseWriter, r *http.Request, b binding) (any, error) {
	op := b.op
	var finish func(error)
	answer, err := b.act(w, r, func(request any) (err error) { //nolint:contextcheck // the request carries it
		finish, err = h.recorder.record(r.Context(), op, request)
		return err
	})
	switch {
	case finish == nil: // it did not begin
	case op.Kind == api.Act || h.recorder.auditReads():
		finish(err)
	default: // a question whose object turned out to be none of theirs
		h.recorder.refuse(r.Context(), op.Name, pathText(r, op), err)
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

// problems tells callers and the log of errors.
type problems struct {
	log       *slog.Logger
	requestID func(context.Context) string
}

// problem answers with an error: its kind, what may be shown of it, and a
// reference to the log.
func (h *problems) problem(w http.ResponseWriter, r *http.Request, err error) {
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
func (h *problems) told(r *http.Request, err error) api.Problem {
	kind, id := fault.Of(err), h.requestID(r.Context())
	body := api.Problem{Kind: kind.String(), Message: fault.Detail(err), Hint: fault.Hint(err), RequestID: id}
	if kind == fault.Internal && !errors.Is(err, context.Canceled) {
		h.log.ErrorContext(r.Context(), "request failed", "err", err, "request_id", id, "path", r.URL.Path)
	}
	if body.Message == "" {
		body.Message = "the server made a mistake; its log names the cause under this request's id"
	}
	body.RetryAfter = api.RetrySeconds(err)
	if refused, ok := errors.AsType[*codecheck.Refused](err); ok {
		body.Check = checkOf(&refused.Report)
	}
	if wrong, ok := errors.AsType[*pql.Error](err); ok && wrong.Pos != (pql.Pos{}) {
		body.Place = &api.TextPlace{Line: wrong.Pos.Line, Column: wrong.Pos.Column}
	}
	return body
}
