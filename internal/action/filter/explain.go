package filter

import (
	"strings"

	"github.com/expr-lang/expr/ast"
)

// Explain says a condition in words, a line for each part.
func Explain(c *Condition) string {
	if len(c.parts) == 0 {
		return "Every node matches.\n"
	}
	var b strings.Builder
	b.WriteString("A node matches if all of this is true:\n")
	for _, p := range c.parts {
		p.rule.explain("", &b)
	}
	if len(c.needs.Data) > 0 {
		b.WriteString("This is asked of the nodes themselves:\n")
		for _, q := range c.needs.Data {
			b.WriteString("- " + q.String() + "\n")
		}
	}
	return b.String()
}

func (a allOf) explain(indent string, b *strings.Builder) {
	explainAll(indent, "all of this is true:", a, b)
}

func (o oneOf) explain(indent string, b *strings.Builder) {
	explainAll(indent, "at least one of this is true:", o, b)
}

func (r notOf) explain(indent string, b *strings.Builder) {
	explainAll(indent, "this is not true:", []rule{r.rule}, b)
}

func (l *leaf) explain(indent string, b *strings.Builder) {
	words := l.words
	if words == "" {
		words = l.operands[0].words
	}
	b.WriteString(indent + "- " + words + "\n")
}

func explainAll(indent, heading string, rules []rule, b *strings.Builder) {
	b.WriteString(indent + "- " + heading + "\n")
	for _, r := range rules {
		r.explain(indent+"  ", b)
	}
}

// verbs are the comparisons of expressions in words.
var verbs = map[string]string{
	"==": "is", "!=": "is not", "<": "is less than", "<=": "is at most", ">": "is greater than", ">=": "is at least",
	"in": "is one of", "matches": "matches", "contains": "contains", "startsWith": "begins with", "endsWith": "ends with",
}

// phrase is a leaf in words; what has no words is given as it is written.
func phrase(node ast.Node, operands map[string]operand) string {
	switch n := node.(type) {
	case *ast.IdentifierNode:
		return operands[n.Value].words
	case *ast.BinaryNode:
		if verb, ok := verbs[n.Operator]; ok {
			return noun(n.Left, operands) + " " + verb + " " + noun(n.Right, operands)
		}
	}
	return node.String()
}

// noun is a side of a comparison in words.
func noun(node ast.Node, operands map[string]operand) string {
	if n, ok := node.(*ast.IdentifierNode); ok {
		return operands[n.Value].words
	}
	return node.String()
}
