package classifier

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// submitted is a group, or what should change of one: a member that is not there
// stays as it is, null takes away.
type submitted struct {
	ID                *string                               `json:"id"`
	Name              *string                               `json:"name"`
	Description       json.RawMessage                       `json:"description"`
	Parent            *string                               `json:"parent"`
	Environment       *string                               `json:"environment"`
	EnvironmentTrumps *bool                                 `json:"environment_trumps"`
	Rule              json.RawMessage                       `json:"rule"`
	Classes           map[string]map[string]json.RawMessage `json:"classes"`
	ConfigData        map[string]map[string]json.RawMessage `json:"config_data"`
	Variables         map[string]json.RawMessage            `json:"variables"`
	SerialNumber      *int64                                `json:"serial_number"`
}

// complete says what a new group lacks.
func (s submitted) complete() error {
	missing := map[string]string{}
	if s.Name == nil {
		missing["name"] = "missing-required-key"
	}
	if s.Parent == nil {
		missing["parent"] = "missing-required-key"
	}
	if s.Classes == nil {
		missing["classes"] = "missing-required-key"
	}
	if len(missing) > 0 {
		return bad("schema-violation", map[string]any{"error": missing},
			"the object submitted does not have the expected shape: a group needs name, parent and classes")
	}
	return nil
}

// onto changes g, which is old or a new group in its place. What old was shown with is
// no change: neither the environment that it inherits nor its rule's spelling.
func (s submitted) onto(g *classify.Group, old classify.Group, all family) error {
	shown := ""
	if old.ID != "" {
		shown = all.environment(old)
	}
	if s.Name != nil {
		g.Name = *s.Name
	}
	if s.Description != nil {
		g.Description = ""
		if err := json.Unmarshal(s.Description, &g.Description); err != nil {
			return bad("schema-violation", map[string]any{"error": map[string]string{"description": "not a string"}}, "description must be a string")
		}
	}
	if s.Parent != nil {
		parent, err := classify.ParseID(*s.Parent)
		if err != nil {
			return bad("schema-violation", map[string]any{"error": map[string]string{"parent": "not a UUID"}}, "parent: %s", fault.Detail(err))
		}
		g.Parent = parent
	}
	if s.Environment != nil && (old.Environment != "" || *s.Environment != shown) {
		g.Environment = *s.Environment
	}
	if s.EnvironmentTrumps != nil {
		g.EnvironmentGroup = *s.EnvironmentTrumps
	}
	if g.EnvironmentGroup && g.Environment == "" {
		g.Environment = shown // one that decides needs its own
	}
	g.Classes, g.Data = mergedClasses(g.Classes, s.Classes), mergedClasses(g.Data, s.ConfigData)
	g.Variables = mergedValues(g.Variables, s.Variables)
	switch {
	case s.Rule == nil:
		return nil
	case old.ID != "" && sameJSON(s.Rule, wireRule(old)):
		g.Rule, g.Pinned = old.Rule, old.Pinned
		return nil
	}
	return setRule(g, s.Rule)
}

func mergedClasses(old classify.Classes, delta map[string]map[string]json.RawMessage) classify.Classes {
	out := orNone(old)
	for class, values := range delta {
		if values == nil {
			delete(out, class)
			continue
		}
		out[class] = mergedValues(out[class], values)
	}
	return out
}

func mergedValues(old classify.Values, delta map[string]json.RawMessage) classify.Values {
	out := classify.Values{}
	maps.Copy(out, old)
	for name, value := range delta {
		if string(value) == "null" {
			delete(out, name)
			continue
		}
		out[name] = value
	}
	return out
}

func (h *Handler) createGroup(w http.ResponseWriter, r *http.Request) error {
	g, _, err := h.newGroup(w, r, classify.NewID())
	if err != nil {
		return err
	}
	if _, err := h.change(r.Context(), classify.Change{Kind: classify.Create, Group: g}); err != nil {
		return err
	}
	w.Header().Set("Location", Prefix+"/groups/"+string(g.ID))
	write(w, http.StatusSeeOther, map[string]string{"id": string(g.ID)})
	return nil
}

// newGroup reads a whole group and finds what is wrong with it among the others.
func (h *Handler) newGroup(w http.ResponseWriter, r *http.Request, id classify.ID) (classify.Group, []classify.Group, error) {
	var s submitted
	if err := body(w, r, maxBody, &s); err != nil {
		return classify.Group{}, nil, err
	}
	if err := s.complete(); err != nil {
		return classify.Group{}, nil, err
	}
	if s.ID != nil && *s.ID != string(id) && r.PathValue("id") != "" {
		return classify.Group{}, nil, bad("conflicting-ids", map[string]string{"submitted": *s.ID, "fromUrl": string(id)},
			"the body is of the group %.60s, the address of %s", *s.ID, id)
	}
	groups, _, err := h.Groups.Groups(r.Context())
	if err != nil {
		return classify.Group{}, nil, err
	}
	g, all := classify.Group{ID: id}, familyOf(groups)
	if err := s.onto(&g, all[id], all); err != nil {
		return classify.Group{}, nil, err
	}
	return g, groups, fits(g, groups)
}

