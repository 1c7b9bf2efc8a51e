package classifier

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// nodesAsked reads names from the query (nodes=a,b) or the body ({"nodes": [...]}).
func nodesAsked(w http.ResponseWriter, r *http.Request) ([]fleet.Certname, error) {
	var asked struct {
		Nodes []string `json:"nodes"`
	}
	if text := r.URL.Query().Get("nodes"); text != "" {
		asked.Nodes = strings.Split(text, ",")
	} else if err := body(w, r, maxBody, &asked); err != nil {
		return nil, err
	}
	if len(asked.Nodes) == 0 {
		return nil, bad("malformed-request", nil, `no nodes are named: a body like {"nodes": ["a", "b"]}, or the parameter nodes=a,b, is expected`)
	}
	nodes := make([]fleet.Certname, len(asked.Nodes))
	for i, text := range asked.Nodes {
		node, err := fleet.ParseCertname(strings.TrimSpace(text))
		if err != nil {
			return nil, bad("schema-violation", map[string]string{"submitted": text}, "%s", fault.Detail(err))
		}
		nodes[i] = node
	}
	return nodes, nil
}

func (h *Handler) pin(w http.ResponseWriter, r *http.Request) error {
	return h.pins(w, r, func(g *classify.Group, nodes []fleet.Certname) { g.Pinned = slices.Concat(g.Pinned, nodes) })
}

func (h *Handler) unpin(w http.ResponseWriter, r *http.Request) error {
	return h.pins(w, r, func(g *classify.Group, nodes []fleet.Certname) { g.Pinned = without(g.Pinned, nodes) })
}

func without(pinned, nodes []fleet.Certname) []fleet.Certname {
	return slices.DeleteFunc(slices.Clone(pinned), func(node fleet.Certname) bool { return slices.Contains(nodes, node) })
}

func (h *Handler) pins(w http.ResponseWriter, r *http.Request, act func(*classify.Group, []fleet.Certname)) error {
	nodes, err := nodesAsked(w, r)
	if err != nil {
		return err
	}
	_, err = h.edit(r, nil, func(g *classify.Group, groups []classify.Group) error {
		act(g, nodes)
		return fits(*g, groups)
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// freed is a node and the groups that it was pinned in.
type freed struct {
	Name   string       `json:"name"`
	Groups []freedGroup `json:"groups"`
}

type freedGroup struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Environment string `json:"environment"`
}

// unpinFromAll takes nodes out of all groups that they are pinned in, all at once.
func (h *Handler) unpinFromAll(w http.ResponseWriter, r *http.Request) error {
	nodes, err := nodesAsked(w, r)
	if err != nil {
		return err
	}
	groups, _, err := h.Groups.Groups(r.Context())
	if err != nil {
		return err
	}
	answer := struct {
		Nodes []freed `json:"nodes"`
	}{Nodes: []freed{}}
	all := familyOf(groups)
	for _, node := range nodes {
		from := freed{Name: string(node), Groups: []freedGroup{}}
		for _, g := range groups {
			if slices.Contains(g.Pinned, node) {
				from.Groups = append(from.Groups, freedGroup{string(g.ID), g.Name, all.environment(g)})
			}
		}
		if len(from.Groups) > 0 {
			answer.Nodes = append(answer.Nodes, from)
		}
	}
	if changes := withoutPins(groups, nodes, fleet.ActorFrom(r.Context())); len(changes) > 0 {
		if _, err := h.Groups.ChangeGroups(r.Context(), changes); err != nil {
			return err
		}
	}
	write(w, http.StatusOK, answer)
	return nil
}

func withoutPins(groups []classify.Group, nodes []fleet.Certname, by fleet.Actor) []classify.Change {
	var changes []classify.Change
	for _, g := range groups {
		if left := without(g.Pinned, nodes); len(left) < len(g.Pinned) {
			g.Pinned = left
			stamp(&g, by, time.Now())
			changes = append(changes, classify.Change{Kind: classify.Update, Group: g})
		}
	}
	return changes
}
