package filter

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm/runtime"

	"github.com/tutti-project/tutti/internal/fault"
)

// rewriter replaces what a leaf reads of a node by variables.
type rewriter struct {
	*expression
	operands    map[string]operand
	order       []string
	constraints map[string]*semver.Constraints
	inLoop      bool
}

// wrongAt is a mistake at a node of the tree.
func wrongAt(node ast.Node, hint, format string, args ...any) *mistake {
	return &mistake{at: node.Location().From + 1, detail: fmt.Sprintf(format, args...), hint: hint}
}

// put puts a variable in the place of a node.
func (w *rewriter) put(node *ast.Node, o operand, wrong *mistake) *mistake {
	if wrong != nil {
		wrong.at = (*node).Location().From + 1
		return wrong
	}
	if _, there := w.operands[o.slot]; !there {
		w.operands[o.slot] = o
		w.order = append(w.order, o.slot)
	}
	ast.Patch(node, &ast.IdentifierNode{Value: o.slot})
	return nil
}

// rewrite goes through a node and refuses what is not left of the language.
func (w *rewriter) rewrite(node *ast.Node) *mistake {
	switch n := (*node).(type) {
	case *ast.NilNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.StringNode, *ast.PointerNode:
		return nil
	case *ast.IdentifierNode:
		return w.variable(node, n)
	case *ast.UnaryNode:
		return w.rewrite(&n.Node)
	case *ast.BinaryNode:
		if !slices.Contains(comparisons, n.Operator) && !slices.Contains(others, n.Operator) {
			return wrongAt(n, "", "the operator %s is not allowed here", n.Operator)
		}
		return w.both(&n.Left, &n.Right)
	case *ast.ConditionalNode:
		if wrong := w.rewrite(&n.Cond); wrong != nil {
			return wrong
		}
		return w.both(&n.Exp1, &n.Exp2)
	case *ast.ArrayNode:
		return w.each(n.Nodes)
	case *ast.ChainNode:
		wrong := w.rewrite(&n.Node)
		if _, plain := n.Node.(*ast.IdentifierNode); plain && wrong == nil {
			*node = n.Node
		}
		return wrong
	case *ast.MemberNode:
		return w.member(node, n)
	case *ast.CallNode:
		return w.call(node, n)
	case *ast.BuiltinNode:
		if !slices.Contains(builtins, n.Name) {
			return w.noFunction(n, n.Name)
		}
		return w.each(n.Arguments)
	case *ast.PredicateNode:
		if w.inLoop {
			return wrongAt(n, "", "any, all, none, one and count cannot stand inside of each other")
		}
		w.inLoop = true
		defer func() { w.inLoop = false }()
		return w.rewrite(&n.Node)
	case *ast.VariableDeclaratorNode, *ast.SequenceNode:
		return wrongAt(n, "write one expression", "let and ; are not allowed")
	default:
		return wrongAt(n, "", "maps, slices and bytes are not allowed")
	}
}

func (w *rewriter) both(a, b *ast.Node) *mistake {
	if wrong := w.rewrite(a); wrong != nil {
		return wrong
	}
	return w.rewrite(b)
}

func (w *rewriter) each(nodes []ast.Node) *mistake {
	for i := range nodes {
		if wrong := w.rewrite(&nodes[i]); wrong != nil {
			return wrong
		}
	}
	return nil
}

func (w *rewriter) variable(node *ast.Node, n *ast.IdentifierNode) *mistake {
	switch n.Value {
	case "name":
		return w.put(node, nodeName(), nil)
	case "classes":
		return w.put(node, w.classList(), nil)
	case "agents":
		return w.put(node, w.moduleList(), nil)
	case "facts":
		return wrongAt(n, `write facts.os.family or fact("os.family")`, "facts is read with the names of facts that are written out")
	}
	hint := fault.DidYouMean(n.Value, append(names(), variables...))
	if hint == "" {
		hint = "a fact is written fact(" + quote(n.Value) + "), a class class(" + quote(n.Value) + "), a text in quotes"
	}
	return wrongAt(n, hint, "there is no variable %s; there are %s", shorten(n.Value), strings.Join(variables, ", "))
}

// names are all functions.
func names() []string {
	all := slices.Concat(functions, builtins)
	for _, s := range sources {
		all = append(all, s.Name)
		if s.Alias != "" {
			all = append(all, s.Alias)
		}
	}
	return all
}

func (w *rewriter) noFunction(n ast.Node, name string) *mistake {
	return wrongAt(n, fault.DidYouMean(name, names()), "there is no function %s; there are %s", shorten(name), strings.Join(names(), ", "))
}

// member reads a.b: a fact, a field of data, or something in a value.
func (w *rewriter) member(node *ast.Node, n *ast.MemberNode) *mistake {
	key, literal := keyOf(n.Property)
	if path, isFact := w.path(n); isFact {
		return w.factAt(node, path)
	}
	if !literal {
		return wrongAt(n.Property, `write it out, as in facts.os.family`, "the name of a member is a text or number that is written out")
	}
	if call, ok := n.Node.(*ast.CallNode); ok {
		if s := w.sourceCalled(call); s != nil {
			return w.data(node, call, s, key)
		}
	}
	if wrong := w.rewrite(&n.Node); wrong != nil {
		return wrong
	}
	if id, ok := n.Node.(*ast.IdentifierNode); ok && w.operands[id.Value].field != nil {
		return wrongAt(n.Property, "", "%s has no members", id.Value)
	}
	return nil
}

