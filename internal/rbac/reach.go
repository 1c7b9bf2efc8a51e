package rbac

import (
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fleet"
)

// nobody holds for no node.
const nobody = `certname = ""`

// Reach is which nodes an actor may see, as a condition on nodes (pql.NodeCondition); empty: all of them, which
// takes node:read or query:run without scope. Equal rights give an equal text.
func Reach(actor fleet.Actor) string {
	if Allow(actor, fleet.NodeRead, fleet.Object{}) == nil || Allow(actor, fleet.QueryRun, fleet.Object{}) == nil {
		return ""
	}
	own := reach(actor.Grants)
	if !actor.Narrowed {
		return own
	}
	within := reach(actor.Within)
	switch {
	case own == "" || own == within:
		return within
	case within == "":
		return own
	}
	return "(" + own + ") and (" + within + ")"
}

// reach is which nodes grants let somebody see.
func reach(grants []fleet.Grant) string {
	var some []string
	for _, g := range grants {
		switch {
		case !gives(g, fleet.NodeRead) || len(g.Tasks)+len(g.Actions) > 0:
			continue
		case !g.Scoped():
			return ""
		}
		some = append(some, scopeCondition(g))
	}
	if len(some) == 0 {
		return nobody
	}
	slices.Sort(some)
	return strings.Join(slices.Compact(some), " or ")
}

// scopeCondition is the scope of a grant as a condition on nodes.
func scopeCondition(g fleet.Grant) string {
	var terms []string
	if len(g.Environments) > 0 {
		names := make([]string, len(g.Environments))
		for i, pattern := range g.Environments { // letters, digits, underscores and stars
			names[i] = strings.ReplaceAll(pattern, "*", ".*")
		}
		terms = append(terms, `environment ~ "^(`+strings.Join(names, "|")+`)$"`)
	}
	if g.Nodes != "" {
		terms = append(terms, "("+g.Nodes+")")
	}
	return "(" + strings.Join(terms, " and ") + ")"
}
