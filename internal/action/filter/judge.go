package filter

import (
	"fmt"
	"strings"

	"github.com/expr-lang/expr/vm"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Node is what is known of a node.
type Node struct {
	Name    fleet.Certname
	Facts   map[string]any    // by path, as in Needs; what is not there, or nil, the node does not have
	Classes []string          // of its last catalog, in any case
	Modules map[string]string // versions by name
	Data    map[Query]Answer  // what it has answered so far
}

// Answer is what a node said to a question.
type Answer struct {
	Fields  map[string]any // by name, as in Sources; what is not there does not apply
	Problem string         // why it could not answer; empty: it could
}

// Truth is whether something holds.
type Truth uint8

// The truths.
const (
	No Truth = iota
	Yes
	Unknown // it takes data that is not there yet
)

var truths = [...]string{"no", "yes", "unknown"}

func (t Truth) String() string { return truths[t] }

// MarshalText writes yes, no or unknown.
func (t Truth) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what MarshalText writes. Invalid.
func (t *Truth) UnmarshalText(text []byte) error {
	for i, name := range truths {
		if string(text) == name {
			*t = Truth(i)
			return nil
		}
	}
	return fault.New(fault.Invalid, "%s is not yes, no or unknown", shorten(string(text)))
}

// Judgement is whether a condition holds for a node, and why.
type Judgement struct {
	Holds Truth
	Parts []Part // all must hold; in the order of Filter's fields, an expression by what is between its outer ands
}

// Part is one condition of a filter.
type Part struct {
	Flag  string `json:"flag"` // the field of the Filter, as JSON has it
	Text  string `json:"text"` // the condition
	Holds Truth  `json:"holds"`
	Why   string `json:"why"` // what decides, in plain English
}

// Judge judges a node.
func (c *Condition) Judge(n Node) Judgement {
	j := Judgement{Holds: Yes, Parts: make([]Part, len(c.parts))}
	for i, p := range c.parts {
		may, why := p.rule.judge(&n)
		j.Parts[i] = Part{p.flag, p.text, may.truth(), cut(why, maxWhy)}
		switch j.Parts[i].Holds {
		case No:
			j.Holds = No
		case Unknown:
			if j.Holds == Yes {
				j.Holds = Unknown
			}
		case Yes:
		}
	}
	return j
}

// Bounds of what is said.
const (
	maxWhy     = 600 // characters
	maxReasons = 4
)

// outcomes are the ways in which a rule may come out once all data is there, a bit for each.
type outcomes uint8

const (
	holds outcomes = 1 << iota
	holdsNot
	cannot // it cannot be computed; its negation neither
)

const anyOutcome = holds | holdsNot | cannot

// truth is what is known: a rule that may hold and may not is unknown.
func (o outcomes) truth() Truth {
	switch {
	case o == holds:
		return Yes
	case o&holds == 0:
		return No
	default:
		return Unknown
	}
}

// rule is a condition, taken apart at and, or and not.
type rule interface {
	judge(n *Node) (outcomes, string)
	explain(indent string, b *strings.Builder)
}

type (
	allOf []rule
	oneOf []rule
	notOf struct{ rule rule }
)

// leaf is what is computed at once.
type leaf struct {
	operands []operand
	program  *vm.Program // nil: the one operand is the result
	words    string
}

func (a allOf) judge(n *Node) (outcomes, string) {
	result, reasons := holds, reasons{}
	for _, r := range a {
		may, why := r.judge(n)
		result = combine(result, may, both)
		reasons.add(may, why)
	}
	return result, reasons.of(result, holdsNot)
}

func (o oneOf) judge(n *Node) (outcomes, string) {
	result, reasons := holdsNot, reasons{}
	for _, r := range o {
		may, why := r.judge(n)
		result = combine(result, may, either)
		reasons.add(may, why)
	}
	return result, reasons.of(result, holds)
}

func (r notOf) judge(n *Node) (outcomes, string) {
	may, why := r.rule.judge(n)
	result := may & cannot
	if may&holds != 0 {
		result |= holdsNot
	}
	if may&holdsNot != 0 {
		result |= holds
	}
	return result, why
}

// combine is what two rules give together, for each way in which each may come out.
func combine(a, b outcomes, of func(a, b outcomes) outcomes) (all outcomes) {
	for _, x := range [...]outcomes{holds, holdsNot, cannot} {
		for _, y := range [...]outcomes{holds, holdsNot, cannot} {
			if a&x != 0 && b&y != 0 {
				all |= of(x, y)
			}
		}
	}
	return all
}

func both(a, b outcomes) outcomes {
	switch {
	case a == holdsNot || b == holdsNot:
		return holdsNot
	case a == cannot || b == cannot:
		return cannot
	default:
		return holds
	}
}

func either(a, b outcomes) outcomes {
	switch {
	case a == holds || b == holds:
		return holds
	case a == cannot || b == cannot:
		return cannot
	default:
		return holdsNot
	}
}

// reasons are those of the parts of a rule, with the outcomes of each.
type reasons []struct {
	may outcomes
	why string
}

func (r *reasons) add(may outcomes, why string) {
	*r = append(*r, struct {
		may outcomes
		why string
	}{may, why})
}

// of are the reasons of a result: one part decides if it has the deciding outcome; else all parts do that are like the result.
func (r reasons) of(result, deciding outcomes) string {
	var found, all []string
	for _, one := range r {
		if result == deciding && one.may == deciding {
			return one.why
		}
		if all = append(all, one.why); one.may.truth() == result.truth() {
			found = append(found, one.why)
		}
	}
	if len(found) > 0 {
		return list(found)
	}
	return list(all)
}

// list joins reasons, each once, not all of many.
func list(found []string) string {
	seen := map[string]bool{}
	var kept []string
	for _, why := range found {
		if !seen[why] {
			seen[why] = true
			kept = append(kept, why)
		}
	}
	if more := len(kept) - maxReasons; more > 0 {
		kept = append(kept[:maxReasons], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(kept, "; ")
}

func (l *leaf) judge(n *Node) (outcomes, string) {
	scope := make(map[string]any, len(l.operands))
	var all, missing, problems, absent []string
	for _, o := range l.operands {
		r := o.read(n)
		all = append(all, r.why)
		switch r.state {
		case pending:
			missing = append(missing, r.why)
		case failing:
			problems = append(problems, r.why)
		case known:
			scope[o.slot] = r.value
			if r.value == nil {
				absent = append(absent, r.why)
			}
		}
	}
	switch {
	case len(problems) > 0:
		return cannot, list(problems)
	case len(missing) > 0:
		return anyOutcome, list(missing)
	}
	result, err := l.compute(scope)
	yes, is := result.(bool)
	switch {
	case (err != nil || !is) && len(absent) > 0:
		return cannot, "it cannot be computed: " + list(absent)
	case err != nil:
		return cannot, "it cannot be computed: " + list(append(all, reasonOf(err)))
	case !is:
		return cannot, "it cannot be computed: " + list(append(all, "the result is neither true nor false"))
	case len(all) == 0:
		all = []string{"it is the same for every node"}
	}
	if yes {
		return holds, list(all)
	}
	return holdsNot, list(all)
}

func (l *leaf) compute(scope map[string]any) (any, error) {
	if l.program == nil {
		return scope[l.operands[0].slot], nil
	}
	return vm.Run(l.program, scope)
}

// reasonOf is the first line of an error of the language, without its place, in plain English.
func reasonOf(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if at := strings.LastIndex(text, " ("); at > 0 {
		text = text[:at]
	}
	if strings.HasPrefix(text, "interface conversion") {
		return "it takes a text there"
	}
	return cut(kinds.Replace(text), maxShown)
}
