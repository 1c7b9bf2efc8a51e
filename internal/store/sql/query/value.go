package query

import (
	"math"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/pql"
)

// compareLeaf compares a fact's value with regard to its type.
func (s scope) compareLeaf(kind, value, number, op string, v pql.Value) string {
	switch {
	case op == "~":
		return "(CASE WHEN " + kind + " IN (1, 2, 3, 4) THEN " + s.Words.matches(value, s.pattern(v.Text)) + " ELSE " + falsehood + " END)"
	case op != "=":
		n, _ := v.Number()
		return "(" + kind + " IN (2, 3) AND COALESCE(" + number + " " + op + " " + s.arg(n) + ", " + falsehood + "))"
	case v.Kind == pql.String:
		return "(" + kind + " = 4 AND " + value + " = " + s.arg(Clean(v.Text)) + ")"
	case v.Kind == pql.Boolean:
		return "(" + kind + " = 1 AND " + value + " = " + s.arg(v.Text) + ")"
	case large(v):
		return "(" + kind + " = 2 AND " + value + " = " + s.arg(v.Text) + ")"
	default:
		n, _ := v.Number()
		return "(" + kind + " IN (2, 3) AND COALESCE(" + number + " = " + s.arg(n) + ", " + falsehood + "))"
	}
}

// compareJSON compares what a path leads to in a JSON text.
func (s scope) compareJSON(doc, path string, c pql.Compare) string {
	w := s.Words
	kind, text := w.jsonType(doc, path), w.jsonText(doc, path)
	number := "CAST(CASE WHEN " + kind + " = 'number' THEN " + text + " END AS DOUBLE PRECISION)"
	var cond string
	switch {
	case c.Op == "~":
		cond = kind + " IN ('string', 'number', 'boolean') AND " + w.matches(text, s.pattern(c.Value.Text))
	case c.Op != "=":
		n, _ := c.Value.Number()
		cond = number + " " + c.Op + " " + s.arg(n)
	case c.Value.Kind == pql.String:
		cond = kind + " = 'string' AND " + text + " = " + s.arg(Clean(c.Value.Text))
	case c.Value.Kind == pql.Boolean:
		cond = kind + " = 'boolean' AND " + text + " = " + s.arg(c.Value.Text)
	case c.Value.Kind == pql.List:
		cond = kind + " = 'array' AND " + w.sameJSON(w.jsonRaw(doc, path), s.arg(Clean(c.Value.JSON())))
	case large(c.Value):
		cond = kind + " = 'number' AND " + text + " = " + s.arg(c.Value.Text)
	default:
		n, _ := c.Value.Number()
		cond = number + " = " + s.arg(n)
	}
	return "COALESCE(" + cond + ", " + falsehood + ")"
}

// large tells whole numbers that a float cannot hold: they are compared as text.
func large(v pql.Value) bool {
	n, ok := v.Number()
	return ok && v.Kind == pql.Integer && math.Abs(n) > 1<<53
}

// jsonStep is the argument of a path into a JSON text. SQLite cannot name a key with a quote.
func (s scope) jsonStep(steps []pql.Step) string {
	for _, step := range steps {
		if strings.ContainsAny(step.Text, "\"\x00") && s.Failed == nil {
			s.Failed = fault.New(fault.Invalid, "a key with a quote cannot be looked up: %.80s", step.Text)
		}
	}
	return s.argument(argument{s.Words.jsonPath(steps), true})
}
