package query

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/pql"
)

const (
	always = "(1 = 1)"
	never  = "(1 = 0)"

	falsehood = "FALSE"
)

func (s scope) expr(e pql.Expr) string {
	switch e := e.(type) {
	case pql.And:
		return s.junction(e.Terms, " AND ")
	case pql.Or:
		return s.junction(e.Terms, " OR ")
	case pql.Not:
		return "(NOT " + s.expr(e.Term) + ")"
	case pql.Compare:
		return s.compare(e)
	case pql.Null:
		return s.null(e)
	case pql.In:
		if e.Query != nil {
			return s.inQuery(e)
		}
		return s.inValues(e)
	case pql.Subquery:
		return s.related(e.Query)
	}
	return never
}

func (s scope) junction(terms []pql.Expr, word string) string {
	texts := make([]string, len(terms))
	for i, term := range terms {
		texts[i] = s.expr(term)
	}
	return balanced(texts, word)
}

// balanced joins conditions as a tree: databases bound how deep a chain may be.
func balanced(texts []string, word string) string {
	switch n := len(texts); {
	case n == 0:
		return never
	case n == 1:
		return texts[0]
	case n <= 8:
		return "(" + strings.Join(texts, word) + ")"
	default:
		return "(" + balanced(texts[:n/2], word) + word + balanced(texts[n/2:], word) + ")"
	}
}

func (s scope) compare(c pql.Compare) string {
	if c.Field.Name == "node_state" {
		return s.state(c.Value.Text)
	}
	f := s.fields[c.Field.Name]
	switch {
	case s.entity == "reports" && c.Field.Name == "type" && c.Op == "=" && c.Value.Text == "any":
		return always
	case len(c.Field.Path) > 0 && f.as == asJSON:
		return s.compareJSON(f.expr, s.jsonStep(c.Field.Path), c)
	case len(c.Field.Path) > 0:
		return s.compareFact(c)
	}
	switch f.as { //nolint:exhaustive // the others compare as they are
	case asLeaf:
		return s.compareLeaf(f.kind, f.expr, f.number, c.Op, c.Value)
	case asJSON:
		return s.compareJSON(f.expr, s.jsonStep(nil), c)
	case asList:
		return s.compareList(f.expr, c)
	case asPath:
		return s.comparePath(f, c)
	}
	if c.Op == "~" {
		return s.matching(f.expr, c.Value.Text)
	}
	return "(" + f.expr + " " + c.Op + " " + s.scalar(f.as, c.Value) + ")"
}

// matching tests a column against a regular expression. PostgreSQL's indexes find the text that all matches begin with, if there is one;
// SQLite's do when it is told.
func (s scope) matching(column, pattern string) string {
	matches := s.Words.matches(column, s.pattern(pattern))
	first, after := beginning(pattern)
	if s.Words.Postgres || first == "" {
		return matches
	}
	return "(" + column + " >= " + s.arg(first) + " AND " + column + " < " + s.arg(after) + " AND " + matches + ")"
}

// beginning is what all texts begin with that match a pattern, and the first text behind all those; empty where they have nothing in common.
func beginning(pattern string) (first, after string) {
	tree, err := pql.Syntax(pattern)
	if err != nil || tree.Op != syntax.OpConcat || tree.Sub[0].Op != syntax.OpBeginText {
		return "", ""
	}
	literal := tree.Sub[1]
	if literal.Op != syntax.OpLiteral || literal.Flags&syntax.FoldCase != 0 {
		return "", ""
	}
	next := slices.Clone(literal.Rune)
	next[len(next)-1]++
	if !utf8.ValidRune(next[len(next)-1]) {
		return "", ""
	}
	return string(literal.Rune), string(next)
}

func (s scope) pattern(text string) string {
	pattern, err := s.Words.pattern(text)
	if err != nil && s.Failed == nil {
		s.Failed = fault.Wrap(fault.Invalid, err, "%v", err)
	}
	return s.arg(pattern)
}

// scalar is the argument of a plain value.
func (s scope) scalar(as storedAs, v pql.Value) string {
	switch as { //nolint:exhaustive // the others are text
	case asFlag: // no argument, so that databases see when an index of flagged rows will do
		return map[bool]string{true: "1", false: "0"}[v.Text == "true"]
	case asInt:
		n, _ := v.Number()
		return "CAST(" + s.arg(n) + " AS DOUBLE PRECISION)"
	case asTime:
		at, _ := pql.Time(v.Text)
		return s.arg(at.UnixMicro())
	default:
		return s.arg(Clean(v.Text))
	}
}

func (s scope) state(want string) string {
	switch want {
	case "active":
		return s.live()
	case "inactive":
		return "(NOT " + s.live() + ")"
	}
	return always
}

// compareList holds when any element does; of no list it is unknown.
func (s scope) compareList(list string, c pql.Compare) string {
	text := c.Value.Text
	if c.Field.Name == "tag" && c.Op == "=" {
		text = strings.ToLower(text)
	}
	var cond string
	if c.Op == "~" {
		cond = s.Words.matches("l.value", s.pattern(text))
	} else {
		cond = "l.value = " + s.arg(Clean(text))
	}
	return "(CASE WHEN " + list + " IS NOT NULL THEN EXISTS (SELECT 1 FROM " + s.Words.Elements(list) + " l WHERE " + cond + ") END)"
}

func (s scope) null(e pql.Null) string {
	f := s.fields[e.Field.Name]
	not := map[bool]string{true: "", false: "NOT "}[e.Is]
	switch {
	case e.Field.Name == "node_state":
		return map[bool]string{true: never, false: always}[e.Is]
	case len(e.Field.Path) > 0 && f.as == asJSON:
		kind := s.Words.jsonType(f.expr, s.jsonStep(e.Field.Path))
		return "COALESCE(" + kind + map[bool]string{true: " = ", false: " <> "}[e.Is] + "'null', " + falsehood + ")"
	case len(e.Field.Path) > 0 && e.Is:
		return s.leaf(e.Field, func(kind, _, _ string) string { return kind + " = 0" })
	case len(e.Field.Path) > 0:
		return "EXISTS (SELECT 1 FROM facts x WHERE x.node_id = " + s.node + " AND " + s.below(e.Field) + " AND x.kind <> 0)"
	case f.as == asLeaf:
		return "(" + not + f.kind + " = 0)"
	}
	return "(" + f.expr + " IS " + not + "NULL)"
}
