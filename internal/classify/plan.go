package classify

import (
	"slices"

	"github.com/tutti-project/tutti/internal/fault"
)

// Wanted is a group as a file describes it. Its id may be empty, then its name
// tells which one it is; Parent is a name or an id, and empty for the root.
type Wanted struct {
	Group  Group
	Parent string
}

// Planned is one change of a plan and what it means.
type Planned struct {
	Change      Change
	Name        string // of the group, as it is now if it is there
	Differences []Difference
}

// Find returns the group that ref names: by id, else by name. NotFound if there
// is none.
func Find(groups []Group, ref string) (Group, error) {
	if id, err := ParseID(ref); err == nil {
		if i := slices.IndexFunc(groups, func(g Group) bool { return g.ID == id }); i >= 0 {
			return groups[i], nil
		}
	}
	if i := slices.IndexFunc(groups, func(g Group) bool { return g.Name == ref }); i >= 0 {
		return groups[i], nil
	}
	return Group{}, fault.New(fault.NotFound, "there is no group %.200q", ref)
}

// Plan lists what turns groups into wanted, in the order create, update, delete.
// Groups that are not wanted are deleted, except the root, which stays as it is
// unless it is wanted otherwise. Every step holds for the revisions of groups, so
// a plan that was shown does what it showed or nothing. newID gives ids to new
// groups.
func Plan(groups []Group, wanted []Wanted, newID func() ID) ([]Planned, error) {
	p := planner{groups: groups, names: map[string]ID{}, kept: map[ID]bool{RootID: true}}
	for i := range wanted {
		if err := p.identify(&wanted[i], newID); err != nil {
			return nil, err
		}
	}
	for _, g := range groups { // a file may name a parent that it does not describe only if that stays
		if p.kept[g.ID] && p.names[g.Name] == "" {
			p.names[g.Name] = g.ID
		}
	}
	for _, w := range wanted {
		if err := p.want(w); err != nil {
			return nil, err
		}
	}
	for _, g := range groups {
		if !p.kept[g.ID] {
			p.steps = append(p.steps, Planned{
				Change: Change{Kind: Delete, Group: Group{ID: g.ID, Name: g.Name, Revision: g.Revision}}, Name: g.Name, Differences: p.named(Differences(g, Group{})),
			})
		}
	}
	slices.SortStableFunc(p.steps, func(a, b Planned) int { return place(a) - place(b) })
	changes := make([]Change, len(p.steps))
	for i, s := range p.steps {
		changes[i] = s.Change
	}
	if _, err := Apply(groups, changes); err != nil {
		return nil, err
	}
	return p.steps, nil
}

func place(s Planned) int { return slices.Index([]ChangeKind{Create, Update, Delete}, s.Change.Kind) }

type planner struct {
	groups []Group
	names  map[string]ID // of wanted groups
	kept   map[ID]bool
	steps  []Planned
}

// identify finds out which group w is.
func (p *planner) identify(w *Wanted, newID func() ID) error {
	g := &w.Group
	switch known, err := Find(p.groups, g.Name); {
	case g.ID != "":
	case g.Name == RootName:
		g.ID = RootID
	case err == nil:
		g.ID = known.ID
	default:
		g.ID = newID()
	}
	if _, twice := p.names[g.Name]; twice || p.kept[g.ID] && g.ID != RootID {
		return fault.New(fault.Invalid, "the group %q is described twice", g.Name)
	}
	p.names[g.Name], p.kept[g.ID] = g.ID, true
	return nil
}

func (p *planner) want(w Wanted) error {
	parent, err := p.parent(w)
	if err != nil {
		return err
	}
	w.Group.Parent = parent
	next, err := w.Group.Checked()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(p.groups, func(g Group) bool { return g.ID == next.ID })
	if at < 0 {
		p.steps = append(p.steps, Planned{Change: Change{Kind: Create, Group: next}, Name: next.Name, Differences: p.named(Differences(Group{}, next))})
		return nil
	}
	old := p.groups[at]
	differences := Differences(old, next)
	if len(differences) == 0 && old.Defect == "" {
		return nil
	}
	next.Revision = old.Revision
	p.steps = append(p.steps, Planned{Change: Change{Kind: Update, Group: next}, Name: old.Name, Differences: p.named(differences)})
	return nil
}

func (p *planner) parent(w Wanted) (ID, error) {
	if w.Parent == "" || w.Group.ID == RootID {
		return RootID, nil
	}
	if id, ok := p.names[w.Parent]; ok {
		return id, nil
	}
	if id, err := ParseID(w.Parent); err == nil && p.kept[id] {
		return id, nil
	}
	return "", fault.New(fault.Invalid, "group %.80q: parent: no group %.80q is described", w.Group.Name, w.Parent)
}

// named shows parents by name.
func (p *planner) named(differences []Difference) []Difference {
	name := func(id string) string {
		for wanted, known := range p.names {
			if string(known) == id {
				return wanted
			}
		}
		if g, err := Find(p.groups, id); err == nil {
			return g.Name
		}
		return id
	}
	for i := range differences {
		if d := &differences[i]; d.Field == "parent" {
			d.Old, d.New = name(d.Old), name(d.New)
		}
	}
	return differences
}
