package orchestrator

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/pql"
	"github.com/tutti-project/tutti/internal/protocol/pejson"
)

// collections and commands are what the root names.
var (
	collections = []string{"environments", "jobs", "plan_jobs", "scheduled_jobs", "scopes/task_targets", "inventory", "tasks", "plans"}
	commands    = []string{
		"deploy", "stop", "task", "task_target", "plan_start", "plan_task", "plan_finish", "stop_plan", "schedule_task", "schedule_deploy",
	}
)

// root tells what there is.
func (h *Handler) root(w http.ResponseWriter, r *http.Request) error {
	l := linksOf(r)
	list := func(prefix string, names []string) []named {
		all := make([]named, len(names))
		for i, name := range names {
			all[i] = named{ID: l.base + prefix + name, Name: name}
		}
		return all
	}
	pejson.Write(w, http.StatusOK, map[string]any{
		"info": map[string]any{
			"title": "Tutti as an orchestrator", "description": "Start, watch and stop jobs on many nodes, as clients of Puppet Enterprise do",
			"warning": "docs/enterprise-api-compatibility.md lists what differs", "version": "0.1",
			"license": map[string]string{"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
		},
		"status":      named{ID: l.to("status"), Name: "status"},
		"collections": list("/", collections), "commands": list("/command/", commands),
	})
	return nil
}

func (h *Handler) status(w http.ResponseWriter, _ *http.Request) error {
	pejson.Write(w, http.StatusOK, map[string]string{"service_name": "orchestrator-service", "state": "running"})
	return nil
}

// usage tells how many nodes there are today. Days before are not kept.
func (h *Handler) usage(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	from, err := h.time(query, "start_date")
	if err != nil {
		return err
	}
	until, err := h.time(query, "end_date")
	if err != nil {
		return err
	}
	today := h.Now().UTC().Truncate(24 * time.Hour)
	switch events := query.Get("events"); {
	case events != "" && events != "include" && events != "exclude":
		return h.invalid("events", "it is include or exclude, not %.40q", events)
	case !from.IsZero() && !until.IsZero() && until.Before(from):
		return h.invalid("end_date", "it is before start_date")
	}
	items := []any{}
	if !from.After(today) && (until.IsZero() || !until.Before(today)) {
		n, err := h.activeNodes(r)
		if err != nil {
			return err
		}
		items = append(items, map[string]any{"date": today.Format(time.DateOnly), "total_nodes": n, "nodes_with_agent": n, "nodes_without_agent": 0})
	}
	day := func(t time.Time) string {
		if t.IsZero() {
			t = today
		}
		return t.Format(time.DateOnly)
	}
	pejson.Write(w, http.StatusOK, map[string]any{"items": items, "pagination": map[string]string{"start_date": day(from), "end_date": day(until)}})
	return nil
}

// activeNodes counts the nodes that the inventory knows and that are active.
func (h *Handler) activeNodes(r *http.Request) (n int64, err error) {
	asked, err := pql.Read("nodes[count()] { }")
	if err != nil {
		return 0, err
	}
	checked, err := pql.Check(asked)
	if err != nil {
		return 0, err
	}
	err = h.Inventory.Ask(r.Context(), inventory.Question{Query: checked}, func(row json.RawMessage) error {
		var counted struct {
			Count int64 `json:"count"`
		}
		err := json.Unmarshal(row, &counted)
		n = counted.Count
		return err
	})
	return n, err
}
