package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
)

var nodeGraph = verb[api.NodeGraphRequest]{
	use: "graph NODE", short: "Draw what was skipped because of what failed, or a node's whole catalog",
	prints: outputs{"table", "dot", "json", "jsonl", "yaml"},
	long: `Draw what failed in a node's last run, and what was skipped because of it: each resource with those that it waited for. With
--catalog it is all of the node's newest catalog.

Of many resources those of one class are one line; --open shows them one by one. -o dot prints the graph for Graphviz, and
-o json where each box and line stands in the picture that the console shows.`,
	example: `  tutti node graph web-1.example.test
  tutti node graph web-1.example.test --near 'Service[nginx]' --catalog
  tutti node graph web-1.example.test -o dot | dot -Tsvg > web-1.svg`,
	flags: func(f flagSet, in *api.NodeGraphRequest) {
		f.BoolFunc("catalog", "all of the node's catalog, not only what failed and was skipped", func(value string) error {
			in.Show = "failed"
			if value == "true" {
				in.Show = "catalog"
			}
			return nil
		})
		f.StringVar(&in.Open, "open", "", "classes, such as Class[Nginx], whose resources are shown one by one; commas join several; all: every class")
		f.StringVar(&in.Near, "near", "", "only this resource, such as Service[nginx], what it waits for, and what waits for it")
	},
	into: func(in *api.NodeGraphRequest, args []string) { in.Name = args[0] },
	run:  shows(api.NodeChart, printPicture),
}

func printPicture(to print.Printer, g api.ResourceGraph) error {
	if to.Format == "dot" {
		return to.Text(dotOf(g))
	}
	if len(g.Boxes) == 0 {
		to.Hint("No resource failed or was skipped in the last run of %s; --catalog draws all of its catalog.", g.Node)
		return nil
	}
	if len(g.Cycle) > 0 {
		to.Line("! no order: " + strings.Join(g.Cycle, " -> ") + " -> " + g.Cycle[0])
	}
	before := map[string][]api.ResourceLine{}
	for _, l := range g.Lines {
		before[l.To] = append(before[l.To], l)
	}
	for i, b := range g.Boxes {
		if i == 0 || b.Row != g.Boxes[i-1].Row {
			to.Line("Level " + strconv.Itoa(b.Row))
		}
		to.Line("  " + boxText(b))
		for k, l := range before[b.Name] {
			branch := "├─"
			if k == len(before[b.Name])-1 {
				branch = "└─"
			}
			to.Line("    " + branch + " " + lineText(l))
		}
	}
	if g.Left > 0 || g.LinesLeft > 0 {
		to.Hint("%d boxes and %d lines are too many and left out; --near draws the neighbourhood of one resource.", g.Left, g.LinesLeft)
	}
	if g.OtherCatalog {
		to.Hint("The node has another catalog by now: what waits for what is taken from that one.")
	}
	return nil
}

// boxText is a box in words.
func boxText(b api.ResourceBox) string {
	words := []string{print.OneLine(placed(b.Name, b.File, b.Line))}
	switch {
	case b.Folded:
		words = append(words, statesText(b.Counts))
	case b.State != "":
		words = append([]string{b.State}, words...)
	}
	return strings.Join(words, " ")
}

// statesText is how many resources of a class are in which state.
func statesText(counts map[string]int) string {
	var words []string
	for _, state := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, strings.TrimSpace(strconv.Itoa(counts[state])+" "+first(state, "in it")))
	}
	return "(" + strings.Join(words, ", ") + ")"
}

// lineText is what a line says of the box at its end.
func lineText(l api.ResourceLine) string {
	from := print.OneLine(l.From)
	switch {
	case slices.Equal(l.Kinds, []string{"contains"}):
		return "in " + from
	case slices.Equal(l.Kinds, []string{"inside"}):
		return "not done without " + from + ", which is in it"
	}
	return "waits for " + from
}

// dotOf is a graph in the language of Graphviz.
func dotOf(g api.ResourceGraph) string {
	var text strings.Builder
	fmt.Fprintf(&text, "digraph %s {\n  node [shape=box];\n", dotName(g.Node))
	for _, b := range g.Boxes {
		label, colour := b.Name, map[string]string{"failed": "red", "skipped": "orange", "changed": "blue"}[b.State]
		if b.Folded {
			label += "\n" + statesText(b.Counts)
		}
		fmt.Fprintf(&text, "  %s [label=%s", dotName(b.Name), dotName(label))
		if colour != "" {
			fmt.Fprintf(&text, ", color=%s", colour)
		}
		text.WriteString("];\n")
	}
	for _, l := range g.Lines {
		style := ""
		if !slices.ContainsFunc(l.Kinds, func(kind string) bool { return kind != "contains" && kind != "inside" }) {
			style = " [style=dashed]"
		}
		fmt.Fprintf(&text, "  %s -> %s%s;\n", dotName(l.From), dotName(l.To), style)
	}
	text.WriteString("}\n")
	return text.String()
}

// dotName is a text between quotes.
func dotName(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}
