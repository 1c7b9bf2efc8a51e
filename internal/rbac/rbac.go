package rbac

import (
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Allow returns nil when the actor may do what the permission names with the
// object, and otherwise a Denied fault that says what is missing.
func Allow(actor fleet.Actor, permission fleet.Permission, object fleet.Object) error {
	switch {
	case permission == fleet.Open:
		return nil
	case actor.Kind == fleet.Anonymous || actor.Kind == "":
		what := string(permission)
		if permission == fleet.Self {
			what = "that"
		}
		return &fault.Error{
			Kind: fault.Denied, Detail: what + " needs a token or a client certificate; none was shown", Hint: "log in: tutti login NAME",
		}
	case permission == fleet.Self && (actor.Kind == fleet.UserActor || len(actor.Grants) > 0):
		return nil
	case permission == fleet.Self:
		return fault.New(fault.Denied, "%s %s is no user and has no role; log in with `tutti login`", actor.Kind, actor.Name)
	}
	if covered(actor.Grants, permission, object) && (!actor.Narrowed || covered(actor.Within, permission, object)) {
		return nil
	}
	return denial(actor, permission)
}

// AllowSelf returns nil when actor is the node itself, or may act for it.
func AllowSelf(actor fleet.Actor, node fleet.Certname) error {
	if actor.Kind == fleet.NodeActor && actor.Name == string(node) {
		return nil
	}
	if actor.Kind == fleet.Anonymous || actor.Kind == "" {
		return fault.New(fault.Denied, "node %s must show its certificate", node)
	}
	if Allow(actor, fleet.NodeAct, fleet.Object{Node: node}) == nil {
		return nil
	}
	return fault.New(fault.Denied, "%s %s may not act for node %s", actor.Kind, actor.Name, node)
}

// AllowSome returns nil when there may be an object with which the actor may do
// what the permission names. Who asks it must ask Allow for each object.
func AllowSome(actor fleet.Actor, permission fleet.Permission) error {
	err := Allow(actor, permission, fleet.Object{})
	if err == nil || some(actor.Grants, permission) && (!actor.Narrowed || some(actor.Within, permission)) {
		return nil
	}
	return err
}

// Scoped says whether the permission is the actor's for some objects only, so
// that these have to be known.
func Scoped(actor fleet.Actor, permission fleet.Permission) bool {
	return Allow(actor, permission, fleet.Object{}) != nil && AllowSome(actor, permission) == nil
}

// NodeScopes returns the conditions on nodes that bound the actor's permission:
// those that Object.Inside has to answer.
func NodeScopes(actor fleet.Actor, permission fleet.Permission) (scopes []string) {
	for _, g := range slices.Concat(actor.Grants, actor.Within) {
		if g.Nodes != "" && gives(g, permission) && !slices.Contains(scopes, g.Nodes) {
			scopes = append(scopes, g.Nodes)
		}
	}
	return scopes
}

func denial(actor fleet.Actor, permission fleet.Permission) error {
	switch {
	case !some(actor.Grants, permission):
		return fault.New(fault.Denied, "%s %s does not have the permission %s", actor.Kind, actor.Name, permission)
	case actor.Narrowed && !some(actor.Within, permission):
		return fault.New(fault.Denied, "this token of %s %s is narrowed to roles without the permission %s", actor.Kind, actor.Name, permission)
	}
	return fault.New(fault.Denied, "%s %s has the permission %s, but not for this: only for %s", actor.Kind, actor.Name, permission, bounds(actor, permission))
}

// bounds words the scopes of a permission.
func bounds(actor fleet.Actor, permission fleet.Permission) string {
	var words []string
	for _, g := range slices.Concat(actor.Grants, actor.Within) {
		if word := ScopeText(g); gives(g, permission) && word != "" && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, "; or ")
}

// ScopeText words what a grant is bounded to; empty: it is not.
func ScopeText(g fleet.Grant) string {
	var words []string
	if len(g.Environments) > 0 {
		words = append(words, "environment "+strings.Join(g.Environments, ", "))
	}
	if len(g.Tasks) > 0 {
		words = append(words, "task "+strings.Join(g.Tasks, ", "))
	}
	if len(g.Actions) > 0 {
		words = append(words, "action "+strings.Join(g.Actions, ", "))
	}
	if g.Nodes != "" {
		words = append(words, "nodes with "+g.Nodes)
	}
	return strings.Join(words, " and ")
}

func covered(grants []fleet.Grant, permission fleet.Permission, object fleet.Object) bool {
	return slices.ContainsFunc(grants, func(g fleet.Grant) bool { return gives(g, permission) && covers(g, object) })
}

func some(grants []fleet.Grant, permission fleet.Permission) bool {
	return slices.ContainsFunc(grants, func(g fleet.Grant) bool { return gives(g, permission) })
}

func gives(g fleet.Grant, permission fleet.Permission) bool {
	return g.Permission == permission || g.Permission == fleet.Everything
}

// covers says whether every scope of g holds for the object.
func covers(g fleet.Grant, object fleet.Object) bool {
	return named(g.Environments, string(object.Environment)) && named(g.Tasks, object.Task) && named(g.Actions, object.Action) &&
		(g.Nodes == "" || object.Node != "" && slices.Contains(object.Inside, g.Nodes))
}

// named says whether one of the patterns fits; none fits an unknown name, and no
// patterns fit everything.
func named(patterns []string, name string) bool {
	if len(patterns) == 0 {
		return true
	}
	return name != "" && slices.ContainsFunc(patterns, func(p string) bool { return fits(p, name) })
}

// fits says whether name is what pattern says; * stands for any characters.
func fits(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	head, tail := parts[0], parts[len(parts)-1]
	if len(name) < len(head)+len(tail) || !strings.HasPrefix(name, head) || !strings.HasSuffix(name, tail) {
		return false
	}
	name = name[len(head) : len(name)-len(tail)]
	for _, part := range parts[1 : len(parts)-1] { // the earliest place leaves the most room
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name = name[i+len(part):]
	}
	return true
}

// Covers returns nil when the actor has every one of the grants, and so may give
// them away or take them from somebody.
func Covers(actor fleet.Actor, grants []fleet.Grant) error {
	for _, g := range grants {
		if !holds(actor.Grants, g) || actor.Narrowed && !holds(actor.Within, g) {
			what := string(g.Permission)
			if g.Permission == fleet.Everything {
				what = "every permission"
			}
			if scope := ScopeText(g); scope != "" {
				what += " for " + scope
			}
			return fault.New(fault.Denied, "%s %s does not have %s, and so cannot decide who has it", actor.Kind, actor.Name, what)
		}
	}
	return nil
}

// holds says whether one of the grants is as wide as want in every scope.
func holds(grants []fleet.Grant, want fleet.Grant) bool {
	return slices.ContainsFunc(grants, func(g fleet.Grant) bool {
		return gives(g, want.Permission) && wider(g.Environments, want.Environments) && wider(g.Tasks, want.Tasks) && wider(g.Actions, want.Actions) &&
			(g.Nodes == "" || g.Nodes == want.Nodes)
	})
}

// wider says whether every one of want's patterns is among those of have.
func wider(have, want []string) bool {
	if len(have) == 0 {
		return true
	}
	return len(want) > 0 && !slices.ContainsFunc(want, func(p string) bool { return !slices.Contains(have, p) })
}
