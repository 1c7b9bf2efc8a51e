package filter

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/types"
)

// operand is what a leaf reads of a node: a value, or something that is true or false by itself.
type operand struct {
	slot  string     // how it is written in an expression
	words string     // in plain English: a noun, or a sentence if it is true or false
	gives types.Type // Any: nothing is known before it is read
	field *Field     // of data
	read  func(n *Node) reading
}

// reading is what was read of a node.
type reading struct {
	value any
	why   string
	state state
}

// state is how a reading went.
type state uint8

const (
	known   state = iota
	pending       // it must be asked of the node
	failing       // the node was asked and could not answer
)

// The readers below note what they need.

func (r *reader) fact(text string) (operand, *mistake) {
	t, wrong := parseFact(text)
	if wrong != nil {
		return operand{}, wrong
	}
	r.facts[t.path] = true
	return operand{slot: with(text), words: t.words(), gives: types.Bool, read: func(n *Node) reading {
		value := n.Facts[t.path]
		return reading{value: t.holds(value), why: factIs(t.path, value)}
	}}, nil
}

func (r *reader) class(text string) (operand, *mistake) {
	p, wrong := parseClass(text)
	if wrong != nil {
		return operand{}, wrong
	}
	r.needs.Classes = true
	words := "the class " + p.text + " is in its catalog"
	if p.re != nil {
		words = "a class in its catalog matches " + p.text
	}
	return operand{slot: "class(" + quote(text) + ")", words: words, gives: types.Bool, read: func(n *Node) reading {
		found, why := classLike(n, p)
		return reading{value: found, why: why}
	}}, nil
}

func (r *reader) module(text string) (operand, *mistake) {
	p, wrong := parseModule(text)
	if wrong != nil {
		return operand{}, wrong
	}
	r.needs.Modules = true
	words := "it has the module " + p.text
	if p.re != nil {
		words = "it has a module that matches " + p.text
	}
	return operand{slot: "module(" + quote(text) + ")", words: words, gives: types.Bool, read: func(n *Node) reading {
		found, why := moduleLike(n, p)
		return reading{value: found, why: why}
	}}, nil
}

// word is a fact, if there is an operator, else a class.
func (r *reader) word(text string) (operand, *mistake) {
	if isFact(text) {
		return r.fact(text)
	}
	return r.class(text)
}

// with is a word of an expression: a fact, a class or a module.
func (r *reader) with(text string) (operand, *mistake) {
	if isFact(text) {
		return r.fact(text)
	}
	p, wrong := parseClass(text)
	if wrong != nil {
		return operand{}, wrong
	}
	module := pattern{text, p.re}
	r.needs.Classes, r.needs.Modules = true, true
	words := p.text + " is a class in its catalog or a module that it has"
	if p.re != nil {
		words = "a class in its catalog or a module that it has matches " + p.text
	}
	return operand{slot: with(text), words: words, gives: types.Bool, read: func(n *Node) reading {
		found, why := classLike(n, p)
		if found {
			return reading{value: true, why: why}
		}
		found, also := moduleLike(n, module)
		if found {
			return reading{value: true, why: also}
		}
		return reading{value: false, why: why + " and " + also}
	}}, nil
}

// isFact says of a word whether it is a fact.
func isFact(word string) bool {
	return !strings.HasPrefix(word, "/") && strings.ContainsAny(word, "=<>!~")
}

func with(text string) string { return "with(" + quote(text) + ")" }

// quote writes a text as an expression has it.
func quote(text string) string { return strconv.Quote(text) }

// namedLike is one of several names.
func namedLike(patterns []pattern) operand {
	texts := make([]string, len(patterns))
	for i, p := range patterns {
		texts[i] = "is " + p.text
		if p.re != nil {
			texts[i] = "matches " + p.text
		}
	}
	return operand{words: "its name " + strings.Join(texts, " or "), gives: types.Bool, read: func(n *Node) reading {
		found := slices.ContainsFunc(patterns, func(p pattern) bool { return p.matches(string(n.Name)) })
		return reading{value: found, why: "its name is " + string(n.Name)}
	}}
}

