package diff

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/api"
)

var testSecret = []byte(strings.Repeat("k", 32))

func newGrouper(tb rapid.TB, c GrouperConfig) *Grouper {
	c.Secret = testSecret
	g, err := NewGrouper(c)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

func nodeName(n uint32) string { return fmt.Sprintf("web-%d.example.org", n) }

func fleetOf(tb rapid.TB, g *Grouper) api.FleetDifference {
	f, err := g.Fleet(1_000_000, nodeName)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// TestGroupsAreTheSameInAnyOrder adds the same differences in two orders, the second
// time from several goroutines, and compares the groups with a naive grouping.
func TestGroupsAreTheSameInAnyOrder(t *testing.T) {
	t.Parallel()
	doc := realCatalog(t, "defines")
	rapid.Check(t, func(t *rapid.T) {
		var kinds []*Difference // what nodes may have
		for range rapid.IntRange(1, 5).Draw(t, "kinds") {
			d := draftOf(t, doc)
			d.mutate()
			kinds = append(kinds, mustCompare(t, doc, d.bytes()))
		}
		nodes := rapid.SliceOfN(rapid.IntRange(0, len(kinds)-1), 1, 200).Draw(t, "nodes")
		one, other := newGrouper(t, GrouperConfig{}), newGrouper(t, GrouperConfig{})
		for n, kind := range nodes {
			one.Add(context.Background(), Node{uint32(n), nodeName(uint32(n))}, kinds[kind])
		}
		var all sync.WaitGroup
		for n, kind := range slices.Backward(nodes) {
			all.Go(func() { other.Add(context.Background(), Node{uint32(n), nodeName(uint32(n))}, kinds[kind]) })
		}
		all.Wait()
		got := fleetOf(t, one)
		if diff := cmp.Diff(got, fleetOf(t, other)); diff != "" {
			t.Fatalf("in order (-) and in another (+):\n%s", diff)
		}
		if diff := cmp.Diff(naiveGroups(kinds, nodes), sizes(got)); diff != "" {
			t.Fatalf("a naive grouping (-) and ours (+):\n%s", diff)
		}
		checkOrder(t, got)
	})
}

// naiveGroups counts the nodes of each change of a resource, by what is in it.
func naiveGroups(kinds []*Difference, nodes []int) []string {
	changes := map[string]map[int]bool{}
	for n, kind := range nodes {
		for _, r := range kinds[kind].resources {
			text := fmt.Sprintf("%s %s %v %v", r.kind, nameOf(r.identity), r.isOrder(), r.files)
			for _, p := range r.parameters {
				if !p.isOrder() || r.isOrder() {
					text += fmt.Sprintf("\n%s %s %s %s", p.name, p.kind, valueOrNone(p.old), valueOrNone(p.new))
				}
			}
			if r.isOrder() {
				text += fmt.Sprint(r.tags)
			}
			if changes[text] == nil {
				changes[text] = map[int]bool{}
			}
			changes[text][n] = true
		}
	}
	var out []string
	for text, of := range changes {
		head, _, _ := strings.Cut(text, "[")
		out = append(out, fmt.Sprint(head, " ", len(of)))
	}
	slices.Sort(out)
	return out
}

func valueOrNone(v *value) string {
	if v == nil {
		return ""
	}
	return v.canonical()
}

func sizes(f api.FleetDifference) []string {
	var out []string
	for _, g := range f.Groups {
		if g.Type != "" {
			name := map[bool]string{true: "@@"}[g.Exported] + g.Type
			out = append(out, fmt.Sprint(g.Change, " ", name, " ", g.Nodes))
		}
	}
	slices.Sort(out)
	return out
}

// checkOrder checks the order of groups and the sums.
func checkOrder(t *rapid.T, f api.FleetDifference) {
	for i := 1; i < len(f.Groups); i++ {
		a, b := f.Groups[i-1], f.Groups[i]
		if a.OrderOnly && !b.OrderOnly || a.OrderOnly == b.OrderOnly && a.Nodes < b.Nodes {
			t.Fatalf("group %d (%d nodes) comes before group %d (%d nodes)", i-1, a.Nodes, i, b.Nodes)
		}
	}
	if f.Changed+f.Errors+f.Same != f.Nodes || f.OrderOnly > f.Same {
		t.Fatalf("the numbers of nodes do not add up: %+v", f)
	}
}

// What nodes have under their own names is the same change.
func TestANodesOwnNameSplitsNoGroup(t *testing.T) {
	t.Parallel()
	g := newGrouper(t, GrouperConfig{})
	for n := range uint32(20) {
		name := nodeName(n)
		host, _, _ := strings.Cut(name, ".")
		old := catalogOf(fmt.Sprintf(`{"type":"File","title":"/etc/ssl/%s.pem","parameters":{"content":"CN=%s\nhost %s\nold\n"}}`, name, name, host))
		// something else that differs on this node alone
		fresh := strings.Replace(old, "old", "new", 1)
		fresh = strings.Replace(fresh, `]}`, fmt.Sprintf(`,{"type":"Notify","title":"number %d"}]}`, n+1000), 1)
		g.Add(t.Context(), Node{n, name}, compareTexts(t, old, fresh))
	}
	g.AddSame(Node{20, nodeName(20)})
	f := fleetOf(t, g)
	if got := f.Groups[0]; got.Nodes != 20 || got.Title != "/etc/ssl/<node>.pem" || got.Example.Title != "/etc/ssl/web-0.example.org.pem" {
		t.Errorf("got %+v", got)
	}
	if len(f.Groups) != 21 || f.Changed != 20 || f.Same != 1 || len(f.Groups[0].Examples) != exampleNodes {
		t.Errorf("got %d groups, %+v", len(f.Groups), f)
	}
}

func TestErrorsAreGroups(t *testing.T) {
	t.Parallel()
	g := newGrouper(t, GrouperConfig{})
	for n := range uint32(5) {
		g.AddError(Node{n, nodeName(n)}, CompileError{Message: "no such class on node " + nodeName(n), File: "site.pp", Line: 12})
	}
	g.AddError(Node{5, nodeName(5)}, CompileError{Message: "another", File: "site.pp", Line: 13})
	for n := uint32(6); n < 20; n++ {
		g.Add(t.Context(), Node{n, nodeName(n)}, compareTexts(t, catalogOf(``), catalogOf(`{"type":"User","title":"a"}`)))
	}
	f := fleetOf(t, g)
	var got []string
	for _, group := range f.Groups {
		got = append(got, fmt.Sprintf("%s %d %s%s", group.Change, group.Nodes, group.Message, group.Title))
	}
	want := []string{"error 5 no such class on node <node>", "error 1 another", "added 14 a"}
	if diff := cmp.Diff(want, got); diff != "" || f.Errors != 6 || f.Changed != 14 {
		t.Errorf("%+v\n%s", f, diff)
	}
}

// The table of groups and their examples are bounded; nothing vanishes without a number.
func TestGroupsAreBounded(t *testing.T) {
	t.Parallel()
	g := newGrouper(t, GrouperConfig{MaxGroups: 100, ExampleBytes: 10_000})
	const nodes = 300
	for n := range uint32(nodes) {
		text := strings.Repeat("x", 100)
		g.Add(t.Context(), Node{n, nodeName(n)}, compareTexts(t, catalogOf(``),
			catalogOf(fmt.Sprintf(`{"type":"A","title":"a"},{"type":"B","title":"own %d","parameters":{"p":%q}}`, n*7, text))))
	}
	f := fleetOf(t, g)
	if len(f.Groups) != 100 || f.Groups[0].Nodes != nodes || f.Groups[0].Example == nil || f.NotListed != nodes+1-100 {
		t.Errorf("%d groups, the first has %d nodes, %d not listed", len(f.Groups), f.Groups[0].Nodes, f.NotListed)
	}
	held := 0
	for _, group := range f.Groups {
		if group.Example != nil {
			text, _ := json.Marshal(group.Example)
			held += len(text)
		}
	}
	if held > 10_000 {
		t.Errorf("examples take %d bytes", held)
	}
}

func TestNodeSet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s nodeSet
		want := map[uint32]bool{}
		for _, n := range rapid.SliceOf(rapid.Uint32Range(0, 500)).Draw(t, "numbers") {
			if s.add(n) == want[n] {
				t.Fatalf("add(%d) does not say whether it is new", n)
			}
			want[n] = true
		}
		if got := slices.Collect(s.all()); !slices.Equal(got, slices.Sorted(maps.Keys(want))) || s.size != len(want) {
			t.Fatalf("got %v of %d", got, s.size)
		}
	})
}

func TestReplaceWord(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"web-1": "<host>", "web-1.example.org": "<node>", "a web-1, b": "a <host>, b", "web-10": "web-10", "myweb-1": "myweb-1",
		"web-1.other.org": "<host>.other.org", "/x/web-1/web-1": "/x/<host>/<host>", "web-11web-1": "web-11web-1", "éweb-1": "éweb-1",
	} {
		if got := namesOf("web-1.example.org").pattern(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
