package orchestrator

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/internal/job/memo"
	"github.com/tutti-project/tutti/internal/protocol/pejson"
)

// createTaskTarget keeps a set of tasks and nodes.
func (h *Handler) createTaskTarget(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		DisplayName string   `json:"display_name"`
		Tasks       []string `json:"tasks"`
		AllTasks    bool     `json:"all_tasks"`
		Nodes       []string `json:"nodes"`
		NodeGroups  []string `json:"node_groups"`
		Query       string   `json:"pql_query"`
	}
	if err := h.read(w, r, maxBody, &body); err != nil {
		return err
	}
	switch {
	case strings.TrimSpace(body.DisplayName) == "":
		return h.invalid("display_name", "it is missing")
	case !body.AllTasks && body.Tasks == nil:
		return h.invalid("tasks", "give a list of tasks, or all_tasks")
	case body.Nodes == nil:
		return h.invalid("nodes", "it is missing; give a list, which may be empty")
	case body.NodeGroups == nil:
		return h.invalid("node_groups", "it is missing; give a list, which may be empty")
	}
	content := memo.TaskTargetContent{
		DisplayName: body.DisplayName, Tasks: body.Tasks, AllTasks: body.AllTasks, Nodes: body.Nodes, NodeGroups: body.NodeGroups, Query: body.Query,
	}
	if content.AllTasks {
		content.Tasks = nil
	}
	if err := memo.Check(content); err != nil {
		return err
	}
	made, err := h.Memos.CreateTaskTarget(r.Context(), memo.TaskTarget{TaskTargetContent: content})
	if err != nil {
		return err
	}
	pejson.Write(w, http.StatusOK, map[string]named{"task_target": linksOf(r).numbered("scopes/task_targets", made.ID)})
	return nil
}

func targetView(l links, t memo.TaskTarget) map[string]any {
	link := l.numbered("scopes/task_targets", t.ID)
	view := map[string]any{
		"id": link.ID, "name": link.Name, "display_name": t.DisplayName, "tasks": texts(t.Tasks), "all_tasks": t.AllTasks,
		"nodes": texts(t.Nodes), "node_groups": texts(t.NodeGroups),
	}
	if t.Query != "" {
		view["pql_query"] = t.Query
	}
	return view
}

func (h *Handler) listTaskTargets(w http.ResponseWriter, r *http.Request) error {
	all, err := h.Memos.TaskTargets(r.Context())
	if err != nil {
		return err
	}
	items := make([]any, len(all))
	for i, t := range all {
		items[i] = targetView(linksOf(r), t)
	}
	pejson.Write(w, http.StatusOK, map[string]any{"items": items})
	return nil
}

func (h *Handler) showTaskTarget(w http.ResponseWriter, r *http.Request) error {
	id, err := h.number("id", r.PathValue("id"))
	if err != nil {
		return err
	}
	t, err := h.Memos.TaskTarget(r.Context(), id)
	if err != nil {
		return h.missing(unknownTarget, map[string]string{"task_target": strconv.FormatInt(id, 10)}, err)
	}
	pejson.Write(w, http.StatusOK, targetView(linksOf(r), t))
	return nil
}
