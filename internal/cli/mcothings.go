package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

// What mco does with a service or a package is a line for each node.

// thingLine is what is said of a node's answer, and whether that is something to be told: --verbose tells all.
type thingLine func(does string, a action.Answer) (text string, surprises bool)

// eitherOrder takes a name and an action, whichever comes first.
func eitherOrder(args, actions []string) (name, does string, err error) {
	switch {
	case slices.Contains(actions, args[1]):
		return args[0], args[1], nil
	case slices.Contains(actions, args[0]):
		return args[1], args[0], nil
	}
	return "", "", usageError{&fault.Error{
		Kind: fault.Invalid, Detail: fmt.Sprintf("neither %.40q nor %.40q is an action; choose %s", args[0], args[1], alternatives(actions)),
		Hint: fault.DidYouMean(args[1], actions),
	}}
}

// callOnThings asks somebody at a terminal first who means the whole fleet, calls the action and prints a line for each node.
func (c *call) callOnThings(ctx context.Context, m *mcoFlags, q mcoQuestion, line thingLine) error {
	if q.action != "status" && !m.changesNodes() && !m.yes && c.system.canAsk() {
		if err := c.agreed(fmt.Sprintf("Do you really want to operate on %ss unfiltered?", q.module)); err != nil {
			return err
		}
	}
	p, err := c.callAction(ctx, m, q)
	if err != nil {
		return err
	}
	if err := c.printAnswers(m, p, func() string { return linesText(p, line) + p.endText() }); err != nil {
		return err
	}
	return c.ends(p.code())
}

// linesText is a line for each node that has something to tell.
func linesText(p *mcoAnswers, line thingLine) string {
	widest := 0
	for _, a := range p.all {
		widest = max(widest, len(a.Node))
	}
	var b strings.Builder
	b.WriteString("\n")
	for _, a := range p.all {
		text, surprises := statusText(a), replied(a)
		if a.Code == action.Done {
			text, surprises = line(p.action.Name, a)
			surprises = surprises || p.verbosely
		}
		if surprises {
			fmt.Fprintf(&b, "%*s: %s\n", widest+3, print.OneLine(string(a.Node)), print.OneLine(text))
		}
	}
	return b.String() + "\n"
}
