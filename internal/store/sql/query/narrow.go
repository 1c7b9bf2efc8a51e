package query

import (
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/pql"
)

// hoist takes the conditions on a fact's name and node alone out of a chain of
// `and`: they narrow what is read before facts are put together.
func (t *Translation) hoist(e pql.Expr) (rest []pql.Expr, hoisted string) {
	inner := scope{Translation: t, entity: "facts", source: source{fields: map[string]sqlField{
		"name": plainText("p.name"), "certname": plainText("m.certname"),
	}}}
	var texts []string
	for _, term := range conjuncts(e) {
		switch {
		case simple(term):
			texts = append(texts, inner.expr(term))
		default:
			rest = append(rest, term)
		}
	}
	return rest, strings.Join(texts, " AND ")
}

// wantsLatest says whether a condition leaves only each node's newest report.
func wantsLatest(e pql.Expr) bool {
	c, ok := e.(pql.Compare)
	return ok && c.Field.Name == "latest_report?" && c.Op == "=" && c.Value.Text == "true"
}

// isStatus tells conditions on one status.
func isStatus(e pql.Expr) bool {
	c, ok := e.(pql.Compare)
	return ok && c.Field.Name == "status" && c.Op == "=" && Clean(c.Value.Text) != ""
}

// wantsUnusual says whether a condition leaves only events of one of the rare
// statuses.
func wantsUnusual(e pql.Expr) bool {
	return isStatus(e) && e.(pql.Compare).Value.Text != "success"
}

// patternsLast puts conditions that are patterns behind the others: they cost most, and SQLite compares in this order. One on the certname
// picks nodes, and stays.
func patternsLast(terms []pql.Expr) []pql.Expr {
	rank := func(e pql.Expr) int {
		if c, ok := e.(pql.Compare); ok && c.Op == "~" && c.Field.Name != "certname" {
			return 1
		}
		return 0
	}
	terms = slices.Clone(terms)
	slices.SortStableFunc(terms, func(a, b pql.Expr) int { return rank(a) - rank(b) })
	return terms
}

// conjuncts are the conditions that must all hold.
func conjuncts(e pql.Expr) []pql.Expr {
	switch e := e.(type) {
	case nil:
		return nil
	case pql.And:
		var terms []pql.Expr
		for _, t := range e.Terms {
			terms = append(terms, conjuncts(t)...)
		}
		return terms
	}
	return []pql.Expr{e}
}

// namesPaths says whether a condition leaves few fact paths over.
func namesPaths(e pql.Expr) bool {
	switch e := e.(type) {
	case pql.Compare:
		return e.Field.Name == "name" && e.Op == "=" || e.Field.Name == "path"
	case pql.In:
		return e.Query == nil && len(e.Fields) == 1 && (e.Fields[0].Name == "name" || e.Fields[0].Name == "path")
	case pql.Or:
		return !slices.ContainsFunc(e.Terms, func(t pql.Expr) bool { return !namesPaths(t) })
	}
	return false
}

// simple tells conditions on name and certname alone, without other queries.
func simple(e pql.Expr) bool {
	named := func(f pql.Field) bool { return f.Name == "name" || f.Name == "certname" }
	switch e := e.(type) {
	case pql.And:
		return !slices.ContainsFunc(e.Terms, func(t pql.Expr) bool { return !simple(t) })
	case pql.Or:
		return !slices.ContainsFunc(e.Terms, func(t pql.Expr) bool { return !simple(t) })
	case pql.Not:
		return simple(e.Term)
	case pql.Compare:
		return named(e.Field)
	case pql.In:
		return e.Query == nil && len(e.Fields) == 1 && named(e.Fields[0])
	}
	return false
}

// mentionsState says whether a condition, or one of a query inside it, says
// itself which nodes it wants.
func mentionsState(e pql.Expr) bool {
	switch e := e.(type) {
	case pql.And:
		return slices.ContainsFunc(e.Terms, mentionsState)
	case pql.Or:
		return slices.ContainsFunc(e.Terms, mentionsState)
	case pql.Not:
		return mentionsState(e.Term)
	case pql.Compare:
		return e.Field.Name == "node_state"
	case pql.In:
		return e.Query != nil && mentionsState(e.Query.Where)
	case pql.Subquery:
		return mentionsState(e.Query.Where)
	}
	return false
}
