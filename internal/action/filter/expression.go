package filter

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
)

// maxNodes is how many parts an expression has at most.
const maxNodes = 300

// comparisons are the operators that bind more tightly than not.
var comparisons = []string{"==", "!=", "<", "<=", ">", ">=", "in", "matches", "contains", "startsWith", "endsWith"}

// others are the other binary operators that are left. What makes lists (..) is not: a short text could ask for a long time.
var others = []string{"and", "&&", "or", "||", "+", "-", "*", "/", "%", "??"}

// builtins are the functions of the language that are left.
var builtins = []string{"len", "lower", "upper", "trim", "any", "all", "none", "one", "count", "int", "float", "string"}

// functions are those that this package adds, without the sources.
var functions = []string{"fact", "class", "module", "with", "include", "semver"}

// variables are what an expression names.
var variables = []string{"name", "classes", "agents", "facts"}

// expression reads the field select.
func (r *reader) expression(text string) {
	tree, err := parser.ParseWithConfig(text, grammar())
	if err != nil {
		r.refuse(text, syntaxMistake(err))
		return
	}
	root := tree.Node
	ast.Walk(&root, loosen{})
	at := len(r.parts)
	e := expression{reader: r, source: tree.Source}
	for _, node := range conjuncts(root) {
		made, wrong := e.rule(node)
		if wrong != nil {
			r.refuse(text, wrong)
			return
		}
		r.parts = append(r.parts, part{"select", node.String(), made})
	}
	if len(r.parts) == at+1 {
		r.parts[at].text = strings.TrimSpace(text)
	}
}

func (r *reader) refuse(text string, m *mistake) { r.wrong("select", text, m, "%s", m.detail) }

// grammar is the language that is left.
func grammar() *conf.Config {
	config := conf.CreateNew()
	config.MaxNodes = maxNodes
	for _, set := range []expr.Option{expr.DisableAllBuiltins(), expr.AsBool()} {
		set(config)
	}
	for _, name := range builtins {
		expr.EnableBuiltin(name)(config)
	}
	for name := range config.Disabled {
		delete(config.Builtins, name)
	}
	return config
}

var tokens = regexp.MustCompile(`(?:Operator|Identifier|Bracket|String|Number|Bytes)\(("(?:[^"\\]|\\.)*")\)`)

// syntaxMistake is what is wrong with a text that cannot be read.
func syntaxMistake(err error) *mistake {
	m := &mistake{detail: cut(err.Error(), 200), hint: examples["select"]}
	e, ok := errors.AsType[*file.Error](err)
	if !ok {
		return m
	}
	m.at = e.From + 1
	m.detail = cut(tokens.ReplaceAllString(e.Message, "$1"), 200)
	switch {
	case strings.Contains(e.Message, `Operator("=")`):
		m.hint = `an expression compares with ==; one = is written in facts, or in with("os.family=Debian")`
	case strings.Contains(e.Message, "'~'") || strings.Contains(e.Message, `"~"`):
		m.hint = `an expression matches with the word matches: fact("os.family") matches "^Deb"`
	case strings.Contains(e.Message, "EOF") || strings.Contains(e.Message, "unexpected end"):
		m.detail = "the expression ends too early"
	case strings.Contains(e.Message, "maximum allowed nodes"):
		m.detail = fmt.Sprintf("the expression has more than %d parts", maxNodes)
	}
	return m
}

// loosen makes not bind less tightly than comparisons. The language binds it more tightly, where it only makes sense
// if the rest is true or false too, and then means the same.
type loosen struct{}

// Visit implements ast.Visitor.
func (loosen) Visit(node *ast.Node) {
	b, ok := (*node).(*ast.BinaryNode)
	if !ok || !slices.Contains(comparisons, b.Operator) {
		return
	}
	u, ok := b.Left.(*ast.UnaryNode)
	if !ok || !negation(u) {
		return
	}
	var inner ast.Node = &ast.BinaryNode{Operator: b.Operator, Left: u.Node, Right: b.Right}
	inner.SetLocation(b.Location())
	loosen{}.Visit(&inner)
	outer := &ast.UnaryNode{Operator: u.Operator, Node: inner}
	outer.SetLocation(u.Location())
	*node = outer
}

func negation(u *ast.UnaryNode) bool { return u.Operator == "not" || u.Operator == "!" }

// conjuncts are what is between the outer ands.
func conjuncts(node ast.Node) []ast.Node {
	if b, ok := node.(*ast.BinaryNode); ok && (b.Operator == "and" || b.Operator == "&&") {
		return append(conjuncts(b.Left), conjuncts(b.Right)...)
	}
	return []ast.Node{node}
}

// expression is a text while it is taken apart.
type expression struct {
	*reader
	source file.Source
}

