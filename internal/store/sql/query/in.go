package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/pql"
)

func (s scope) inValues(e pql.In) string {
	f := s.fields[e.Fields[0].Name]
	plain := len(e.Fields) == 1 && len(e.Fields[0].Path) == 0 && (f.as == asText || f.as == asTime || f.as == asFlag || f.as == asInt)
	var texts []string
	for _, v := range e.Values {
		switch {
		case plain:
			texts = append(texts, s.scalar(f.as, v))
		case len(e.Fields) == 1:
			texts = append(texts, s.compare(pql.Compare{Op: "=", Field: e.Fields[0], Value: v}))
		default:
			terms := make([]string, len(e.Fields))
			for i, field := range e.Fields {
				terms[i] = s.compare(pql.Compare{Op: "=", Field: field, Value: v.List[i]})
			}
			texts = append(texts, "("+strings.Join(terms, " AND ")+")")
		}
	}
	if plain && len(texts) > 0 {
		return "(" + f.expr + " IN (" + strings.Join(texts, ", ") + "))"
	}
	return balanced(texts, " OR ")
}

// inQuery compares with the rows of another query. A missing value is in none.
func (s scope) inQuery(e pql.In) string {
	left := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		left[i] = s.fields[f.Name].expr
	}
	inner := s.sub(e.Query)
	return s.among(left, inner)
}

// among holds when values are among the rows of a statement. Without the test for
// NULL one missing value would make the answer unknown.
func (s scope) among(left []string, inner string) string {
	names := make([]string, len(left))
	present := make([]string, len(left))
	for i := range left {
		names[i] = fmt.Sprintf("c%d", i)
		present[i] = names[i] + " IS NOT NULL"
	}
	text := "(" + strings.Join(left, ", ") + ") IN (SELECT " + strings.Join(names, ", ") + " FROM (" + inner + ") i WHERE " + strings.Join(present, " AND ") + ")"
	return "(" + text + ")"
}

// related holds when the other entity has a row that belongs to this one.
func (s scope) related(q *pql.Query) string {
	here, there := pql.Related(s.entity, q.Entity)
	other, rows := s.open(q, false)
	if slices.Equal(here, []string{"certname"}) {
		text := "(" + s.node + " IN (SELECT " + other.node + rows.text(other.node) + "))"
		if q.Entity == "facts" {
			// Facts are put together from leaves, and PostgreSQL expects that a condition on them leaves one node: it would go through all of
			// them again for each node. With IS TRUE it makes a table of the nodes once, and looks each of them up.
			return s.Words.either(text, "("+text+" IS TRUE)")
		}
		return text
	}
	left, right := make([]string, len(here)), make([]string, len(there))
	for i := range here {
		left[i] = s.fields[here[i]].expr
		right[i] = fmt.Sprintf("%s AS c%d", other.fields[there[i]].expr, i)
	}
	return "COALESCE(" + s.among(left, "SELECT "+strings.Join(right, ", ")+rows.text(right...)) + ", " + falsehood + ")"
}
