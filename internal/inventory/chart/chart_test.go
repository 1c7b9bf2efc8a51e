package chart_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/inventory/chart"
)

func edge(source, relationship, target string) inventory.Edge {
	return inventory.Edge{Source: source, Relationship: relationship, Target: target}
}

// app is a catalog in which a class waits for another, and of which a file failed.
func app() chart.Question {
	return chart.Question{
		Resources: []chart.Resource{
			{Name: "File[/a]", State: "failed", File: "app.pp", Line: 3},
			{Name: "Service[a]", State: "skipped"},
			{Name: "File[/w]", State: "skipped"},
			{Name: "Exec[w]", State: "skipped"},
			{Name: "User[ops]", State: "unchanged"},
			{Name: "Exec[lost]", State: "skipped"},
		},
		Edges: []inventory.Edge{
			edge("Stage[main]", "contains", "Class[app]"), edge("Stage[main]", "contains", "Class[web]"), edge("Stage[main]", "contains", "Class[ops]"),
			edge("Class[app]", "contains", "File[/a]"), edge("Class[app]", "contains", "Service[a]"),
			edge("Class[web]", "contains", "File[/w]"), edge("Class[web]", "contains", "Exec[w]"), edge("Class[ops]", "contains", "User[ops]"),
			edge("File[/a]", "required-by", "Service[a]"), edge("Class[app]", "before", "Class[web]"), edge("File[/w]", "notifies", "Exec[w]"),
		},
	}
}

// words is a chart as text: each line as "from kinds to", each box that has none alone.
func words(c chart.Chart) []string {
	var all []string
	tied := map[string]bool{}
	for _, l := range c.Lines {
		all = append(all, l.From+" "+strings.Join(l.Kinds, "+")+" "+l.To)
		tied[l.From], tied[l.To] = true, true
	}
	for _, b := range c.Boxes {
		if !tied[b.Name] {
			all = append(all, b.Name)
		}
	}
	slices.Sort(all)
	return all
}

