package query

import (
	"slices"

	"github.com/tutti-project/tutti/internal/pql"
)

// UsesPaths says whether a query needs to know every fact path.
func UsesPaths(q *pql.Query) bool { return q.Where != nil && exprUsesPaths(q.Where) }

func exprUsesPaths(e pql.Expr) bool {
	field := func(f pql.Field) bool { return hasMatch(f) || f.Name == "depth" }
	switch e := e.(type) {
	case pql.And:
		return slices.ContainsFunc(e.Terms, exprUsesPaths)
	case pql.Or:
		return slices.ContainsFunc(e.Terms, exprUsesPaths)
	case pql.Not:
		return exprUsesPaths(e.Term)
	case pql.Compare:
		return e.Op == "~>" || field(e.Field)
	case pql.Null:
		return field(e.Field)
	case pql.In:
		return e.Query != nil && UsesPaths(e.Query) || slices.ContainsFunc(e.Fields, field)
	case pql.Subquery:
		return UsesPaths(e.Query)
	}
	return false
}
