package classify

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tutti-project/tutti/internal/fault"
)

// Op is what a rule does.
type Op string

// The operators: three that combine rules, six that look at a value.
const (
	And          Op = "and"
	Or           Op = "or"
	Not          Op = "not"
	Equals       Op = "="
	Matches      Op = "~"
	Less         Op = "<"
	LessEqual    Op = "<="
	Greater      Op = ">"
	GreaterEqual Op = ">="
)

// Root is where a path begins.
type Root string

// The roots.
const (
	Name    Root = "name"
	Fact    Root = "fact"
	Trusted Root = "trusted"
)

// Step goes one deeper: to a key of an object, or to an element of an array.
type Step struct {
	Key     string
	Index   int
	IsIndex bool
}

// Path names a value of a node.
type Path struct {
	Root  Root
	Steps []Step // none for Name
}

// The bounds of a rule.
const (
	MaxRuleBytes  = 1 << 20          // as JSON
	MaxTextBytes  = MaxRuleBytes / 8 // as text; JSON may need six bytes for one
	maxConditions = 20_000
	maxDepth      = 50
	maxSteps      = 50
	maxValueBytes = 4096
)

// Rule is a condition on a node. ParseRule, ParseJSON, All, Any, Negate and
// Compare make rules; others match nothing.
type Rule struct {
	Op    Op
	Rules []Rule // of And, Or (one or more) and Not (one)
	Path  Path   // of the others
	Value string

	pattern *regexp.Regexp // of Matches
}

// All holds when all rules do; there is at least one.
func All(rules ...Rule) Rule { return combine(And, rules) }

// Any holds when one of the rules does; there is at least one.
func Any(rules ...Rule) Rule { return combine(Or, rules) }

// Negate holds when rule does not.
func Negate(rule Rule) Rule { return Rule{Op: Not, Rules: []Rule{rule}} }

// combine makes one rule of several. A single one stands for itself.
func combine(op Op, rules []Rule) Rule {
	if len(rules) == 1 {
		return rules[0]
	}
	return Rule{Op: op, Rules: rules}
}

// Compare looks at one value. It is Invalid for a pattern or number that is none.
func Compare(op Op, path Path, value string) (Rule, error) {
	rule := Rule{Op: op, Path: path, Value: value}
	switch {
	case len(value) > maxValueBytes:
		return Rule{}, fault.New(fault.Invalid, "a value of at most %d bytes is expected, not of %d", maxValueBytes, len(value))
	case !utf8.ValidString(value):
		return Rule{}, fault.New(fault.Invalid, "a value in UTF-8 is expected")
	}
	switch op {
	case Equals:
	case Matches:
		pattern, err := regexp.Compile(value)
		if err != nil {
			return Rule{}, fault.New(fault.Invalid, "a regular expression (RE2 syntax) is expected: %s", patternProblem(err))
		}
		rule.pattern = pattern
	case Less, LessEqual, Greater, GreaterEqual:
		if !isDecimal(value) {
			return Rule{}, fault.New(fault.Invalid, "a number is expected after %s, like 4 or 2.5, not %.60q", op, value)
		}
	case And, Or, Not:
		fallthrough
	default:
		return Rule{}, fault.New(fault.Invalid, "one of = ~ < <= > >= is expected, not %.20q", op)
	}
	return rule, nil
}

func patternProblem(err error) string {
	return strings.TrimPrefix(err.Error(), "error parsing regexp: ")
}

// Equal says whether both are the same tree.
func (r Rule) Equal(other Rule) bool {
	return r.Op == other.Op && r.Value == other.Value && r.Path.Root == other.Path.Root &&
		slices.Equal(r.Path.Steps, other.Path.Steps) && slices.EqualFunc(r.Rules, other.Rules, Rule.Equal)
}

// Holds says whether the rule matches node.
func (r Rule) Holds(node Node) bool {
	switch r.Op {
	case And:
		return !slices.ContainsFunc(r.Rules, func(sub Rule) bool { return !sub.Holds(node) })
	case Or:
		return slices.ContainsFunc(r.Rules, func(sub Rule) bool { return sub.Holds(node) })
	case Not:
		return len(r.Rules) == 1 && !r.Rules[0].Holds(node)
	case Equals, Matches, Less, LessEqual, Greater, GreaterEqual:
		value, ok := node.text(r.Path)
		return ok && r.holdsFor(value)
	}
	return false
}

func (r Rule) holdsFor(value string) bool {
	switch r.Op {
	case Equals:
		return value == r.Value
	case Matches:
		return r.pattern != nil && r.pattern.MatchString(value)
	case And, Or, Not, Less, LessEqual, Greater, GreaterEqual:
	}
	order, ok := compareNumbers(value, r.Value)
	if !ok {
		return false
	}
	switch r.Op {
	case Less:
		return order < 0
	case LessEqual:
		return order <= 0
	case Greater:
		return order > 0
	case GreaterEqual:
		return order >= 0
	case And, Or, Not, Equals, Matches:
	}
	return false
}

// walk visits every condition that looks at a value.
func (r Rule) walk(visit func(Rule)) {
	if len(r.Rules) == 0 {
		visit(r)
	}
	for _, sub := range r.Rules {
		sub.walk(visit)
	}
}

// shape counts the rule's parts and how deep they are nested, as the JSON form does.
func (r Rule) shape() (parts, depth int) {
	for _, sub := range r.Rules {
		n, d := sub.shape()
		parts, depth = parts+n, max(depth, d+1)
	}
	return parts + 1, depth
}

// compareNumbers compares whole numbers exactly, others as float64.
func compareNumbers(a, b string) (int, bool) {
	if !isDecimal(a) || !isDecimal(b) {
		return 0, false
	}
	m, errM := strconv.ParseInt(a, 10, 64)
	n, errN := strconv.ParseInt(b, 10, 64)
	if errM == nil && errN == nil {
		return order(m, n), true
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return order(x, y), errX == nil && errY == nil
}

func order[T int64 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// isDecimal says whether text is -12, 3.5 or 1e6: what JSON takes for a number,
// and leading zeros.
func isDecimal(text string) bool {
	rest := strings.TrimPrefix(text, "-")
	rest, ok := digits(rest)
	if !ok {
		return false
	}
	if fraction, found := strings.CutPrefix(rest, "."); found {
		if rest, ok = digits(fraction); !ok {
			return false
		}
	}
	if rest != "" && (rest[0] == 'e' || rest[0] == 'E') {
		rest = rest[1:]
		if rest != "" && (rest[0] == '+' || rest[0] == '-') {
			rest = rest[1:]
		}
		if rest, ok = digits(rest); !ok {
			return false
		}
	}
	return rest == ""
}

// digits cuts off leading digits; there must be one.
func digits(text string) (rest string, ok bool) {
	rest = strings.TrimLeft(text, "0123456789")
	return rest, len(rest) < len(text)
}
