package classify

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Asking for one group's nodes finds what classifying them finds.
func TestGateAgreesWithClassify(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var described []group
		names := []string{RootName}
		for i := range rapid.IntRange(1, 8).Draw(rt, "groups") {
			name := fmt.Sprint("g", i)
			d := group{
				name: name, parent: rapid.SampledFrom(names).Draw(rt, "parent"),
				rule: rapid.SampledFrom([]string{
					"", `name ~ "."`, `facts.os.family = "Debian"`, `facts.processors.models[1] != "Atom"`, `facts.os != "x"`,
				}).Draw(rt, "rule"),
			}
			if rapid.IntRange(0, 3).Draw(rt, "pin") == 0 {
				d.pin = "web-1.example.test"
			}
			described, names = append(described, d), append(names, name)
		}
		groups := build(t, described...)
		for i := range groups[1:] {
			if rapid.IntRange(0, 9).Draw(rt, "broken") == 0 {
				groups[i+1].Defect = "broken"
			}
		}
		tree, node := NewTree(append(groups, Group{ID: idOf("lost"), Name: "lost", Parent: idOf("gone"), Rule: rootRule()})), sampleNode(t)
		r := tree.Classify(node)
		for _, g := range append(groups, Group{ID: idOf("lost")}) {
			gate := tree.Gate(g.ID)
			part, err := NewPartNode(node.Name, partsOf(node, gate.Paths(Fact)), nil)
			if err != nil {
				rt.Fatal(err)
			}
			want := slices.Contains(r.Groups, g.ID)
			for _, n := range []Node{node, part} {
				if got, pinned := gate.Admits(n); got != want || pinned && !g.pins(node) || got && !gate.Open() {
					rt.Fatalf("%s: member %t, pinned %t, want %t", g.Name, got, pinned, want)
				}
			}
		}
	})
}

// partsOf is what a store hands out: the leaves at the paths.
func partsOf(node Node, paths []Path) map[string]any {
	parts := map[string]any{}
	for _, path := range paths {
		switch value, ok := node.value(path); value.(type) {
		case map[string]any, []any:
		default:
			if ok {
				parts[path.String()] = value
			}
		}
	}
	return parts
}

func TestGateTellsWhatItLooksAt(t *testing.T) {
	t.Parallel()
	groups := build(t,
		group{name: "a", rule: `facts.os.family = "Debian" and trusted.extensions.pp_role = "web"`},
		group{name: "b", parent: "a", rule: `facts.a[0] > 1 or facts.os.family = "x" or name = "y"`},
		group{name: "c", rule: `facts.other = "1"`},
		group{name: "bare", parent: "b"},
	)
	gate := NewTree(groups).Gate(idOf("b"))
	got := fmt.Sprint(gate.Paths(Fact), gate.Paths(Trusted), NewTree(groups).Gate(idOf("bare")).Open())
	if diff := cmp.Diff(`[facts.a[0] facts.os.family] [trusted.extensions.pp_role] false`, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func benchNode(tb testing.TB, i int) json.RawMessage {
	tb.Helper()
	values := map[string]any{"os": map[string]any{"family": []string{"Debian", "RedHat"}[i%2]}, "cores": i % 64, "number": i % 200}
	for n := range 300 {
		values[fmt.Sprintf("fact_%03d", n)] = map[string]any{"value": fmt.Sprint(n, "-", i)}
	}
	text, err := json.Marshal(values)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

func benchTree(tb testing.TB, count int) *Tree {
	tb.Helper()
	var described []group
	for i := range count {
		described = append(described, group{
			name: fmt.Sprint("g", i), parent: []string{"", fmt.Sprint("g", i/4)}[min(i, 1)*(i%2)],
			rule:    fmt.Sprintf(`facts.os.family = "Debian" and (facts.number >= %d or name ~ '^web-%d\.')`, i%50, i),
			classes: fmt.Sprintf(`{"profile::p%d":{"size":%d}}`, i, i),
		})
	}
	return NewTree(build(tb, described...))
}

// BenchmarkClassify is one node with 300 facts in 200 groups, from the bytes of its facts.
func BenchmarkClassify(b *testing.B) {
	tree, facts := benchTree(b, 200), benchNode(b, 198)
	b.ReportAllocs()
	for b.Loop() {
		node, err := NewNode("web-1.example.test", facts, nil)
		if err != nil {
			b.Fatal(err)
		}
		if r := tree.Classify(node); len(r.Groups) < 200 || len(r.Conflicts) > 0 {
			b.Fatal(len(r.Groups), r.Conflicts)
		}
	}
}