// value is a fact as an expression reads it.
func (r *reader) value(path string) operand {
	r.facts[path] = true
	return operand{slot: "fact(" + quote(path) + ")", words: "the fact " + path, gives: types.Any, read: func(n *Node) reading {
		value := plain(n.Facts[path])
		return reading{value: value, why: factIs(path, value)}
	}}
}

// data is a field of an answer of the node.
func (r *reader) answer(q Query, f *Field) operand {
	r.data[q] = true
	slot := q.String() + "." + f.Name
	return operand{slot: slot, words: slot, gives: types.Any, field: f, read: func(n *Node) reading {
		answer, asked := n.Data[q]
		switch {
		case !asked:
			return reading{state: pending, why: q.String() + " must be asked of the node"}
		case answer.Problem != "":
			return reading{state: failing, why: "the node could not answer " + q.String() + ": " + cut(answer.Problem, 200)}
		}
		value := plain(answer.Fields[f.Name])
		if !f.Type.Has(value) {
			return reading{state: failing, why: fmt.Sprintf("the node answered %s with %s, which is no %s", slot, show(value), f.Type)}
		}
		if value == nil {
			return reading{why: slot + " is not there"}
		}
		return reading{value: value, why: slot + " is " + show(value)}
	}}
}

// Has says whether a value is of the type, or not there.
func (t Type) Has(value any) bool {
	switch value.(type) {
	case nil:
		return true
	case string:
		return t == Text
	case bool:
		return t == Boolean
	case float64, float32, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return t == Number
	default:
		return false
	}
}

// The variables of an expression.

func nodeName() operand {
	return operand{slot: "name", words: "its name", gives: types.String, read: func(n *Node) reading {
		return reading{value: string(n.Name), why: "its name is " + string(n.Name)}
	}}
}

func (r *reader) classList() operand {
	r.needs.Classes = true
	return operand{slot: "classes", words: "its classes", gives: types.Array(types.String), read: func(n *Node) reading {
		list := make([]any, len(n.Classes))
		for i, name := range n.Classes {
			list[i] = className(name)
		}
		return reading{value: list, why: fmt.Sprintf("the number of classes in its catalog is %d", len(list))}
	}}
}

func (r *reader) moduleList() operand {
	r.needs.Modules = true
	return operand{slot: "agents", words: "its modules", gives: types.Array(types.String), read: func(n *Node) reading {
		list := make([]any, 0, len(n.Modules))
		for _, name := range slices.Sorted(maps.Keys(n.Modules)) {
			list = append(list, name)
		}
		return reading{value: list, why: fmt.Sprintf("the number of its modules is %d", len(list))}
	}}
}

// factIs says what a fact is.
func factIs(path string, value any) string {
	if value == nil {
		return "it has no fact " + path
	}
	return path + " is " + show(value)
}

func classLike(n *Node, p pattern) (found bool, why string) {
	for _, name := range n.Classes {
		name = className(name)
		switch {
		case !p.matches(name):
		case p.re == nil:
			return true, "the class " + name + " is in its catalog"
		default:
			return true, "the class " + name + " in its catalog matches " + p.text
		}
	}
	if p.re == nil {
		return false, "the class " + p.text + " is not in its catalog"
	}
	return false, "no class in its catalog matches " + p.text
}

func moduleLike(n *Node, p pattern) (found bool, why string) {
	if p.re == nil {
		version, has := n.Modules[p.text]
		if !has {
			return false, "it does not have the module " + p.text
		}
		return true, strings.TrimSpace("it has the module " + p.text + " " + version)
	}
	for _, name := range slices.Sorted(maps.Keys(n.Modules)) {
		if p.matches(name) {
			return true, "it has the module " + name + ", which matches " + p.text
		}
	}
	return false, "no module that it has matches " + p.text
}
