package server

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync/atomic"
	"time"
)

// service is one part whose health is asked for.
type service struct {
	name    string
	version string // empty: the server's
	check   func(context.Context) error
	more    func(well bool) map[string]any // what else it says of itself; may be nil
}

// puppetDBStatus is the service by which PuppetDB's clients ask for its health.
const puppetDBStatus = "puppetdb-status"

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
	services []service
	version  string
	stopping atomic.Bool
}

// checkTime is how long one part may take to say that it is well.
const checkTime = 3 * time.Second

// simple says "running" (200), or "stopping" or "error" (503): agents with a
// server_list go on to the next one.
func (h *health) simple(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	word := "running"
	if h.stopping.Load() {
		word = "stopping"
	} else {
		for _, s := range h.services {
			if s.state(r.Context()) != "running" {
				word = "error"
			}
		}
	}
	if word != "running" {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write([]byte(word))
}

func (s service) state(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	if s.check(ctx) != nil {
		return "error"
	}
	return "running"
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

func (h *health) part(ctx context.Context, s service) part {
	p := part{Version: cmp.Or(s.version, h.version), StatusVersion: 1, DetailLevel: "info", State: s.state(ctx), Status: map[string]any{}, Alerts: []any{}}
	if s.more != nil {
		p.Status = s.more(p.State == "running")
	}
	return p
}

func (h *health) all(w http.ResponseWriter, r *http.Request) {
	answer, status := map[string]part{}, http.StatusOK
	for _, s := range h.services {
		p := h.part(r.Context(), s)
		if p.State != "running" {
			status = http.StatusServiceUnavailable
		}
		answer[s.name] = p
	}
	tell(w, status, answer)
}

// puppetDB tells of the service that stands in for a PuppetDB.
func (h *health) puppetDB(w http.ResponseWriter, r *http.Request) {
	i := slices.IndexFunc(h.services, func(s service) bool { return s.name == puppetDBStatus })
	p := h.part(r.Context(), h.services[i])
	p.Name = puppetDBStatus
	status := http.StatusOK
	if p.State != "running" {
		status = http.StatusServiceUnavailable
	}
	tell(w, status, p)
}

func tell(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}
