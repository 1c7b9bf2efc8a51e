package server

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// service is one part whose health is asked for.
type service struct {
	name    string
	version string                         // empty: the server's
	check   func(context.Context) error    // nil: it is well when the database answers
	more    func(well bool) map[string]any // what else it says of itself; may be nil
}

// puppetDBStatus is the service by which PuppetDB's clients ask for its health.
const puppetDBStatus = "puppetdb-status"

// orchestratorStatus is the service by which clients of the orchestrator ask for its health.
const orchestratorStatus = "orchestrator-service"

// levels is how much clients may want to be told. It is always the same here.
var levels = []string{"", "critical", "info", "debug"}

// asPuppetDB is what a PuppetDB says of itself. Commands are stored before they are
// answered: none waits in a queue.
func asPuppetDB(well bool) map[string]any {
	return map[string]any{
		"maintenance_mode?": false, "queue_depth": 0, "read_db_up?": well, "write_db_up?": well, "write_dbs_up?": well,
		"write_db": map[string]any{"default": map[string]bool{"up?": well}},
	}
}

// health answers /status/v1 in the shapes that Puppet's agents and monitors
// know: "simple" is a word, "services" an object for each part.
type health struct {
	database func(context.Context) error // asks it; nil: it answered
	services []service
	version  func() string // of Puppet; empty: not known
	cut      func() bool   // nodes are served without the database, which need not be asked; nil: never
	stopping atomic.Bool
	draining atomic.Bool
}

// checkTime is how long the database may take to answer. A monitor gets its answer in that time, also from a database that gives none.
const checkTime = 3 * time.Second

// look says of each service what is wrong with it. The database is asked once for all of them.
func (h *health) look(ctx context.Context, services ...service) []error {
	var database error
	if slices.ContainsFunc(services, func(s service) bool { return s.check == nil }) {
		database = h.askDatabase(ctx)
	}
	wrong := make([]error, len(services))
	for i, s := range services {
		if wrong[i] = database; s.check != nil {
			wrong[i] = s.check(ctx)
		}
	}
	return wrong
}

func (h *health) askDatabase(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	err := h.database(ctx)
	if err != nil && ctx.Err() != nil {
		return fault.Wrap(fault.Unavailable, err, "the database does not answer within %s", checkTime)
	}
	return err
}

// live answers as long as the process does, whatever it lacks: a server that is not ready need not be started again.
func (h *health) live(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("alive"))
}

// simple says "running" (200), or "draining", "stopping" or "error" (503): agents with a
// server_list go on to the next one, and so do load balancers.
func (h *health) simple(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	word := "running"
	if h.stopping.Load() {
		word = "stopping"
	} else if h.draining.Load() {
		word = "draining"
	} else if h.cut != nil && h.cut() {
		w.Header().Set("X-Tutti-Database", "cut") // nodes come here all the same: it is what this server is for
	} else if slices.ContainsFunc(h.look(r.Context(), h.services...), func(err error) bool { return err != nil }) {
		word = "error"
	}
	if word != "running" {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write([]byte(word))
}

// part is what is told of one service.
type part struct {
	Version       string         `json:"service_version"`
	StatusVersion int            `json:"service_status_version"`
	DetailLevel   string         `json:"detail_level"`
	State         string         `json:"state"`
	Status        map[string]any `json:"status"`
	Alerts        []any          `json:"active_alerts"`
	Name          string         `json:"service_name,omitempty"` // where it is not the key
}

// part tells of a service with which something is wrong, or nothing. What is wrong is said to everybody: it names no node, file or address.
func (h *health) part(s service, wrong error) part {
	p := part{
		Version: cmp.Or(s.version, h.version()), StatusVersion: 1, DetailLevel: "info", State: "running",
		Status: map[string]any{}, Alerts: []any{},
	}
	if s.more != nil {
		p.Status = s.more(wrong == nil)
	}
	if wrong != nil {
		p.State, p.Status["reason"] = "error", fault.Detail(wrong)
	}
	return p
}

func (h *health) all(w http.ResponseWriter, r *http.Request) {
	answer, status := map[string]part{}, http.StatusOK
	for i, wrong := range h.look(r.Context(), h.services...) {
		if wrong != nil {
			status = http.StatusServiceUnavailable
		}
		answer[h.services[i].name] = h.part(h.services[i], wrong)
	}
	tell(w, status, answer)
}

// one tells of one service, in JSON also when there is none. That of PuppetDB has a route of its own.
func (h *health) one(w http.ResponseWriter, r *http.Request) {
	problem := func(status int, kind, message string) {
		tell(w, status, map[string]any{"kind": kind, "msg": message, "details": struct{}{}})
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		problem(http.StatusMethodNotAllowed, "method-not-allowed", r.Method+" is not possible here; GET is")
		return
	}
	if !slices.Contains(levels, r.URL.Query().Get("level")) {
		problem(http.StatusBadRequest, "request-data-invalid", "level is critical, info or debug")
		return
	}
	i := slices.IndexFunc(h.services, func(s service) bool { return s.name == r.PathValue("name") })
	if i < 0 || h.services[i].name == puppetDBStatus {
		problem(http.StatusNotFound, "service-not-found", "there is no such service; GET /status/v1/services lists those that there are")
		return
	}
	h.tellOne(w, r, h.services[i])
}

// puppetDB tells of the service that stands in for a PuppetDB.
func (h *health) puppetDB(w http.ResponseWriter, r *http.Request) {
	s := h.services[slices.IndexFunc(h.services, func(s service) bool { return s.name == puppetDBStatus })]
	h.tellOne(w, r, s)
}

func (h *health) tellOne(w http.ResponseWriter, r *http.Request, s service) {
	wrong := h.look(r.Context(), s)[0]
	p := h.part(s, wrong)
	p.Name = s.name
	status := http.StatusOK
	if wrong != nil {
		status = http.StatusServiceUnavailable
	}
	tell(w, status, p)
}

func tell(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}
