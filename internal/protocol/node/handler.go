package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"golang.org/x/sync/semaphore"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rate"
)

// Prefix is where the API begins.
const Prefix = "/node/v1"

// Deliveries says what nodes may have; *deliver.Service is one.
type Deliveries interface {
	// Pointer is what a node may have; NotFound when that is nothing.
	Pointer(ctx context.Context, node fleet.Certname) (deliver.Pointer, error)
	// MayHave says whether a node may fetch a catalog.
	MayHave(ctx context.Context, node fleet.Certname, catalog fleet.Digest) (bool, error)
}

// Config hands in what the handler works on.
type Config struct {
	Deliveries Deliveries
	Modules    Modules
	Blobs      cas.Store
	Facts      Facts
	RequestID  func(context.Context) string // the reference that logs and callers share
	Log        *slog.Logger

	FactsRate *rate.Rule // how often a node may submit facts; nil: as it likes

	MaxFactsBytes int64 // most that a submission of facts may have, packed and unpacked; 0: 16 MiB
}

// Handler serves Prefix.
type Handler struct {
	Config
	mux       *http.ServeMux
	documents *semaphore.Weighted // that are sent at the same time
	reading   *semaphore.Weighted // submissions that are taken at the same time
}

// maxDocuments is how many documents are sent at the same time.
const maxDocuments = 128

// New returns the handler.
func New(c Config) *Handler {
	c.MaxFactsBytes = cmp.Or(c.MaxFactsBytes, facts.MaxBytes)
	h := &Handler{Config: c, mux: http.NewServeMux(), documents: semaphore.NewWeighted(maxDocuments), reading: semaphore.NewWeighted(maxReading)}
	for pattern, serve := range map[string]question{
		"GET " + Prefix + "/catalog":           h.pointer,
		"GET " + Prefix + "/catalogs/{digest}": h.document,
		"GET " + Prefix + "/modules":           h.modules,
		"GET " + Prefix + "/modules/{digest}":  h.moduleFile,
		"GET " + Prefix + "/facts":             h.getFacts,
		"PUT " + Prefix + "/facts":             h.putFacts,
		"PATCH " + Prefix + "/facts":           h.patchFacts,
	} {
		h.mux.Handle(pattern, h.own(serve))
	}
	h.mux.HandleFunc(Prefix+"/", func(w http.ResponseWriter, r *http.Request) {
		h.problem(w, r, fault.New(fault.NotFound, "nodes cannot ask for %s %.200s", r.Method, r.URL.Path))
	})
	return h
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// question answers a node. What it returns is answered as an error.
type question func(w http.ResponseWriter, r *http.Request, node fleet.Certname) error

// own lets nodes through, each as itself.
func (h *Handler) own(serve question) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		actor := fleet.ActorFrom(r.Context())
		err := fault.New(fault.Denied, "this is for nodes: show the node's certificate")
		if actor.Kind == fleet.NodeActor {
			err = serve(w, r, fleet.Certname(actor.Name))
		}
		if err != nil {
			h.problem(w, r, err)
		}
	})
}

// problem answers with an error; the log is told what the caller must not know.
func (h *Handler) problem(w http.ResponseWriter, r *http.Request, err error) {
	kind := fault.Of(err)
	body := api.Problem{Kind: kind.String(), Message: fault.Detail(err), RequestID: h.RequestID(r.Context()), RetryAfter: api.RetrySeconds(err)}
	if kind == fault.Internal && !errors.Is(err, context.Canceled) {
		h.Log.ErrorContext(r.Context(), "request failed", "err", err, "request_id", body.RequestID, "path", r.URL.Path)
	}
	if body.Message == "" {
		body.Message = "the server made a mistake; its log names the cause under this request's id"
	}
	if body.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(body.RetryAfter, 10))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(api.StatusOf(err))
	_ = json.NewEncoder(w).Encode(body) // the caller is gone if this fails
}
