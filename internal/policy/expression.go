package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"github.com/tutti-project/tutti/internal/fault"
)

// maxNodes is how many parts an expression has at most.
const maxNodes = 300

// scope is all that an expression sees. The names are the language's: they are documented in docs/policy.md.
type scope struct {
	Change      seenChange  `expr:"change"`
	Preview     seenPreview `expr:"preview"`
	Release     seenRelease `expr:"release"`
	Environment string      `expr:"environment"`
	Time        seenTime    `expr:"time"`
}

type seenChange struct {
	Kind         string   `expr:"kind"`
	Type         string   `expr:"type"`
	Title        string   `expr:"title"`
	Parameters   []string `expr:"parameters"`
	Nodes        int      `expr:"nodes"`
	Exported     bool     `expr:"exported"`
	OrderOnly    bool     `expr:"order_only"`
	Acknowledged bool     `expr:"acknowledged"`
	File         string   `expr:"file"`
	Message      string   `expr:"message"`
}

type seenPreview struct {
	Nodes   int `expr:"nodes"`
	Changed int `expr:"changed"`
	Same    int `expr:"same"`
	Failed  int `expr:"failed"`
	Unseen  int `expr:"unseen"`
}

type seenRelease struct {
	Nodes int   `expr:"nodes"`
	Waves []int `expr:"waves"`
}

type seenTime struct {
	Weekday string `expr:"weekday"`
	Date    string `expr:"date"`
	Hour    int    `expr:"hour"`
	Minute  int    `expr:"minute"`
}

// operators are the binary ones that are left. What makes lists (..) is not: a short text could ask for a long time.
var operators = []string{
	"==", "!=", "<", "<=", ">", ">=", "and", "&&", "or", "||", "not", "in", "matches", "contains", "startsWith", "endsWith", "+", "-", "*", "/", "%", "??",
}

// builtins are the functions that are left.
var builtins = []string{"len", "lower", "upper", "trim", "any", "all", "none", "one", "count"}

// Compiled is a rule that can be judged. It may be used concurrently.
type Compiled struct {
	Rule
	program *vm.Program
	where   *time.Location
	each    bool   // it looks at a change, so that it is asked of each
	broken  string // it is stored, but cannot be compiled (any more): it holds
}

// Compile reads a rule's expression. Left of the language are comparisons, and, or, not, in, arithmetic, conditions, lists that are written out,
// matches, contains, startsWith, endsWith, and the functions len, lower, upper, trim, any, all, none, one and count.
// Invalid, with the place.
func Compile(r Rule) (Compiled, error) {
	c := Compiled{Rule: r}
	where, err := zone(r.Zone)
	if err != nil {
		return c, err
	}
	c.where = where
	if len(r.When) > MaxWhen || !utf8.ValidString(r.When) {
		return c, fault.New(fault.Invalid, "field when: it has %d bytes, at most %d of UTF-8 are allowed", len(r.When), MaxWhen)
	}
	if strings.TrimSpace(r.When) == "" {
		return c, fault.New(fault.Invalid, `field when: which changes? for example: change.kind == "removed" and change.type == "User"; true is every change`)
	}
	tree, err := parser.Parse(r.When)
	if err != nil {
		return c, wrong(err)
	}
	visit := visitor{}
	ast.Walk(&tree.Node, &visit)
	if visit.refused != "" {
		return c, fault.New(fault.Invalid, "field when: %s", visit.refused)
	}
	options := []expr.Option{expr.Env(scope{}), expr.AsBool(), expr.MaxNodes(maxNodes), expr.DisableAllBuiltins()}
	for _, name := range builtins {
		options = append(options, expr.EnableBuiltin(name))
	}
	if c.program, err = expr.Compile(r.When, options...); err != nil {
		return c, wrong(err)
	}
	c.each = visit.change || !visit.names
	return c, nil
}

// wrong is what is wrong with an expression, for people: the message, the line and where in it.
func wrong(err error) error {
	told := &fault.Error{Kind: fault.Invalid, Detail: fmt.Sprintf("field when: %.600s", err.Error())}
	switch text := err.Error(); {
	case strings.Contains(text, `Operator("=")`):
		told.Hint = "policies compare with ==; one = belongs to PQL and to rules of groups"
	case strings.Contains(text, `Operator("~")`) || strings.Contains(text, `'~'`):
		told.Hint = "policies match a regular expression with the word matches; ~ belongs to PQL and to rules of groups"
	}
	return told
}

// visitor looks at every part of an expression.
type visitor struct {
	refused string
	change  bool // it names change
	names   bool // it names something
}

// Visit implements ast.Visitor.
func (v *visitor) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		v.names = true
		v.change = v.change || n.Value == "change"
		if strings.HasPrefix(n.Value, "$") {
			v.refuse("%.40s is not allowed", n.Value)
		}
	case *ast.BinaryNode:
		if !slices.Contains(operators, n.Operator) {
			v.refuse("the operator %s is not allowed here", n.Operator)
		}
	case *ast.BuiltinNode:
		if !slices.Contains(builtins, n.Name) {
			v.refuse("the function %.40s is not there; there are %s", n.Name, strings.Join(builtins, ", "))
		}
	case *ast.CallNode:
		v.refuse("there are no functions but %s", strings.Join(builtins, ", "))
	case *ast.VariableDeclaratorNode, *ast.SequenceNode:
		v.refuse("let and ; are not allowed: write one expression")
	case *ast.MapNode, *ast.PairNode, *ast.SliceNode, *ast.BytesNode:
		v.refuse("maps, slices and bytes are not allowed")
	case *ast.PredicateNode:
		inner := loops{}
		ast.Walk(&n.Node, &inner)
		if inner.found {
			v.refuse("any, all, none, one and count cannot stand inside of each other")
		}
	case *ast.NilNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.StringNode, *ast.ConstantNode, *ast.UnaryNode, *ast.ChainNode,
		*ast.MemberNode, *ast.PointerNode, *ast.ConditionalNode, *ast.ArrayNode:
	default:
		v.refuse("%T is not allowed", n)
	}
}

func (v *visitor) refuse(format string, args ...any) {
	if v.refused == "" {
		v.refused = fmt.Sprintf(format, args...)
	}
}

// loops finds what is asked of each element of a list.
type loops struct{ found bool }

// Visit implements ast.Visitor.
func (l *loops) Visit(node *ast.Node) {
	_, loop := (*node).(*ast.PredicateNode)
	l.found = l.found || loop
}
