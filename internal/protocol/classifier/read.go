package classifier

import (
	"net/http"
	"strconv"

	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/fleet"
)

func (h *Handler) listGroups(w http.ResponseWriter, r *http.Request) error {
	groups, _, err := h.Groups.Groups(r.Context())
	if err != nil {
		return err
	}
	all, shown := familyOf(groups), make([]wireGroup, len(groups))
	for i, g := range groups {
		shown[i] = all.asked(r, g)
	}
	write(w, http.StatusOK, shown)
	return nil
}

// asked is the group with what it inherits if the request wants that.
func (f family) asked(r *http.Request, g classify.Group) wireGroup {
	if text := r.URL.Query().Get("inherited"); text != "" && text != "false" && text != "0" {
		return f.inherited(g)
	}
	return f.wire(g)
}

func (h *Handler) showGroup(w http.ResponseWriter, r *http.Request) error {
	g, groups, err := h.group(r)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, familyOf(groups).asked(r, g))
	return nil
}

func (h *Handler) listNodes(w http.ResponseWriter, r *http.Request) error {
	g, _, err := h.group(r)
	if err != nil {
		return err
	}
	nodes, err := h.Fleet.GroupNodes(r.Context(), g.ID)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, map[string]any{"nodes": append([]fleet.Certname{}, nodes...)})
	return nil
}

// wireTree is a group with those below it.
type wireTree struct {
	wireGroup
	ImmediateChildren int        `json:"immediate_child_count"`
	Children          []wireTree `json:"children"`
}

func (h *Handler) listChildren(w http.ResponseWriter, r *http.Request) error {
	depth := classify.MaxGroups
	if text := r.URL.Query().Get("depth"); text != "" {
		var err error
		if depth, err = strconv.Atoi(text); err != nil || depth < 0 {
			return bad("malformed-number", text, "depth must be a whole number, not %.40q", text)
		}
	}
	g, groups, err := h.group(r)
	if err != nil {
		return err
	}
	below := map[classify.ID][]classify.Group{}
	for _, child := range groups { // parents come before children, so nothing is above itself
		if !child.IsRoot() {
			below[child.Parent] = append(below[child.Parent], child)
		}
	}
	all := familyOf(groups)
	var down func(g classify.Group, depth int) wireTree
	down = func(g classify.Group, depth int) wireTree {
		tree := wireTree{wireGroup: all.wire(g), ImmediateChildren: len(below[g.ID]), Children: []wireTree{}}
		if depth > 0 {
			for _, child := range below[g.ID] {
				tree.Children = append(tree.Children, down(child, depth-1))
			}
		}
		return tree
	}
	write(w, http.StatusOK, down(g, depth))
	return nil
}