// rule takes a condition apart at and, or and not.
func (e *expression) rule(node ast.Node) (rule, *mistake) {
	switch n := node.(type) {
	case *ast.UnaryNode:
		if negation(n) {
			inner, wrong := e.rule(n.Node)
			return notOf{inner}, wrong
		}
	case *ast.BinaryNode:
		switch n.Operator {
		case "and", "&&":
			both, wrong := e.rules(conjuncts(n))
			return allOf(both), wrong
		case "or", "||":
			either, wrong := e.rules(disjuncts(n))
			return oneOf(either), wrong
		}
	}
	return e.leaf(node)
}

func (e *expression) rules(nodes []ast.Node) ([]rule, *mistake) {
	made := make([]rule, 0, len(nodes))
	for _, node := range nodes {
		one, wrong := e.rule(node)
		if wrong != nil {
			return nil, wrong
		}
		made = append(made, one)
	}
	return made, nil
}

// disjuncts are what is between the outer ors.
func disjuncts(node ast.Node) []ast.Node {
	if b, ok := node.(*ast.BinaryNode); ok && (b.Operator == "or" || b.Operator == "||") {
		return append(disjuncts(b.Left), disjuncts(b.Right)...)
	}
	return []ast.Node{node}
}

// leaf compiles what is computed at once. What it reads of a node becomes variables.
func (e *expression) leaf(node ast.Node) (rule, *mistake) {
	at := node.Location().From + 1
	w := rewriter{expression: e, operands: map[string]operand{}, constraints: map[string]*semver.Constraints{}}
	if wrong := w.rewrite(&node); wrong != nil {
		return nil, wrong
	}
	made := &leaf{}
	scope := types.Map{}
	for _, slot := range w.order {
		made.operands = append(made.operands, w.operands[slot])
		scope[slot] = w.operands[slot].gives
	}
	made.words = phrase(node, w.operands)
	if id, ok := node.(*ast.IdentifierNode); ok {
		o := w.operands[id.Value]
		if o.gives != types.Bool && o.gives != types.Any || o.field != nil && o.field.Type != Boolean {
			return nil, &mistake{at: at, detail: id.Value + " is neither true nor false", hint: "compare it with something, as in " + id.Value + ` == "x"`}
		}
		if o.gives != types.Bool {
			made.words += " is true"
		}
		return made, nil
	}
	if wrong := w.comparable(node); wrong != nil {
		return nil, wrong
	}
	config := grammar()
	config.WithEnv(scope)
	expr.Function("semver", w.semver, new(func(any, string) bool))(config)
	expr.Function("include", include, new(func(any, any) bool))(config)
	tree := &parser.Tree{Node: node, Source: e.source}
	if _, err := checker.Check(tree, config); err != nil {
		m := syntaxMistake(err)
		if _, placed := errors.AsType[*file.Error](err); !placed {
			m.at = at
			m.detail = "a condition is true or false, and this is " + kinds.Replace(strings.TrimPrefix(m.detail, "expected bool, but got "))
		}
		return nil, m
	}
	program, err := compiler.Compile(tree, config)
	if err != nil {
		m := syntaxMistake(err)
		m.at = at
		return nil, m
	}
	made.program = program
	return made, nil
}

// kinds are types of the language in plain English.
var kinds = strings.NewReplacer("float64", "a number", "int", "a number", "string", "a text", "[]interface {}", "a list", "nil", "nothing")

// comparable says whether fields of data are compared with what they can be.
func (w *rewriter) comparable(node ast.Node) *mistake {
	v := mismatch{operands: w.operands}
	ast.Walk(&node, &v)
	return v.wrong
}

// mismatch finds a field of data that is compared with a literal of another type.
type mismatch struct {
	operands map[string]operand
	wrong    *mistake
}

// Visit implements ast.Visitor.
func (m *mismatch) Visit(node *ast.Node) {
	b, ok := (*node).(*ast.BinaryNode)
	if !ok || m.wrong != nil || !slices.Contains(comparisons, b.Operator) || b.Operator == "in" {
		return
	}
	for _, sides := range [...][2]ast.Node{{b.Left, b.Right}, {b.Right, b.Left}} {
		id, ok := sides[0].(*ast.IdentifierNode)
		if !ok || m.operands[id.Value].field == nil {
			continue
		}
		field := m.operands[id.Value].field.Type
		if other, literal := typeOf(sides[1]); literal && other != field {
			m.wrong = wrongAt(b, "", "%s is a %s, and it is compared with a %s", id.Value, field, other)
		}
	}
}

// typeOf is the type of a literal.
func typeOf(node ast.Node) (Type, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return Text, true
	case *ast.IntegerNode, *ast.FloatNode:
		return Number, true
	case *ast.BoolNode:
		return Boolean, true
	case *ast.UnaryNode:
		return typeOf(n.Node)
	default:
		return Text, false
	}
}
