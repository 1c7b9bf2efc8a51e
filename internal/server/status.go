package server

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"time"
)

// service is one part whose health is asked for.
type service struct {
	name  string
	check func(context.Context) error
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

func (h *health) all(w http.ResponseWriter, r *http.Request) {
	type part struct {
		Version       string         `json:"service_version"`
		StatusVersion int            `json:"service_status_version"`
		DetailLevel   string         `json:"detail_level"`
		State         string         `json:"state"`
		Status        map[string]any `json:"status"`
		Alerts        []any          `json:"active_alerts"`
	}
	answer, status := map[string]part{}, http.StatusOK
	for _, s := range h.services {
		p := part{h.version, 1, "info", s.state(r.Context()), map[string]any{}, []any{}}
		if p.State != "running" {
			status = http.StatusServiceUnavailable
		}
		answer[s.name] = p
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}