// fits finds what cannot be among the other groups.
func fits(g classify.Group, groups []classify.Group) error {
	all := familyOf(groups)
	if _, ok := all[g.Parent]; !ok {
		return bad("missing-parent", map[string]string{"parent": string(g.Parent)}, "the parent group %s does not exist", g.Parent)
	}
	for _, other := range groups {
		if other.Name == g.Name && other.ID != g.ID {
			return bad("uniqueness-violation", map[string]any{"conflict": map[string]string{"name": g.Name, "id": string(other.ID)}},
				"there is a group %.80q already; names are unique in the whole tree", g.Name)
		}
	}
	for _, above := range all.line(all[g.Parent]) {
		if above.ID == g.ID && !g.IsRoot() {
			return bad("inheritance-cycle", []string{g.Name}, "the group %.80q would be above itself", g.Name)
		}
	}
	root, isRoot := all[g.ID], g.IsRoot()
	if isRoot && (len(g.Pinned) > 0 || g.Rule == nil || root.Rule == nil || !g.Rule.Equal(*root.Rule)) {
		return bad("root-rule-edit", nil, "the rule of %s cannot be changed", classify.RootName)
	}
	return nil
}

func (h *Handler) replaceGroup(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r)
	if err != nil {
		return err
	}
	g, groups, err := h.newGroup(w, r, id)
	if err != nil {
		return err
	}
	old, exists := familyOf(groups)[id]
	change, status := classify.Change{Kind: classify.Create, Group: g}, http.StatusCreated
	if exists {
		change.Kind, change.Group.Revision = classify.Update, old.Revision
	}
	saved, err := h.change(r.Context(), change)
	if err != nil {
		return err
	}
	if exists && saved.Revision == old.Revision {
		status = http.StatusOK
	}
	return h.show(w, r.Context(), status, saved)
}

func (h *Handler) mergeGroup(w http.ResponseWriter, r *http.Request) error {
	var s submitted
	if err := body(w, r, maxBody, &s); err != nil {
		return err
	}
	if s.ID != nil && *s.ID != r.PathValue("id") {
		return bad("conflicting-ids", map[string]string{"submitted": *s.ID, "fromUrl": r.PathValue("id")}, "the id of a group cannot be changed")
	}
	saved, err := h.edit(r, s.SerialNumber, func(g *classify.Group, groups []classify.Group) error {
		if err := s.onto(g, *g, familyOf(groups)); err != nil {
			return err
		}
		return fits(*g, groups)
	})
	if err != nil {
		return err
	}
	return h.show(w, r.Context(), http.StatusOK, saved)
}

// maxTries is how often a change is made anew when others change the group meanwhile.
const maxTries = 5

// edit changes the group that the path names. With a serial number it is refused
// when the group has another; without it is made anew.
func (h *Handler) edit(r *http.Request, serial *int64, change func(g *classify.Group, groups []classify.Group) error) (saved classify.Group, err error) {
	for range maxTries {
		g, groups, err := h.group(r)
		if err != nil {
			return g, err
		}
		if serial != nil && *serial != g.Revision {
			return g, bad("conflict", map[string]int64{"serial_number": g.Revision},
				"the group %.80q was changed meanwhile: it has the serial number %d, not %d", g.Name, g.Revision, *serial)
		}
		if err := change(&g, groups); err != nil {
			return g, err
		}
		saved, err = h.change(r.Context(), classify.Change{Kind: classify.Update, Group: g})
		if fault.Of(err) != fault.Conflict || err == nil || serial != nil {
			return saved, err
		}
	}
	return saved, fault.Later(time.Second, "others keep changing the group; try again")
}

// change makes one change in the name of who asks.
func (h *Handler) change(ctx context.Context, change classify.Change) (classify.Group, error) {
	stamp(&change.Group, fleet.ActorFrom(ctx), time.Now())
	saved, err := h.Groups.ChangeGroups(ctx, []classify.Change{change})
	if err != nil || len(saved) == 0 {
		return classify.Group{}, err
	}
	return saved[0], nil
}

func (h *Handler) show(w http.ResponseWriter, ctx context.Context, status int, g classify.Group) error { //nolint:revive // it writes first
	groups, _, err := h.Groups.Groups(ctx)
	if err != nil {
		return err
	}
	write(w, status, familyOf(groups).wire(g))
	return nil
}

func (h *Handler) deleteGroup(w http.ResponseWriter, r *http.Request) error {
	g, groups, err := h.group(r)
	if err != nil {
		return err
	}
	if g.IsRoot() {
		return bad("permission-denied", nil, "the group %s cannot be deleted", classify.RootName)
	}
	var children []string
	for _, child := range groups {
		if child.Parent == g.ID {
			children = append(children, string(child.ID))
		}
	}
	if len(children) > 0 {
		return bad("children-present", map[string]any{"children": children}, "the group %.80q has %s below it: move or delete what is there first", g.Name,
			fault.Count(len(children), "group"))
	}
	if _, err := h.change(r.Context(), classify.Change{Kind: classify.Delete, Group: g}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (h *Handler) validateGroup(w http.ResponseWriter, r *http.Request) error {
	g, groups, err := h.newGroup(w, r, classify.NewID())
	if err != nil {
		return err
	}
	if g, err = g.Checked(); err != nil {
		return err
	}
	write(w, http.StatusOK, familyOf(groups).wire(g))
	return nil
}
