package filter_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/action/filter"
	"github.com/tutti-project/tutti/internal/fault"
)

// The naive evaluator of this file shares nothing with the package: trees are drawn, printed as text and evaluated here for every answer that nodes could
// give. A result is true, false, or broken, which is how a leaf ends that cannot be computed.

type result int

const (
	isFalse result = iota
	isTrue
	isBroken
)

// tree is a condition that is drawn.
type tree struct {
	kind string // and, or, not, leaf
	kids []*tree
	leaf drawn
}

// drawn is a leaf: its text, and its result for a node and its answers.
type drawn struct {
	text    string
	answers []filter.Answer // that the node could give to the query; none: it asks nothing
	query   filter.Query
	result  func(n filter.Node) result
}

// small is what a naive node has.
type small struct {
	facts   map[string]any
	classes []string
	modules map[string]string
}

func truthOf(b bool) result {
	if b {
		return isTrue
	}
	return isFalse
}

func drawLeaf(t *rapid.T, s small, number *int) drawn {
	path := rapid.SampledFrom([]string{"a", "b", "a.b", "gone"}).Draw(t, "path")
	value, there := s.facts[path]
	wanted := rapid.IntRange(0, 2).Draw(t, "wanted")
	most := 9
	if *number == maxAsking {
		most = 7 // no more that ask: every way in which a node may answer is tried
	}
	switch rapid.IntRange(0, most).Draw(t, "leaf") {
	case 0:
		return drawn{text: fmt.Sprintf(`fact(%q) == %d`, path, wanted), result: func(filter.Node) result { return truthOf(there && value == float64(wanted)) }}
	case 1:
		return drawn{
			text: fmt.Sprintf(`fact(%q) != "t%d"`, path, wanted), result: func(filter.Node) result { return truthOf(!there || value != fmt.Sprintf("t%d", wanted)) },
		}
	case 2:
		return drawn{text: fmt.Sprintf(`facts.%s > %d`, path, wanted), result: func(filter.Node) result {
			n, isNumber := value.(float64)
			if !isNumber {
				return isBroken
			}
			return truthOf(n > float64(wanted))
		}}
	case 3:
		return drawn{text: fmt.Sprintf(`fact(%q) matches "^t[%d-9]$"`, path, wanted), result: func(filter.Node) result {
			text, isText := value.(string)
			if there && !isText {
				return isBroken
			}
			return truthOf(isText && text >= fmt.Sprintf("t%d", wanted))
		}}
	case 4:
		return drawn{text: fmt.Sprintf(`with("%s=t%d")`, path, wanted), result: func(filter.Node) result { return truthOf(value == fmt.Sprintf("t%d", wanted)) }}
	case 5:
		name := rapid.SampledFrom([]string{"c1", "c2"}).Draw(t, "class")
		return drawn{text: fmt.Sprintf(`class(%q)`, name), result: func(filter.Node) result { return truthOf(strings.Contains(strings.Join(s.classes, " "), name)) }}
	case 6:
		name := rapid.SampledFrom([]string{"m1", "m2"}).Draw(t, "module")
		return drawn{text: fmt.Sprintf(`module("/%s/")`, name), result: func(filter.Node) result { _, has := s.modules[name]; return truthOf(has) }}
	case 7:
		return drawn{text: fmt.Sprintf(`fact(%q)`, path), result: func(filter.Node) result {
			b, isBool := value.(bool)
			if !isBool {
				return isBroken
			}
			return truthOf(b)
		}}
	default:
		return drawData(t, number, wanted)
	}
}

