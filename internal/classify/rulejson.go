package classify

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tutti-project/tutti/internal/fault"
)

// ParseJSON reads a rule in the classifier's JSON form. null, ["and"] and ["or"]
// are no rule: nil. An error names the place, as an index path into the array, and
// what is expected there.
func ParseJSON(text []byte) (*Rule, error) {
	if len(text) > MaxRuleBytes {
		return nil, fault.New(fault.Invalid, "the rule has %d bytes, at most %d are allowed", len(text), MaxRuleBytes)
	}
	value, err := decode(text)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the rule is not JSON: %v", err)
	}
	if list, ok := value.([]any); value == nil || ok && len(list) == 1 && (list[0] == "and" || list[0] == "or") {
		return nil, nil //nolint:nilnil // no rule is a rule that may be
	}
	reader := jsonReader{}
	rule, err := reader.rule(value, "rule", 0)
	if err != nil {
		return nil, err
	}
	return &rule, nil
}

// jsonReader counts what it reads.
type jsonReader struct{ conditions int }

func expected(at, format string, args ...any) error {
	return fault.New(fault.Invalid, "%s: %s", at, fmt.Sprintf(format, args...))
}

func (j *jsonReader) rule(value any, at string, depth int) (Rule, error) {
	if j.conditions++; j.conditions > maxConditions {
		return Rule{}, expected(at, "the rule has more than %d parts", maxConditions)
	}
	if depth > maxDepth {
		return Rule{}, expected(at, "the rule is nested more than %d deep", maxDepth)
	}
	list, _ := value.([]any)
	if len(list) == 0 {
		return Rule{}, expected(at, `a condition is expected, like ["=", ["fact", "os", "family"], "Debian"] or ["and", CONDITION, ...], not %s`, sample(value))
	}
	op, _ := list[0].(string)
	switch Op(op) {
	case And, Or:
		if len(list) < 2 {
			return Rule{}, expected(at, "%s needs one condition or more", op)
		}
		rules, err := j.rules(list[1:], at, depth)
		return combine(Op(op), rules), err
	case Not:
		if len(list) != 2 {
			return Rule{}, expected(at, "not needs one condition, not %d", len(list)-1)
		}
		rules, err := j.rules(list[1:], at, depth)
		if err != nil {
			return Rule{}, err
		}
		return Negate(rules[0]), nil
	case Equals, Matches, Less, LessEqual, Greater, GreaterEqual:
		return condition(Op(op), list, at)
	}
	return Rule{}, expected(at+"[0]", "one of and, or, not, =, ~, <, <=, >, >= is expected, not %s", sample(list[0]))
}

func (j *jsonReader) rules(list []any, at string, depth int) ([]Rule, error) {
	rules := make([]Rule, len(list))
	for i, value := range list {
		var err error
		if rules[i], err = j.rule(value, fmt.Sprintf("%s[%d]", at, i+1), depth+1); err != nil {
			return nil, err
		}
	}
	return rules, nil
}

func condition(op Op, list []any, at string) (Rule, error) {
	if len(list) != 3 {
		return Rule{}, expected(at, "%s needs a path and a value, not %d things", op, len(list)-1)
	}
	path, err := jsonPath(list[1], at+"[1]")
	if err != nil {
		return Rule{}, err
	}
	value, ok := list[2].(string)
	if number, isNumber := list[2].(json.Number); isNumber {
		value, ok = number.String(), true // some clients forget the quotes
	}
	if !ok {
		return Rule{}, expected(at+"[2]", `a value as a string is expected, like "Debian", not %s`, sample(list[2]))
	}
	rule, err := Compare(op, path, value)
	if err != nil {
		return Rule{}, expected(at+"[2]", "%s", fault.Detail(err))
	}
	return rule, nil
}

func jsonPath(value any, at string) (Path, error) {
	if value == string(Name) {
		return Path{Root: Name}, nil
	}
	list, _ := value.([]any)
	if len(list) == 0 || list[0] != string(Fact) && list[0] != string(Trusted) {
		return Path{}, expected(at, `"name", ["fact", KEY, ...] or ["trusted", KEY, ...] is expected, not %s`, sample(value))
	}
	root, _ := list[0].(string)
	if len(list) == 1 || len(list) > maxSteps {
		return Path{}, expected(at, "1 to %d keys are expected after %q", maxSteps-1, root)
	}
	path := Path{Root: Root(root)}
	for i, step := range list[1:] {
		switch step := step.(type) {
		case string:
			path.Steps = append(path.Steps, Step{Key: step})
			continue
		case json.Number:
			if index, err := step.Int64(); err == nil && index >= 0 && index <= maxIndex {
				path.Steps = append(path.Steps, Step{Index: int(index), IsIndex: true})
				continue
			}
		}
		return Path{}, expected(fmt.Sprintf("%s[%d]", at, i+1), "a key (string) or an index (0 to %d) is expected, not %s", maxIndex, sample(step))
	}
	return path, nil
}

// maxIndex is the last element that a path may name.
const maxIndex = 1_000_000

// sample shows the beginning of what was found instead.
func sample(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "this"
	}
	return fmt.Sprintf("%.60s", text)
}

// MarshalJSON writes the JSON form.
func (r Rule) MarshalJSON() ([]byte, error) { return compact(r.array()) }

// UnmarshalJSON reads the JSON form.
func (r *Rule) UnmarshalJSON(text []byte) error {
	rule, err := ParseJSON(text)
	if err != nil {
		return err
	}
	if rule == nil {
		return fault.New(fault.Invalid, "a rule is expected, not %.20s", text)
	}
	*r = *rule
	return nil
}

func (r Rule) array() []any {
	list := []any{string(r.Op)}
	if len(r.Rules) == 0 {
		return append(list, r.Path.array(), r.Value)
	}
	for _, sub := range r.Rules {
		list = append(list, sub.array())
	}
	return list
}

func (p Path) array() any {
	if p.Root == Name {
		return string(Name)
	}
	list := []any{string(p.Root)}
	for _, step := range p.Steps {
		if step.IsIndex {
			list = append(list, step.Index)
		} else {
			list = append(list, step.Key)
		}
	}
	return list
}

// compact writes value as JSON in its one canonical spelling: sorted keys, no
// spaces, no escapes that need not be.
func compact(value any) (json.RawMessage, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}