func TestWhatFailedLeadsByWayOfContainers(t *testing.T) {
	t.Parallel()
	c := chart.Draw(app())
	want := []string{
		"Class[app] before Class[web]", "Class[web] contains Exec[w]", "Class[web] contains File[/w]",
		"Exec[lost]", // nothing says why
		"File[/a] inside Class[app]", "File[/a] required-by Service[a]", "File[/w] notifies Exec[w]", "Service[a] inside Class[app]",
	}
	if diff := cmp.Diff(want, words(c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if b := c.Boxes[0]; b.Name != "File[/a]" || b.State != "failed" || b.File != "app.pp" || b.Line != 3 || b.Row != 0 || b.Y != 0 {
		t.Errorf("the first box is %+v", b)
	}
}

func TestTheWholeCatalog(t *testing.T) {
	t.Parallel()
	q := app()
	q.Whole = true
	for _, name := range []string{"Stage[main]", "Class[app]", "Class[web]", "Class[ops]", "Class[empty]"} {
		q.Resources = append(q.Resources, chart.Resource{Name: name})
	}
	want := []string{
		"Class[app] before Class[web]", "Class[app] contains File[/a]", "Class[app] contains Service[a]",
		"Class[ops] contains User[ops]", "Class[web] contains Exec[w]", "Class[web] contains File[/w]", "Exec[lost]",
		"File[/a] required-by Service[a]", "File[/w] notifies Exec[w]",
	}
	if diff := cmp.Diff(want, words(chart.Draw(q))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	q.Near = "Exec[w]"
	want = []string{
		"Class[app] before Class[web]", "Class[web] contains Exec[w]", "Class[web] contains File[/w]", "File[/w] notifies Exec[w]",
	}
	if diff := cmp.Diff(want, words(chart.Draw(q))); diff != "" {
		t.Errorf("near one (-want +got):\n%s", diff)
	}
	q.Near = "File[/elsewhere]"
	if c := chart.Draw(q); len(c.Boxes) != 0 {
		t.Errorf("near what is not there: %+v", c.Boxes)
	}
}

// large is a class with many files that wait for a package that failed, and another class behind it.
func large(n int) chart.Question {
	q := chart.Question{
		Resources: []chart.Resource{{Name: "Package[x]", State: "failed"}, {Name: "Service[y]", State: "skipped"}},
		Edges: []inventory.Edge{
			edge("Class[x]", "contains", "Package[x]"), edge("Class[y]", "contains", "Service[y]"), edge("Class[x]", "before", "Class[y]"),
			edge("Class[x]", "contains", "X::Part[one]"),
		},
	}
	for i := range n {
		name := fmt.Sprintf("File[/x/%03d]", i)
		q.Resources = append(q.Resources, chart.Resource{Name: name, State: "skipped"})
		q.Edges = append(q.Edges, edge("X::Part[one]", "contains", name), edge("Package[x]", "before", name))
	}
	return q
}

func TestManyResourcesAreOneBox(t *testing.T) {
	t.Parallel()
	q := large(60)
	c := chart.Draw(q)
	want := []string{"Class[x] before Class[y]", "Package[x] before+inside Class[x]"} // Class[y] and its one service are one box
	if diff := cmp.Diff(want, words(c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, b := range c.Boxes {
		if b.Name == "Class[x]" && (!b.Folded || b.State != "skipped" || b.Counts["skipped"] != 60) {
			t.Errorf("the folded class: %+v", b)
		}
	}
	if !c.Folds {
		t.Error("it does not say that classes are folded")
	}
	q.Open = []string{"Class[x]"}
	if c = chart.Draw(q); len(c.Boxes) < 62 {
		t.Errorf("opened, it has %d boxes", len(c.Boxes))
	}
	q.Open = []string{chart.All}
	if c = chart.Draw(q); len(c.Boxes) < 63 || c.Folds {
		t.Errorf("with all open, it has %d boxes", len(c.Boxes))
	}
}

func TestAPictureIsBounded(t *testing.T) {
	t.Parallel()
	q := large(chart.MostBoxes + 100)
	q.Open = []string{chart.All}
	c := chart.Draw(q)
	if len(c.Boxes) != chart.MostBoxes || c.Left < 100 {
		t.Fatalf("%d boxes, %d left out", len(c.Boxes), c.Left)
	}
	if !slices.ContainsFunc(c.Boxes, func(b chart.Box) bool { return b.State == "failed" }) {
		t.Error("what failed is left out")
	}
}

func TestACircleIsNamedAndDrawn(t *testing.T) {
	t.Parallel()
	q := chart.Question{
		Resources: []chart.Resource{{Name: "File[a]"}, {Name: "File[b]"}, {Name: "File[c]"}},
		Edges: []inventory.Edge{
			edge("Class[x]", "contains", "File[a]"), edge("Class[y]", "contains", "File[b]"), edge("Class[x]", "before", "Class[y]"),
			edge("File[b]", "before", "File[a]"), edge("File[c]", "before", "File[a]"),
		},
	}
	c := chart.Draw(q)
	if len(c.Cycle) < 2 || !slices.Contains(c.Cycle, "File[a]") || !slices.Contains(c.Cycle, "File[b]") || slices.Contains(c.Cycle, "File[c]") {
		t.Errorf("the circle is %v", c.Cycle)
	}
	up := 0
	for _, l := range c.Lines {
		if l.Back {
			up++
		}
	}
	if up != 1 {
		t.Errorf("%d lines point up: %v", up, words(c))
	}
	q.Edges, q.Whole = q.Edges[:3], true
	if got := chart.Draw(q).Cycle; got != nil {
		t.Errorf("without the last edge there is a circle: %v", got)
	}
}

// Whatever a catalog is: a picture keeps its bounds, its lines have ends, each failed resource has a box, the resources of folded boxes
// add up, and the same question has the same picture.
func TestAnyPictureKeepsTheRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		q := anyQuestion(rt)
		c := chart.Draw(q)
		if again := chart.Draw(q); !reflect.DeepEqual(c, again) {
			rt.Fatalf("another picture: %s", cmp.Diff(c, again))
		}
		boxes := map[string]chart.Box{}
		for _, b := range c.Boxes {
			if _, twice := boxes[b.Name]; twice {
				rt.Fatalf("%s has two boxes", b.Name)
			}
			boxes[b.Name] = b
		}
		for _, l := range c.Lines {
			from, to := boxes[l.From], boxes[l.To]
			if from.Name == "" || to.Name == "" || l.Edges < len(l.Kinds) || len(l.Kinds) == 0 {
				rt.Fatalf("a line without ends or kinds: %+v", l)
			}
			if l.Back != (from.Row > to.Row) {
				rt.Fatalf("%s in row %d, %s in row %d, back %v", l.From, from.Row, l.To, to.Row, l.Back)
			}
		}
		for _, r := range q.Resources {
			if r.State == "failed" && boxes[r.Name].State != "failed" {
				rt.Fatalf("%s failed and has no box", r.Name)
			}
		}
		if len(c.Boxes) > chart.MostBoxes || len(c.Lines) > chart.MostLines {
			rt.Fatalf("%d boxes, %d lines", len(c.Boxes), len(c.Lines))
		}
	})
}

func anyQuestion(rt *rapid.T) chart.Question {
	q := chart.Question{Whole: rapid.Bool().Draw(rt, "whole")}
	var names []string
	for i := range rapid.IntRange(1, 8).Draw(rt, "classes") {
		names = append(names, fmt.Sprintf("Class[c%d]", i))
	}
	classes := len(names)
	for i := range rapid.IntRange(1, 70).Draw(rt, "files") {
		name := fmt.Sprintf("File[f%d]", i)
		names = append(names, name)
		q.Edges = append(q.Edges, edge(names[rapid.IntRange(0, classes-1).Draw(rt, "class")], "contains", name))
	}
	state := rapid.SampledFrom([]string{"failed", "skipped", "skipped", "changed", "unchanged", ""})
	for _, name := range names {
		r := chart.Resource{Name: name}
		if strings.HasPrefix(name, "File") {
			r.State = state.Draw(rt, "state")
		}
		q.Resources = append(q.Resources, r)
	}
	one := rapid.SampledFrom(names)
	for range rapid.IntRange(0, 80).Draw(rt, "edges") {
		q.Edges = append(q.Edges, edge(one.Draw(rt, "from"), rapid.SampledFrom([]string{"before", "notifies"}).Draw(rt, "kind"), one.Draw(rt, "to")))
	}
	if rapid.Bool().Draw(rt, "opens") {
		q.Open = []string{names[0]}
	}
	return q
}

func BenchmarkDraw(b *testing.B) {
	q := large(2000)
	q.Whole = true
	for b.Loop() {
		chart.Draw(q)
	}
}