// drawData is a leaf that asks the node something that no other leaf asks, and may have each of the results.
func drawData(t *rapid.T, number *int, wanted int) drawn {
	*number++
	q := filter.Query{Source: "file", Query: fmt.Sprintf("/%d", *number)}
	with := func(field string, values ...any) (answers []filter.Answer) {
		for _, v := range values {
			answers = append(answers, filter.Answer{Fields: map[string]any{field: v}})
		}
		return append(answers, filter.Answer{}, filter.Answer{Problem: "no"})
	}
	field := func(n filter.Node, name string) (any, bool) {
		a := n.Data[q]
		return a.Fields[name], a.Problem != ""
	}
	if rapid.Bool().Draw(t, "boolean") {
		return drawn{text: fmt.Sprintf(`file("/%d").present`, *number), query: q, answers: with("present", true, false), result: func(n filter.Node) result {
			value, problem := field(n, "present")
			if problem || value == nil {
				return isBroken
			}
			return truthOf(value == true)
		}}
	}
	operator := rapid.SampledFrom([]string{"==", "!=", "<"}).Draw(t, "operator")
	return drawn{
		text: fmt.Sprintf(`file("/%d").size %s %d`, *number, operator, wanted), query: q, answers: with("size", -1.0, float64(wanted), 5.0, "odd"),
		result: func(n filter.Node) result {
			value, problem := field(n, "size")
			_, odd := value.(string)
			switch {
			case problem, odd:
				return isBroken
			case value == nil && operator == "<":
				return isBroken
			case operator == "<":
				return truthOf(value.(float64) < float64(wanted))
			default:
				return truthOf((value == float64(wanted)) == (operator == "=="))
			}
		},
	}
}

func drawTree(t *rapid.T, s small, depth int, number *int) *tree {
	kind := "leaf"
	if depth > 0 {
		kind = rapid.SampledFrom([]string{"and", "or", "not", "leaf"}).Draw(t, "kind")
	}
	made := &tree{kind: kind}
	switch kind {
	case "leaf":
		made.leaf = drawLeaf(t, s, number)
	case "not":
		made.kids = []*tree{drawTree(t, s, depth-1, number)}
	default:
		for range rapid.IntRange(2, 3).Draw(t, "kids") {
			made.kids = append(made.kids, drawTree(t, s, depth-1, number))
		}
	}
	return made
}

// print writes the tree, with as few parentheses as the language needs, or more.
func (x *tree) print(t *rapid.T, parent string) string {
	words := map[string][]string{"and": {" and ", "&&"}, "or": {" or ", " || "}, "not": {"not ", "!"}}
	text := x.leaf.text
	switch x.kind {
	case "leaf":
	case "not":
		text = rapid.SampledFrom(words["not"]).Draw(t, "word") + x.kids[0].print(t, "not")
	default:
		var kids []string
		for _, k := range x.kids {
			kids = append(kids, k.print(t, x.kind))
		}
		text = strings.Join(kids, rapid.SampledFrom(words[x.kind]).Draw(t, "word"))
	}
	needed := parent == "not" && (x.kind == "and" || x.kind == "or") || parent == "and" && x.kind == "or"
	if needed || rapid.IntRange(0, 4).Draw(t, "more") == 0 {
		return "( " + text + ")"
	}
	return text
}

func (x *tree) eval(n filter.Node) result {
	switch x.kind {
	case "leaf":
		return x.leaf.result(n)
	case "not":
		switch x.kids[0].eval(n) {
		case isTrue:
			return isFalse
		case isFalse:
			return isTrue
		case isBroken:
			return isBroken
		}
	}
	decides, otherwise := isFalse, isTrue
	if x.kind == "or" {
		decides, otherwise = isTrue, isFalse
	}
	broken := false
	for _, k := range x.kids {
		r := k.eval(n)
		if r == decides {
			return decides
		}
		broken = broken || r == isBroken
	}
	if broken {
		return isBroken
	}
	return otherwise
}

// asking are the leaves that ask the node.
func (x *tree) asking() (found []drawn) {
	if x.kind == "leaf" && len(x.leaf.answers) > 0 {
		return []drawn{x.leaf}
	}
	for _, k := range x.kids {
		found = append(found, k.asking()...)
	}
	return found
}

// each calls f with every way in which the node could answer.
func each(n filter.Node, leaves []drawn, f func(filter.Node)) {
	if len(leaves) == 0 {
		f(n)
		return
	}
	for _, a := range leaves[0].answers {
		n.Data[leaves[0].query] = a
		each(n, leaves[1:], f)
	}
	delete(n.Data, leaves[0].query)
}

// maxAsking is how many leaves of a tree ask at most: it keeps the number of ways small.
const maxAsking = 4

