package query

import (
	"slices"

	"github.com/tutti-project/tutti/internal/pql"
)

// UsesPaths says whether a query needs to know every fact path.
func UsesPaths(q *pql.Query) bool {
	field := func(f pql.Field) bool { return hasMatch(f) || f.Name == "depth" }
	return some(q.Where, func(e pql.Expr) bool {
		c, ok := e.(pql.Compare)
		return ok && c.Op == "~>" || slices.ContainsFunc(compared(e), field)
	})
}

// ComparesFacts says whether a query compares facts at paths, so that the index of facts may help.
func ComparesFacts(q *pql.Query) bool {
	return some(q.Where, func(e pql.Expr) bool {
		return slices.ContainsFunc(compared(e), func(f pql.Field) bool { return len(f.Path) > 0 && (f.Name == "facts" || f.Name == "trusted") })
	})
}

// compared lists the fields that a condition itself looks at.
func compared(e pql.Expr) []pql.Field {
	switch e := e.(type) {
	case pql.Compare:
		return []pql.Field{e.Field}
	case pql.Null:
		return []pql.Field{e.Field}
	case pql.In:
		return e.Fields
	}
	return nil
}

// some says whether a test holds for a condition, or for any inside it.
func some(e pql.Expr, test func(pql.Expr) bool) bool {
	if e == nil {
		return false
	}
	inside := func(e pql.Expr) bool { return some(e, test) }
	switch e := e.(type) {
	case pql.And:
		return slices.ContainsFunc(e.Terms, inside)
	case pql.Or:
		return slices.ContainsFunc(e.Terms, inside)
	case pql.Not:
		return inside(e.Term)
	case pql.In:
		return test(e) || e.Query != nil && inside(e.Query.Where)
	case pql.Subquery:
		return inside(e.Query.Where)
	}
	return test(e)
}
