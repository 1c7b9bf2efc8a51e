package compile

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const testEngine = "made-up 1"

// readSet is what compiling o gives when these things are read.
func readSet(o Order, r Reads) *InputSet {
	return newInputSet(o, Outcome{Reads: &r, Engine: testEngine}, Sources{})
}

func now(o Order) Now { return Now{Engine: testEngine, Order: o} }

func TestHoldsNamesWhatChanged(t *testing.T) {
	t.Parallel()
	order := func(facts string) Order {
		return Order{Facts: json.RawMessage(facts), Trusted: json.RawMessage(`{"certname":"a"}`), Classes: json.RawMessage(`{"x":{}}`)}
	}
	was := order(`{"os":{"family":"Debian","list":[1,2]},"a/b":{"~":1},"up":1,"wide":1.0}`)
	reads := Reads{
		Values:  []string{"/facts/os/family", "/facts/a~1b/~0", "/facts/gone", "/trusted/certname", "/facts/os/list"},
		Present: []string{"/facts/up", "/facts/os/"},
		Sources: Sources{
			Files: []string{"a.pp"}, Trees: []string{"lib"}, Modules: []string{"m"}, Lists: []string{"d"}, Names: []string{"n"}, Anywhere: []string{"w"},
		},
	}
	set := readSet(was, reads)
	tests := []struct {
		name   string
		change func(n *Now)
		why    string
	}{
		{"nothing", func(*Now) {}, ""},
		{"another engine", func(n *Now) { n.Engine = "made-up 2" }, "the compiler is another one"},
		{"no engine", func(n *Now) { n.Engine = "" }, "the compiler is another one"},
		{"what is not read", func(n *Now) {
			n.Order = order(`{"up":2,"wide":3,"os":{"family":"Debian","list":[1,2]},"a/b":{"x":1,"~":1}}`)
		}, ""},
		{"names in another order", func(n *Now) {
			n.Order = order(`{"os":{"list":[1,2],"family":"Debian"},"a/b":{"~":1},"up":1}`)
		}, "facts.os. changed"},
		{"a leaf", func(n *Now) { n.Order = order(`{"os":{"family":"RedHat","list":[1,2]},"a/b":{"~":1},"up":1}`) }, "facts.os.family changed"},
		{"an escaped name", func(n *Now) { n.Order = order(`{"os":{"family":"Debian","list":[1,2]},"a/b":{"~":2},"up":1}`) }, "facts.a~1b.~0 changed"},
		{"what was not there", func(n *Now) {
			n.Order = order(`{"os":{"family":"Debian","list":[1,2]},"a/b":{"~":1},"up":1,"gone":null}`)
		}, "facts.gone changed"},
		{"presence", func(n *Now) { n.Order = order(`{"os":{"family":"Debian","list":[1,2]},"a/b":{"~":1}}`) }, "facts.up changed"},
		{"names of members", func(n *Now) { n.Order = order(`{"os":{"family":"Debian","list":[1,2],"x":1},"a/b":{"~":1},"up":1}`) }, "facts.os. changed"},
		{"trusted data", func(n *Now) { n.Order.Trusted = json.RawMessage(`{"certname":"b"}`) }, "trusted.certname changed"},
		{"classification", func(n *Now) { n.Order.Classes = json.RawMessage(`{"y":{}}`) }, "the classification changed"},
		{"empty classification", func(n *Now) { n.Order.Data = json.RawMessage(` {} `) }, ""},
		{"no version to compare", func(n *Now) { n.Changes = &Changes{All: true} }, "the versions cannot be compared, or another engine compiles"},
		{"other files", func(n *Now) {
			n.Changes = &Changes{Files: map[string]bool{"b.pp": true}, Trees: map[string]bool{".": true}}
		}, ""},
		{"a file", func(n *Now) { n.Changes = &Changes{Files: map[string]bool{"a.pp": true}} }, "file a.pp changed"},
		{"a tree", func(n *Now) { n.Changes = &Changes{Trees: map[string]bool{"lib": true}} }, "content of lib changed"},
		{"a list", func(n *Now) { n.Changes = &Changes{Lists: map[string]bool{"d": true}} }, "files in d changed"},
		{"names", func(n *Now) { n.Changes = &Changes{Names: map[string]bool{"n": true}} }, "files below n changed"},
		{"a module", func(n *Now) { n.Changes = &Changes{Modules: map[string]bool{"m": true}} }, "module m changed"},
		{"anywhere", func(n *Now) { n.Changes = &Changes{Anywhere: map[string]bool{"w": true}} }, "modules with w changed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := now(was)
			tt.change(&n)
			if ok, why := Holds(set, n); why != tt.why || ok != (tt.why == "") {
				t.Errorf("got %v, %q, want %q", ok, why, tt.why)
			}
		})
	}
}

