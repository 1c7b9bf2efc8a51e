package filter

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Bounds of the path of a fact.
const (
	maxPath  = 512 // bytes
	maxSteps = 32
)

// parsePath reads the path of a fact, a.b.0 or a.b[0], and gives the first form.
func parsePath(text string) (string, *mistake) {
	path := indexes.ReplaceAllString(text, ".$1")
	switch steps := strings.Split(path, "."); {
	case text == "":
		return "", &mistake{at: 1, detail: "the name of a fact is expected", hint: examples["facts"]}
	case len(path) > maxPath || len(steps) > maxSteps:
		return "", &mistake{at: 1, detail: fmt.Sprintf("the path of a fact has at most %d bytes and %d steps", maxPath, maxSteps)}
	case slices.Contains(steps, ""):
		return "", &mistake{at: 1, detail: shorten(text) + " is not the path of a fact: there is nothing before, between or behind dots", hint: examples["facts"]}
	}
	return path, nil
}

var indexes = regexp.MustCompile(`\[(\d{1,9})\]`)

// At finds the value at a path of Needs in the facts of a node. A step is a key of a structure or the number of an
// element, from 0. A key may have dots in it: of several that fit, the longest is taken.
func At(facts map[string]any, path string) (any, bool) {
	var value any = facts
	for path != "" {
		var found bool
		if value, path, found = step(value, path); !found {
			return nil, false
		}
	}
	return value, true
}

// step goes one step, and gives what is left of the path.
func step(value any, path string) (any, string, bool) {
	switch v := value.(type) {
	case map[string]any:
		for end := len(path); end > 0; end = strings.LastIndexByte(path[:end], '.') {
			if next, ok := v[path[:end]]; ok {
				return next, strings.TrimPrefix(path[end:], "."), true
			}
		}
	case []any:
		first, rest, _ := strings.Cut(path, ".")
		if i, err := strconv.Atoi(first); err == nil && 0 <= i && i < len(v) {
			return v[i], rest, true
		}
	}
	return nil, "", false
}

// factTest compares a fact with a text.
type factTest struct {
	path     string
	operator string // one of meanings
	value    string
	re       *regexp.Regexp // of =~ and !~
}

// notations are the operators as they are written, the longer ones first, and what they are.
var notations = []struct{ written, operator string }{
	{"=~", "=~"},
	{"!~", "!~"},
	{"==", "=="},
	{"!=", "!="},
	{"=>", ">="},
	{"=<", "<="},
	{">=", ">="},
	{"<=", "<="},
	{"=", "="},
	{"<", "<"},
	{">", ">"},
}

// meanings are the operators in words.
var meanings = map[string]string{
	"==": "is", "!=": "is not", "<": "is less than", "<=": "is at most", ">": "is greater than", ">=": "is at least",
	"=~": "matches", "!~": "does not match",
}

// parseFact reads NAME OP VALUE.
func parseFact(text string) (factTest, *mistake) {
	name, operator, value := splitFact(text)
	if operator == "" {
		return factTest{}, &mistake{
			at: characters(name) + 1, detail: "an operator is expected: = != < <= > >= =~ or !~", hint: examples["facts"],
		}
	}
	path, wrong := parsePath(strings.TrimSpace(name))
	if wrong != nil {
		return factTest{}, wrong
	}
	if at := strings.IndexAny(path, " \t\"'"); at >= 0 {
		return factTest{},
			&mistake{at: characters(path[:at]) + 1, detail: "the name of a fact has no spaces and quotes here", hint: `write fact("a name") in an expression`}
	}
	at := characters(text) - characters(value) + 1
	if value == "" {
		return factTest{}, &mistake{at: at, detail: "a value is expected behind " + operator, hint: examples["facts"]}
	}
	return newFactTest(path, operator, value, at)
}

// newFactTest makes the test; at is where the value stands.
func newFactTest(path, operator, value string, at int) (factTest, *mistake) {
	between := len(value) > 2 && strings.HasPrefix(value, "/") && strings.HasSuffix(value, "/")
	switch {
	case operator == "=" && between:
		operator = "=~"
	case operator == "!=" && between:
		operator = "!~"
	case operator == "=":
		operator = "=="
	}
	t := factTest{path: path, operator: operator, value: value}
	if operator != "=~" && operator != "!~" {
		return t, nil
	}
	inner := value
	if between {
		inner, at = value[1:len(value)-1], at+1
	}
	re, wrong := parseRegexp(inner)
	if wrong != nil {
		wrong.at += at - 1
		return t, wrong
	}
	t.re, t.value = re, "/"+inner+"/"
	return t, nil
}

// splitFact finds the first operator; no operator: there is none.
func splitFact(text string) (name, operator, value string) {
	at := strings.IndexAny(text, "=<>!~")
	if at < 0 {
		return text, "", ""
	}
	for _, n := range notations {
		if rest, ok := strings.CutPrefix(text[at:], n.written); ok {
			return text[:at], n.operator, strings.TrimLeft(rest, " \t")
		}
	}
	return text[:at], "", ""
}

func (t factTest) words() string {
	value := t.value
	if t.re == nil {
		value = quote(value)
	}
	return "the fact " + t.path + " " + meanings[t.operator] + " " + value
}

// holds compares; a list is asked for an element, a structure for a key.
func (t factTest) holds(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case []any:
		return slices.ContainsFunc(v, t.holds)
	case map[string]any:
		for key := range maps.Keys(v) {
			if t.holds(key) {
				return true
			}
		}
		return false
	}
	text := render(value)
	_, isText := value.(string)
	switch t.operator {
	case "=~", "!~":
		return t.re.MatchString(text) == (t.operator == "=~")
	case "==", "!=":
		equal := text == t.value
		if a, b, numbers := numbersOf(text, t.value); numbers && !isText {
			equal = equal || a == b
		}
		return equal == (t.operator == "==")
	}
	order := cmp.Compare(text, t.value)
	if a, b, numbers := numbersOf(text, t.value); numbers {
		order = cmp.Compare(a, b)
	}
	switch t.operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	default:
		return order >= 0
	}
}

var number = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// numbersOf reads two texts as numbers.
func numbersOf(a, b string) (x, y float64, numbers bool) {
	if !number.MatchString(a) || !number.MatchString(b) {
		return 0, 0, false
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return x, y, errX == nil && errY == nil
}

// render is a value as text: what a fact without structure is compared as.
func render(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case float64:
		if v == float64(int64(v)) && -1e15 < v && v < 1e15 {
			return strconv.FormatInt(int64(v), 10)
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}

// show is a value for people.
func show(value any) string {
	switch v := value.(type) {
	case string:
		return shorten(v)
	case []any:
		return fmt.Sprintf("a list of %d", len(v))
	case map[string]any:
		return fmt.Sprintf("a structure of %d", len(v))
	default:
		return cut(render(v), maxShown)
	}
}

// plain gives numbers the types that expressions compute with.
func plain(value any) any {
	switch v := value.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return int(i)
		}
		if f, err := v.Float64(); err == nil {
			return f
		}
		return v.String()
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			list[i] = plain(element)
		}
		return list
	case map[string]any:
		structure := make(map[string]any, len(v))
		for key, element := range v {
			structure[key] = plain(element)
		}
		return structure
	default:
		return value
	}
}
