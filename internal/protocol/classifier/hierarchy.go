package classifier

import (
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// importHierarchy makes the groups what the body says, all or nothing: its groups are
// created or replaced, all others deleted.
func (h *Handler) importHierarchy(w http.ResponseWriter, r *http.Request) error {
	var given []submitted
	if err := body(w, r, maxHierarchy, &given); err != nil {
		return err
	}
	groups, _, err := h.Groups.Groups(r.Context())
	if err != nil {
		return err
	}
	wanted, err := wantedOf(given, familyOf(groups))
	if err != nil {
		return err
	}
	plan, err := classify.Plan(groups, wanted, classify.NewID)
	if err != nil {
		return err
	}
	changes := make([]classify.Change, len(plan))
	for i, planned := range plan {
		changes[i] = planned.Change
		stamp(&changes[i].Group, fleet.ActorFrom(r.Context()), time.Now())
	}
	if len(changes) > 0 {
		if _, err := h.Groups.ChangeGroups(r.Context(), changes); err != nil {
			return err
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// wantedOf checks groups and that all hang on the root.
func wantedOf(given []submitted, known family) ([]classify.Wanted, error) {
	wanted := make([]classify.Wanted, len(given))
	all, names := family{}, map[string]bool{}
	for i, s := range given {
		if err := s.complete(); err != nil {
			return nil, err
		}
		if s.ID == nil {
			return nil, bad("schema-violation", map[string]any{"error": map[string]string{"id": "missing-required-key"}}, "the group %.80q has no id", *s.Name)
		}
		id, err := classify.ParseID(*s.ID)
		if err != nil {
			return nil, bad("schema-violation", map[string]any{"error": map[string]string{"id": "not a UUID"}}, "%s", fault.Detail(err))
		}
		g := classify.Group{ID: id}
		if err := s.onto(&g, known[id], known); err != nil {
			return nil, err
		}
		if _, twice := all[id]; twice || names[g.Name] {
			return nil, bad("uniqueness-violation", map[string]string{"name": g.Name, "id": string(id)}, "the group %.80q is there twice", g.Name)
		}
		all[id], names[g.Name] = g, true
		wanted[i] = classify.Wanted{Group: g, Parent: string(g.Parent)}
	}
	return wanted, all.hangTogether()
}

// hangTogether refuses groups that no way leads to from the root.
func (f family) hangTogether() error {
	if _, ok := f[classify.RootID]; !ok {
		return bad("unreachable-groups", nil, "the root group %s is missing", classify.RootID)
	}
	var lost []string
	for _, g := range f {
		line := f.line(g)
		switch last := line[len(line)-1]; {
		case len(line) > len(f):
			return bad("inheritance-cycle", []string{g.Name}, "the group %.80q would be above itself", g.Name)
		case !last.IsRoot():
			lost = append(lost, g.Name)
		}
	}
	if len(lost) > 0 {
		return bad("unreachable-groups", lost, "%s not below the root", fault.Are(len(lost), "group"))
	}
	return nil
}