func TestHoldsComparesAnswers(t *testing.T) {
	t.Parallel()
	order := Order{Facts: json.RawMessage(`{}`)}
	set := readSet(order, Reads{})
	set.Asked = []Question{{Kind: AskedQuery, Text: "nodes {}", Rows: 1, Answer: "d1"}}
	n := now(order)
	if ok, _ := Holds(set, n); ok {
		t.Error("it holds though nobody asked again")
	}
	n.Asked = slices.Clone(set.Asked)
	if ok, why := Holds(set, n); !ok {
		t.Errorf("it does not hold with the same answer: %s", why)
	}
	n.Asked[0].Answer = "d2"
	if ok, why := Holds(set, n); ok || why != "the answer to a query changed: nodes {}" {
		t.Errorf("got %v, %q with another answer", ok, why)
	}
}

// someFacts draws facts of a few names, so that changes meet what is read.
func someFacts(t *rapid.T, label string) map[string]any {
	leaf := rapid.OneOf(rapid.Just[any]("x"), rapid.Just[any]("y"), rapid.Just[any](1), rapid.Just[any](nil), rapid.Just[any]([]any{1, "z"}))
	name := rapid.SampledFrom([]string{"a", "b", "c/d", "e~f", "é\""})
	inner := rapid.MapOfN(name, leaf, 0, 3)
	value := rapid.OneOf(leaf, rapid.Map(inner, func(m map[string]any) any { return m }))
	return rapid.MapOfN(name, value, 0, 4).Draw(t, label)
}

// at is what the reference says of a pointer: walked in decoded JSON.
func at(facts map[string]any, path []string) string {
	var value any = facts
	for _, key := range path {
		m, ok := value.(map[string]any)
		if !ok {
			return "absent"
		}
		if value, ok = m[key]; !ok {
			return "absent"
		}
	}
	text, _ := json.Marshal(value)
	return string(text)
}

// A set holds exactly if each value that was read is what it was.
func TestHoldsIsThatEveryReadValueIsTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before, after := someFacts(t, "before"), someFacts(t, "after")
		paths := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c/d", "e~f", "é\""}), 0, 2), 0, 4).Draw(t, "paths")
		escape := map[string]string{"a": "a", "b": "b", "c/d": "c~1d", "e~f": "e~0f", "é\"": "é\""}
		var reads Reads
		want := true
		for _, path := range paths {
			pointer := "/facts"
			for _, key := range path {
				pointer += "/" + escape[key]
			}
			reads.Values = append(reads.Values, pointer)
			want = want && at(before, path) == at(after, path)
		}
		was, _ := json.Marshal(before)
		is, _ := json.Marshal(after)
		set := readSet(Order{Facts: was}, reads)
		if ok, why := Holds(set, now(Order{Facts: is})); ok != want {
			t.Fatalf("holds %v (%s), want %v:\n%s\n%s\n%v", ok, why, want, was, is, reads.Values)
		}
		if ok, why := Holds(set, now(Order{Facts: was})); !ok {
			t.Fatalf("it does not hold for itself: %s", why)
		}
	})
}

// drawSources draws sources of a few paths.
func drawSources(t *rapid.T) Sources {
	path := rapid.StringMatching(`(modules|\.base_modules/0|data)/[ab](/manifests/[xy]\.pp)?`)
	list := func(label string) []string {
		return slices.Compact(slices.Sorted(slices.Values(rapid.SliceOf(path).Draw(t, label))))
	}
	return Sources{Files: list("f"), Lists: list("l"), Names: list("n"), Trees: list("t"), Modules: list("m"), Anywhere: list("a")}
}

func TestSourcesAreTheirGroups(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawSources(t)
		groups := s.Groups()
		var again Sources
		for _, i := range rapid.Permutation(groups).Draw(t, "order") {
			if err := again.AddGroup(i.Text); err != nil {
				t.Fatal(err)
			}
		}
		again.Sort()
		if diff := cmp.Diff(fmt.Sprint(s), fmt.Sprint(again)); diff != "" {
			t.Fatalf("sources (-want +got):\n%s", diff)
		}
		if s.Count() != again.Count() {
			t.Fatalf("%d entries became %d", s.Count(), again.Count())
		}
		if diff := cmp.Diff(groups, again.Groups()); diff != "" {
			t.Fatalf("groups (-want +got):\n%s", diff)
		}
	})
}

func FuzzAddGroup(f *testing.F) {
	f.Add([]byte("f a/b\nt c\n"))
	f.Add([]byte("x a\n"))
	f.Add([]byte("f a"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var s Sources
		if s.AddGroup(text) != nil {
			return
		}
		s.Sort()
		var again Sources
		for _, g := range s.Groups() {
			if err := again.AddGroup(g.Text); err != nil {
				t.Fatal(err)
			}
		}
		again.Sort()
		if s.Count() != again.Count() {
			t.Errorf("%d entries became %d", s.Count(), again.Count())
		}
	})
}
