package puppetdb

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

const (
	adminCommandPath = "/pdb/admin/v1/cmd"
	summaryPath      = "/pdb/admin/v1/summary-stats"
)

// Keeper does at once what the server's housekeeping does from time to time. Each
// returns how many it changed.
type Keeper interface {
	// ExpireNodes expires nodes that gave no sign of life for too long.
	ExpireNodes(ctx context.Context) (int, error)
	// PurgeNodes forgets nodes that left long ago, at most limit of them; 0: all.
	PurgeNodes(ctx context.Context, limit int) (int, error)
	// PurgeReports forgets reports past their time.
	PurgeReports(ctx context.Context) (int, error)
	// PurgeNode forgets one node; NotFound if nothing is known of it.
	PurgeNode(ctx context.Context, name fleet.Certname) error
}

// adminCommand answers {"command": "clean" or "delete", "version": 1, "payload": ...}.
func (h *Handler) adminCommand(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return refused{http.StatusMethodNotAllowed, "administrators' commands are sent with POST"}
	}
	var sent struct {
		Command string          `json:"command"`
		Version int             `json:"version"`
		Payload json.RawMessage `json:"payload"`
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxWordBytes))
	if err == nil {
		err = json.Unmarshal(body, &sent)
	}
	if err != nil || sent.Version != 1 {
		return fault.New(fault.Invalid, "Invalid command: it is an object like {\"command\": \"clean\", \"version\": 1, \"payload\": []}")
	}
	switch sent.Command {
	case "clean":
		return h.clean(w, r, sent.Payload)
	case "delete":
		return h.deleteNode(w, r, sent.Payload)
	default:
		return fault.New(fault.Invalid, "Invalid command %q: Valid commands types are: 'clean' and 'delete'", clip(sent.Command))
	}
}

func (h *Handler) deleteNode(w http.ResponseWriter, r *http.Request, payload json.RawMessage) error {
	var node struct {
		Certname string `json:"certname"`
	}
	if err := json.Unmarshal(payload, &node); err != nil || node.Certname == "" {
		return fault.New(fault.Invalid, "Invalid command \"delete\": its payload is an object like {\"certname\": \"web-1\"}")
	}
	name, err := fleet.ParseCertname(node.Certname)
	if err != nil {
		return err
	}
	if err := h.Keeper.PurgeNode(r.Context(), name); err != nil && fault.Of(err) != fault.NotFound {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]string{"deleted": node.Certname})
	return nil
}

// clean does the chores that are asked for; all of them if none is named.
func (h *Handler) clean(w http.ResponseWriter, r *http.Request, payload json.RawMessage) error {
	chores, err := h.chores(payload)
	if err != nil {
		return err
	}
	if !h.cleaning.TryLock() {
		writeJSON(w, http.StatusConflict, map[string]any{"kind": "conflict", "msg": "Another cleanup is already in progress", "details": nil})
		return nil
	}
	defer h.cleaning.Unlock()
	for _, chore := range chores {
		if _, err := chore(r.Context()); err != nil {
			return err
		}
	}
	writeJSON(w, http.StatusOK, map[string]bool{"ok": true})
	return nil
}

type chore func(context.Context) (int, error)

func (h *Handler) chores(payload json.RawMessage) ([]chore, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(payload, &items); err != nil {
		return nil, errChores
	}
	if len(items) == 0 {
		items = []json.RawMessage{[]byte(`"expire_nodes"`), []byte(`"purge_nodes"`), []byte(`"purge_reports"`)}
	}
	var list []chore
	for _, item := range items {
		next, err := h.chore(item)
		if err != nil {
			return nil, err
		}
		list = append(list, next)
	}
	return list, nil
}

var errChores = fault.New(fault.Invalid, "Invalid command \"clean\": its payload is a list of expire_nodes, purge_nodes, "+
	"[\"purge_nodes\", {\"batch_limit\": 50}], purge_reports, gc_packages and other")

// chore reads "name" or ["name", {"batch_limit": n}].
func (h *Handler) chore(item json.RawMessage) (chore, error) {
	var name string
	var options struct {
		Limit int `json:"batch_limit"`
	}
	if json.Unmarshal(item, &name) != nil {
		var pair []json.RawMessage
		if json.Unmarshal(item, &pair) != nil || len(pair) != 2 || json.Unmarshal(pair[0], &name) != nil || name != "purge_nodes" ||
			json.Unmarshal(pair[1], &options) != nil || options.Limit < 1 {
			return nil, errChores
		}
	}
	switch name {
	case "expire_nodes":
		return h.Keeper.ExpireNodes, nil
	case "purge_nodes":
		return func(ctx context.Context) (int, error) { return h.Keeper.PurgeNodes(ctx, options.Limit) }, nil
	case "purge_reports", "purge_resource_events": // events go with their reports
		return h.Keeper.PurgeReports, nil
	case "gc_packages", "gc_catalogs", "gc_fact_paths", "other": // the store tidies itself
		return func(context.Context) (int, error) { return 0, nil }, nil
	default:
		return nil, errChores
	}
}

// summary answers summary-stats with the figures that Tutti has. PuppetDB's are for
// its developers: sizes of its tables, and how values are distributed.
func (h *Handler) summary(w http.ResponseWriter, r *http.Request) error {
	stats := map[string]any{}
	for name, query := range map[string]string{
		"num_nodes":       `nodes[count()]{node_state = "any"}`,
		"num_resources":   `resources[count()]{node_state = "any"}`,
		"num_edges":       `edges[count()]{node_state = "any"}`,
		"num_reports":     `reports[count()]{node_state = "any"}`,
		"num_fact_paths":  `fact_paths[count()]{}`,
		"num_facts":       `fact_contents[count()]{node_state = "any"}`,
		"num_packages":    `packages[count()]{}`,
		"num_environment": `environments[count()]{}`,
	} {
		n, err := h.figure(r.Context(), query)
		if err != nil {
			return err
		}
		stats[name] = n
	}
	active, err := h.figure(r.Context(), `nodes[count()]{}`)
	if err != nil {
		return err
	}
	all, _ := stats["num_nodes"].(int64)
	stats["node_activity"] = []map[string]any{{"active": true, "count": active}, {"active": false, "count": all - active}}
	writeJSON(w, http.StatusOK, stats)
	return nil
}

var errNoFigure = errors.New("the count has no row")
