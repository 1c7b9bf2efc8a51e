package classify

import (
	"maps"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// Applied is what changes make of groups.
type Applied struct {
	Groups  []Group // all, in the order of a tree
	Saved   []Group // created or updated, in the order of the changes
	Deleted []ID
}

// Apply makes changes to groups. Only the state after all of them counts, so
// their order is free and two groups may trade names. An update that changes
// nothing keeps the revision. See the package comment for errors; ChangedAt and
// ChangedBy are those that the changes carry.
func Apply(groups []Group, changes []Change) (Applied, error) {
	now := make(map[ID]Group, len(groups)+len(changes))
	for _, g := range groups {
		now[g.ID] = g
	}
	touched := map[ID]bool{}
	var out Applied
	for _, change := range changes {
		if touched[change.Group.ID] {
			return Applied{}, fault.New(fault.Invalid, "two changes are for the group %s", change.Group.ID)
		}
		touched[change.Group.ID] = true
		next, err := step(now, change)
		if err != nil {
			return Applied{}, err
		}
		if change.Kind == Delete {
			delete(now, change.Group.ID)
			out.Deleted = append(out.Deleted, change.Group.ID)
			continue
		}
		now[next.ID] = next
		out.Saved = append(out.Saved, next)
	}
	var err error
	out.Groups, err = arrange(now)
	return out, err
}

// step is the group after one change, by itself.
func step(now map[ID]Group, change Change) (Group, error) {
	old, exists := now[change.Group.ID]
	if change.Kind == Create {
		if exists {
			return Group{}, fault.New(fault.Conflict, "the group %s exists already: %q", old.ID, old.Name)
		}
		next, err := change.Group.Checked()
		next.Revision = 1
		return next, err
	}
	if !exists {
		return Group{}, fault.New(fault.NotFound, "there is no group %s", change.Group.ID)
	}
	if change.Group.Revision != 0 && change.Group.Revision != old.Revision {
		return Group{}, fault.New(fault.Conflict, "group %q was changed meanwhile: it has revision %d, the change is for %d; look at it again",
			old.Name, old.Revision, change.Group.Revision)
	}
	if change.Kind == Delete {
		if old.IsRoot() {
			return Group{}, fault.New(fault.Invalid, "the group %s cannot be deleted", RootName)
		}
		return Group{}, nil
	}
	next, err := change.Group.Checked()
	if err != nil {
		return Group{}, err
	}
	if old.Defect == "" && old.Same(next) {
		return old, nil
	}
	next.Revision = old.Revision + 1
	return next, nil
}

// arrange checks what only the whole shows, and puts parents before children.
func arrange(groups map[ID]Group) ([]Group, error) {
	if len(groups) > MaxGroups {
		return nil, fault.New(fault.Invalid, "there would be %d groups, at most %d are allowed", len(groups), MaxGroups)
	}
	names := make(map[string]ID, len(groups))
	for _, g := range groups {
		if other, taken := names[g.Name]; taken {
			return nil, fault.New(fault.Conflict, "the name %q is taken: the groups %s and %s would both have it", g.Name, min(other, g.ID), max(other, g.ID))
		}
		names[g.Name] = g.ID
		if _, exists := groups[g.Parent]; !exists {
			return nil, orphan(g)
		}
	}
	ordered := Ordered(slices.Collect(maps.Values(groups)))
	if len(ordered) < len(groups) {
		for _, g := range ordered {
			delete(groups, g.ID)
		}
		var loop []string
		for _, g := range groups {
			loop = append(loop, g.Name)
		}
		slices.Sort(loop)
		return nil, fault.New(fault.Invalid, "the groups %.400s would be above themselves; choose another parent for one of them", strings.Join(loop, ", "))
	}
	return ordered, nil
}

// orphan words what is wrong with a group whose parent is not there: it was
// named wrongly, or is being deleted with this group still below it.
func orphan(g Group) error {
	return fault.New(fault.Conflict,
		"the group %q has the parent %s, which is not there; a group with others below it cannot be deleted: move or delete them first", g.Name, g.Parent)
}

// Ordered puts parents before children, siblings by name. Groups that do not hang
// on the root are left out.
func Ordered(groups []Group) []Group {
	below := map[ID][]Group{}
	var root []Group
	for _, g := range groups {
		if g.IsRoot() {
			root = append(root, g)
		} else {
			below[g.Parent] = append(below[g.Parent], g)
		}
	}
	out := make([]Group, 0, len(groups))
	var down func([]Group)
	down = func(siblings []Group) {
		slices.SortFunc(siblings, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
		for _, g := range siblings {
			out = append(out, g)
			down(below[g.ID])
		}
	}
	down(root)
	return out
}