func TestJudgeIsWhatANaiveEvaluatorSays(t *testing.T) {
	t.Parallel()
	decided, unknown := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := small{facts: map[string]any{}, modules: map[string]string{}}
		for _, path := range []string{"a", "b", "a.b"} {
			if v := rapid.SampledFrom([]any{nil, 0.0, 1.0, "t1", "t2", true, false}).Draw(t, "value"); v != nil {
				s.facts[path] = v
			}
		}
		s.classes = rapid.SliceOfDistinct(rapid.SampledFrom([]string{"c1", "c2", "c3"}), rapid.ID).Draw(t, "classes")
		for _, m := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"m1", "m2"}), rapid.ID).Draw(t, "modules") {
			s.modules[m] = "1"
		}
		number := 0
		x := drawTree(t, s, 3, &number)
		leaves := x.asking()
		text := x.print(t, "")
		c, err := filter.Parse(filter.Filter{Select: text})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		node := filter.Node{Name: "n", Facts: s.facts, Classes: s.classes, Modules: s.modules, Data: map[filter.Query]filter.Answer{}}
		before := c.Judge(node)
		ways := map[filter.Truth]bool{}
		each(node, leaves, func(n filter.Node) {
			want := filter.No
			if x.eval(n) == isTrue {
				want = filter.Yes
			}
			ways[want] = true
			got := c.Judge(n)
			if got.Holds != want {
				t.Fatalf("%s\nnode %+v\ngot %s, want %s: %+v", text, n, got.Holds, want, got.Parts)
			}
			if before.Holds != filter.Unknown && before.Holds != want {
				t.Fatalf("%s\nnode %+v\nwithout data it was %s, with it %s", text, n, before.Holds, want)
			}
		})
		// Every question stands in one leaf, so that unknown means that it may end either way.
		if (before.Holds == filter.Unknown) != (len(ways) == 2) {
			t.Fatalf("%s\ngot %s without data, and with it %v", text, before.Holds, ways)
		}
		if before.Holds == filter.Unknown {
			unknown++
		} else if len(leaves) > 0 {
			decided++
		}
	})
	if unknown == 0 || decided == 0 {
		t.Errorf("%d were unknown, %d were decided without data: nothing was looked at", unknown, decided)
	}
}

// sound judges a node without data and with several answers: what was decided stays.
func sound(t *testing.T, c *filter.Condition) {
	t.Helper()
	before := c.Judge(web)
	if filter.Explain(c) == "" {
		t.Fatal("nothing is explained")
	}
	for _, p := range before.Parts {
		if p.Why == "" || p.Text == "" {
			t.Fatalf("no reason: %+v", p)
		}
	}
	for _, value := range []any{nil, true, false, 0.0, 1e9, "", "9f"} {
		node := web
		node.Data = map[filter.Query]filter.Answer{}
		for _, q := range c.Needs().Data {
			fields := map[string]any{}
			for _, s := range filter.Sources() {
				for _, f := range s.Fields {
					fields[f.Name] = value
				}
			}
			node.Data[q] = filter.Answer{Fields: fields}
		}
		after := c.Judge(node)
		if after.Holds == filter.Unknown || before.Holds != filter.Unknown && before.Holds != after.Holds {
			t.Fatalf("without data %s, with it %s", before.Holds, after.Holds)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("os.family=/^Deb/", "role::web", "service", "/^web/", "a=1 ntp", `fact("os.family") == "Debian" and class("role::web") and not module("disk")`)
	f.Add("mounts[0].size=>5", "/x/", "/y/", "web1", "x", `not file("/etc/hosts").size > 5 or puppet()?.enabled`)
	f.Add("a!~b", "::A", "a.b", "/a|b/", "/x/ y", `semver(fact("a"), ">= 1, < 2") && include(facts.a[0]["b"], 3) || any(classes, # in agents)`)
	f.Add("a<1", "a", "a", "a", "a", `len(name) > 2 ? fact("a") ?? true : all(fact("b"), .c matches "d")`)
	f.Add("a=<1", "a", "a", "a", "a", `resource("file[x]").managed == true and process("^n").count * 2 >= 3.5 and with("a=1")`)
	f.Fuzz(func(t *testing.T, fact, class, module, name, word, text string) {
		for _, one := range []filter.Filter{
			{Facts: []string{fact}},
			{Classes: []string{class}},
			{Modules: []string{module}},
			{Names: []string{name}},
			{Words: []string{word}},
			{Select: text},
			{Facts: []string{fact}, Classes: []string{class}, Modules: []string{module}, Names: []string{name}, Words: []string{word}, Select: text},
		} {
			c, err := filter.Parse(one)
			if err == nil {
				sound(t, c)
			} else if !fault.Is(err, fault.Invalid) || fault.Detail(err) == "" {
				t.Fatalf("%+v: %v", one, err)
			}
		}
	})
}