// keyOf is a member's name or number that is written out.
func keyOf(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode:
		return strconv.Itoa(n.Value), true
	default:
		return "", false
	}
}

// path is that of a fact: facts.a.b, or fact("a").b.
func (w *rewriter) path(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.ChainNode:
		return w.path(n.Node)
	case *ast.MemberNode:
		key, literal := keyOf(n.Property)
		if id, ok := n.Node.(*ast.IdentifierNode); ok && id.Value == "facts" {
			return key, literal
		}
		before, ok := w.path(n.Node)
		return before + "." + key, ok && literal
	case *ast.CallNode:
		if id, ok := n.Callee.(*ast.IdentifierNode); ok && id.Value == "fact" && len(n.Arguments) == 1 {
			text, isText := n.Arguments[0].(*ast.StringNode)
			if isText {
				return text.Value, true
			}
		}
	}
	return "", false
}

func (w *rewriter) factAt(node *ast.Node, text string) *mistake {
	path, wrong := parsePath(text)
	if wrong != nil {
		return w.put(node, operand{}, wrong)
	}
	return w.put(node, w.value(path), nil)
}

func (w *rewriter) sourceCalled(n *ast.CallNode) *Source {
	id, ok := n.Callee.(*ast.IdentifierNode)
	if !ok {
		return nil
	}
	return sourceOf(id.Value)
}

// data reads a field of a source.
func (w *rewriter) data(node *ast.Node, call *ast.CallNode, s *Source, field string) *mistake {
	f, wrong := s.field(field)
	if wrong != nil {
		wrong.at = (*node).(*ast.MemberNode).Property.Location().From + 1
		return wrong
	}
	argument := ""
	if len(call.Arguments) > 0 {
		text, isText := call.Arguments[0].(*ast.StringNode)
		if !isText || len(call.Arguments) > 1 {
			return wrongAt(call, "write it like "+s.example(), "%s takes one text that is written out", s.Name)
		}
		argument = text.Value
	}
	q, wrong := s.query(argument, len(call.Arguments) > 0)
	if wrong != nil {
		wrong.at = call.Location().From + 1
		return wrong
	}
	return w.put(node, w.answer(q, f), nil)
}

// call reads a function.
func (w *rewriter) call(node *ast.Node, n *ast.CallNode) *mistake {
	id, ok := n.Callee.(*ast.IdentifierNode)
	if !ok {
		return wrongAt(n, "", "values have no functions")
	}
	if s := sourceOf(id.Value); s != nil {
		return wrongAt(n, "write it like "+s.example(), "%s is read by a field; there are %s", id.Value, strings.Join(s.names(), ", "))
	}
	if id.Value == "include" || id.Value == "semver" {
		return w.computed(n, id.Value)
	}
	if !slices.Contains(functions, id.Value) {
		return w.noFunction(n, id.Value)
	}
	text, ok := literalOf(n)
	if !ok {
		return wrongAt(n, `write it like `+id.Value+`("`+map[string]string{"fact": "os.family", "module": "service"}[id.Value]+`")`,
			"%s takes one text that is written out", id.Value)
	}
	switch id.Value {
	case "fact":
		return w.factAt(node, text)
	case "class":
		o, wrong := w.class(text)
		return w.put(node, o, wrong)
	case "module":
		o, wrong := w.module(text)
		return w.put(node, o, wrong)
	default:
		o, wrong := w.with(text)
		return w.put(node, o, wrong)
	}
}

// literalOf is the one argument, if it is a text that is written out.
func literalOf(n *ast.CallNode) (string, bool) {
	if len(n.Arguments) != 1 {
		return "", false
	}
	text, ok := n.Arguments[0].(*ast.StringNode)
	if !ok {
		return "", false
	}
	return text.Value, true
}

// computed reads include and semver.
func (w *rewriter) computed(n *ast.CallNode, name string) *mistake {
	if len(n.Arguments) != 2 {
		return wrongAt(n, `write include(fact("roles"), "web") or semver(fact("puppetversion"), ">= 8.0")`, "%s takes two arguments", name)
	}
	if name == "semver" {
		text, ok := n.Arguments[1].(*ast.StringNode)
		if !ok {
			return wrongAt(n.Arguments[1], `write it like ">= 8.0, < 9"`, "the second argument of semver is a text that is written out")
		}
		c, err := semver.NewConstraint(text.Value)
		if err != nil {
			return wrongAt(text, `write it like ">= 8.0, < 9"`, "%s", cut(err.Error(), 200))
		}
		w.constraints[text.Value] = c
	}
	return w.each(n.Arguments)
}

// semver compares a version with a constraint.
func (w *rewriter) semver(arguments ...any) (any, error) {
	version, constraint := arguments[0], arguments[1].(string)
	switch version.(type) {
	case string, float64, int:
	default:
		return nil, errors.New("semver takes a version, not " + show(version))
	}
	v, err := semver.NewVersion(render(version))
	if err != nil {
		return nil, errors.New(show(version) + " is not a version")
	}
	return w.constraints[constraint].Check(v), nil
}

// include looks for something in a list.
func include(arguments ...any) (any, error) {
	list, ok := arguments[0].([]any)
	if !ok {
		return nil, errors.New("include takes a list, not " + show(arguments[0]))
	}
	return slices.ContainsFunc(list, func(element any) bool { return runtime.Equal(element, arguments[1]) }), nil
}
