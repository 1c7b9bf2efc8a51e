package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
)

type groupExplainInput struct{ all bool }

var groupExplain = verb[groupExplainInput]{
	use: "explain NODE", short: "Say what groups give a node, which group gave what, and why",
	long: `Say what groups give a node: the groups it is in with the conditions that matched, each value with the group it is written
in, what a group below overrides, and what groups disagree about. With --all also the groups that the node is not in, with
the condition that keeps it out.`,
	example: "  tutti group explain web-1.example.test\n  tutti group explain web-1.example.test --all\n  tutti group explain web-1.example.test -o json",
	flags: func(f flagSet, in *groupExplainInput) {
		f.BoolVar(&in.all, "all", false, "show the groups that the node is not in, too")
	},
	run: func(ctx context.Context, c *call, in *groupExplainInput) error {
		return showAnswer(ctx, c.app, api.GroupExplain, api.NameRequest{Name: c.args[0]}, func(to print.Printer, e api.GroupExplanation) error {
			return printExplanation(to, e, in.all)
		})
	},
}

func printExplanation(to print.Printer, e api.GroupExplanation, all bool) error {
	if !e.FactsKnown {
		to.Hint("No facts of %s are known: rules over facts do not match", e.Node)
	}
	if !e.TrustedKnown {
		to.Hint("%s has no certificate: rules over trusted data do not match", e.Node)
	}
	var rows [][]string
	for _, m := range e.Groups {
		if m.Member || all {
			rows = append(rows, []string{indent(m.Name, m.Depth), standing(m), whyOf(m)})
		}
	}
	if err := to.Rows([]string{"group", "node", "why"}, rows); err != nil {
		return err
	}
	rows = nil
	for _, o := range e.Origins {
		via := strings.Join(o.Via, ", ")
		if via == o.Group {
			via = ""
		}
		rows = append(rows, []string{itemName(o.Kind, o.Class, o.Name), valueOf(o), o.Group, via, o.State})
	}
	if len(rows) > 0 {
		_, _ = fmt.Fprintln(to.Out)
		if err := to.Rows([]string{"what", "value", "from group", "through", "state"}, rows); err != nil {
			return err
		}
	}
	printConflicts(to, e)
	return nil
}

func printConflicts(to print.Printer, e api.GroupExplanation) {
	for _, c := range e.Conflicts {
		var sides []string
		for _, o := range c.Origins {
			sides = append(sides, fmt.Sprintf("%s from %q", valueOf(o), o.Group))
		}
		_, _ = fmt.Fprintln(to.Out, print.OneLine(fmt.Sprintf("CONFLICT: %s is %s", itemName(c.Kind, c.Class, c.Name), strings.Join(sides, " and "))))
	}
	if len(e.Conflicts) > 0 {
		to.Hint("With a conflict the node gets no catalog. Let one of the groups be below the other, or give the same value.")
	}
}

func standing(m api.GroupMembership) string {
	switch {
	case m.Pinned:
		return "in, pinned"
	case m.Member:
		return "in"
	case m.StoppedBy == "":
		return "passes through"
	}
	return "not in"
}

// whyOf lists the conditions that decided.
func whyOf(m api.GroupMembership) string {
	switch {
	case m.Defect != "":
		return "cannot be used: " + m.Defect
	case m.StoppedBy != "" && m.StoppedBy != m.Name:
		return "not in " + m.StoppedBy
	}
	var parts []string
	for _, f := range m.Why {
		found := "there is no such value"
		if f.Found != nil {
			found = "it is " + string(f.Found)
		}
		if f.Holds && m.Member {
			parts = append(parts, f.Condition)
		} else {
			parts = append(parts, fmt.Sprintf("%s: %s, %s", f.Condition, yesNo(f.Holds), found))
		}
	}
	return print.Shortened(strings.Join(parts, "; "), 300)
}

func yesNo(holds bool) string {
	if holds {
		return "yes"
	}
	return "no"
}

func itemName(kind, class, name string) string {
	switch kind {
	case "class":
		return "class " + class
	case "parameter":
		return class + "::" + name
	case "data":
		return "data " + class + "::" + name
	case "variable":
		return "$" + name
	}
	return kind
}

func valueOf(o api.GroupOrigin) string {
	if o.Kind == "class" {
		return ""
	}
	return print.Shortened(string(o.Value), 80)
}
