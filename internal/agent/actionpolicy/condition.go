package actionpolicy

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fault"
)

// condition is what a fact must be.
type condition struct {
	fact    string
	holdsIf func(order int) bool // of the fact and the value; nil: pattern counts
	value   string
	pattern *regexp.Regexp
}

var conditionForm = regexp.MustCompile(`\A([^=<>!~]+)(==|=~|!=|<=|>=|=<|=>|=|<|>)(.+)\z`)

// operators say what an order of fact and value must be like.
var operators = map[string]func(order int) bool{
	"=": func(o int) bool { return o == 0 }, "==": func(o int) bool { return o == 0 }, "!=": func(o int) bool { return o != 0 },
	"<": func(o int) bool { return o < 0 }, "<=": func(o int) bool { return o <= 0 }, "=<": func(o int) bool { return o <= 0 },
	">": func(o int) bool { return o > 0 }, ">=": func(o int) bool { return o >= 0 }, "=>": func(o int) bool { return o >= 0 },
}

func parseCondition(word string) (condition, error) {
	parts := conditionForm.FindStringSubmatch(word)
	if parts == nil {
		return condition{}, fault.New(fault.Invalid, "facts: %.80q is no condition such as role=db or os.release.major>=12", word)
	}
	c := condition{fact: parts[1], value: parts[3], holdsIf: operators[parts[2]]}
	inner, slashed := strings.CutPrefix(c.value, "/")
	inner, closed := strings.CutSuffix(inner, "/")
	switch isPattern := slashed && closed && inner != ""; {
	case !isPattern && parts[2] != "=~":
	case isPattern && !slices.Contains([]string{"=", "==", "=~"}, parts[2]):
		// as a text it would hold for nearly anything
		return c, fault.New(fault.Invalid, "facts: %.80q: a regular expression goes with = and =~ only; write a row for each case", word)
	default:
		if !isPattern {
			inner = c.value
		}
		pattern, err := regexp.Compile(inner)
		if err != nil {
			return c, fault.New(fault.Invalid, "facts: %.80q has no regular expression", word)
		}
		c.pattern, c.holdsIf = pattern, nil
	}
	return c, nil
}

// holds says whether it is so among facts.
func (c condition) holds(of []byte) bool {
	text, there := valueOf(of, c.fact)
	if !there {
		return false
	}
	if c.holdsIf == nil {
		return c.pattern.MatchString(text)
	}
	return c.holdsIf(order(text, c.value))
}

// valueOf is a fact as text, by its name or by its path with dots; what is no single value is not there.
func valueOf(values json.RawMessage, name string) (string, bool) {
	text, err := facts.Glance(values, pointer(name))
	if text == "" && err == nil {
		text, err = facts.Glance(values, pointer(strings.Split(name, ".")...))
	}
	if err != nil || text == "" || text == "null" || text[0] == '{' || text[0] == '[' {
		return "", false
	}
	if text[0] != '"' {
		return text, true
	}
	var unquoted string
	err = json.Unmarshal([]byte(text), &unquoted)
	return unquoted, err == nil
}

func pointer(steps ...string) string {
	var b strings.Builder
	for _, step := range steps {
		b.WriteString("/" + strings.ReplaceAll(strings.ReplaceAll(step, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

var number = regexp.MustCompile(`\A-?[0-9]+(\.[0-9]+)?\z`)

// order compares as numbers what are numbers, and anything else as texts.
func order(a, b string) int {
	if number.MatchString(a) && number.MatchString(b) {
		x, errX := strconv.ParseFloat(a, 64)
		y, errY := strconv.ParseFloat(b, 64)
		if errX == nil && errY == nil {
			return cmp.Compare(x, y)
		}
	}
	return cmp.Compare(a, b)
}
