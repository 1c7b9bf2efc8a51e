package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

type codeStatusInput struct{ exit, check bool }

var codeStatus = verb[codeStatusInput]{
	use: "status [ENVIRONMENT]", short: "Show how many nodes have a catalog of the current version, and what is wrong with the others",
	prints: aList,
	args:   atMostOne,
	long: `Show how the nodes of an environment, production if none is named, stand to its current version. Catalogs are compiled
ahead: a node is current when its catalog stands for the version, also if it was compiled of an earlier one that differs in
nothing that the node read. A node whose code does not compile keeps its last good catalog until it asks for one itself: then
it is told the error, and applies the catalog that it has cached, as agents do.

Mistakes that the check of the deploy found are said again, when the version was deployed in spite of them. --check says all that it
found: also warnings, those of the compiler among them, and notes.

With --exit-code: 0 all is well, 4 catalogs do not compile or are held (see tutti catalog held), or the version was deployed
with mistakes, 6 catalogs are still waiting to be compiled. Nodes of which no facts are known, and those that were given a catalog
with a warning, count for nothing.`,
	example: `  tutti code status
  tutti code status production --check
  tutti code status testing -o json
  tutti code status --exit-code --quiet && tutti run --all --yes`,
	flags: func(f flagSet, in *codeStatusInput) {
		f.BoolVar(&in.check, "check", false, "say all that the check of the deploy found")
		f.BoolVar(&in.exit, "exit-code", false, "exit with 4 if catalogs do not compile or are held, with 6 if some are waiting to be compiled")
	},
	run: func(ctx context.Context, c *call, in *codeStatusInput) error {
		request := api.EnvironmentRequest{Environment: "production"}
		if len(c.args) > 0 {
			request.Environment = c.args[0]
		}
		s, err := ask(ctx, c.app, api.EnvironmentStatus, request)
		if err != nil {
			return err
		}
		if err := print.One(c.printer(), s, func(to print.Printer, s api.CodeStatus) error { return printCodeStatus(to, s, in.check) }); err != nil {
			return err
		}
		return codeOutcome(s, in.exit)
	},
}

// printCodeStatus is for people.
func printCodeStatus(to print.Printer, s api.CodeStatus, check bool) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s is version %s, deployed %s: %s, %d current, %d waiting, %d failed, %d unknown%s\n",
		s.Environment, short(s.Version), print.Ago(s.DeployedAt, time.Now()), fault.Count(s.Nodes, "node"), s.Current, s.Waiting, s.Failed, s.Unknown, lossCounts(s))
	text.WriteString(verifiedText(s.Verified))
	if s.Slowed != nil {
		fmt.Fprintln(&text, slowedText(*s.Slowed, time.Now()))
	}
	if s.Failed > 0 {
		fmt.Fprintln(&text, fault.Count(s.Failed, "node")+notCompiling(s))
	}
	text.WriteString(unknownText(s))
	for _, loss := range s.Losses {
		fmt.Fprintln(&text, "  "+loss)
	}
	if more := s.Held + s.Warned - len(s.Losses); more > 0 && len(s.Losses) > 0 {
		fmt.Fprintf(&text, "  and %s\n", fault.Count(more, "more node"))
	}
	if s.Held > 0 {
		fmt.Fprintln(&text, "  look: tutti catalog held; if it is meant: tutti catalog let NODE")
	}
	switch {
	case check && s.Check == nil:
		fmt.Fprintln(&text, "It was deployed without a check, or its check is not kept any more.")
	case check:
		fmt.Fprintln(&text, checkedText(*s.Check))
		tellFindings(&text, s.Check.Findings)
		if s.Check.Cut > 0 {
			fmt.Fprintf(&text, "  %s more were not kept\n", fault.Count(s.Check.Cut, "finding"))
		}
	case s.Check != nil && s.Check.Mistakes > 0:
		fmt.Fprintln(&text, "It was deployed with "+fault.Count(s.Check.Mistakes, "mistake")+":")
		tellFindings(&text, s.Check.Findings[:min(s.Check.Mistakes, len(s.Check.Findings))])
	}
	if err := to.Text(print.Wrapped(text.String(), to.Width)); err != nil || len(s.Errors) == 0 {
		return err
	}
	return print.List(to, s.Errors, codeErrors())
}

func tellFindings(to *strings.Builder, findings []api.CodeFinding) {
	for _, f := range findings {
		fmt.Fprintln(to, "  "+print.OneLine(findingLine(f)))
	}
}

// unknownText says which nodes are unknown, why, and what to do.
func unknownText(s api.CodeStatus) (text string) {
	if n := s.NoFacts; n != nil {
		text += fmt.Sprintf("  unknown: %s sent no facts yet (%s); they come with the first Puppet run there: tutti run, or puppet agent --test\n",
			fault.Count(n.Nodes, "node"), someOf(*n))
	}
	if n := s.Untried; n != nil {
		text += fmt.Sprintf("  unknown: no catalog was tried yet for %s (%s); the server does it by itself, sooner: tutti compile now NODE\n",
			fault.Count(n.Nodes, "node"), someOf(*n))
	}
	return text
}

// someOf names nodes, and counts those that are not named.
func someOf(n api.CodeNodes) string {
	text := strings.Join(n.Names, ", ")
	if more := n.Nodes - len(n.Names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// notCompiling says what becomes of nodes whose catalogs do not compile.
func notCompiling(s api.CodeStatus) string {
	text := " whose catalog does not compile: they keep the last one that did"
	if s.Failed == 1 {
		text = " whose catalog does not compile: it keeps the last one that did"
	}
	if s.NoCatalog > 0 {
		text += fmt.Sprintf("; %d never had one", s.NoCatalog)
	}
	return text
}

// codeOutcome is the exit code that stands for how nodes stand, if it is asked for.
func codeOutcome(s api.CodeStatus, asked bool) error {
	mistakes := s.Check != nil && s.Check.Mistakes > 0
	switch {
	case !asked:
		return nil
	case s.Failed > 0 || mistakes || s.Verified != nil && s.Verified.Differs > 0:
		const text = " is not well: catalogs do not compile or are not what Puppet gives, or its code was deployed with mistakes"
		return jobOutcome{exitSomeFailed, s.Environment + text}
	case s.Held > 0:
		return jobOutcome{exitSomeFailed, fmt.Sprintf("the newest catalog of %s of %s is held; see: tutti catalog held", fault.Count(s.Held, "node"), s.Environment)}
	case s.Waiting > 0:
		return jobOutcome{exitLate, fmt.Sprintf("%s of %s wait for their catalogs to be compiled", fault.Count(s.Waiting, "node"), s.Environment)}
	}
	return nil
}

// lossCounts counts what is held and what was given with a warning, if there is any.
func lossCounts(s api.CodeStatus) (text string) {
	if s.Held > 0 {
		text = fmt.Sprintf(", %d held", s.Held)
	}
	if s.Warned > 0 {
		text += fmt.Sprintf(", %d with a warning", s.Warned)
	}
	return text
}

func codeErrors() print.Table[api.CodeError] {
	return print.Table[api.CodeError]{
		Columns: []string{"nodes", "where", "error", "on"},
		Row: func(e api.CodeError) []any {
			where := e.File
			if e.Line > 0 {
				where = fmt.Sprintf("%s:%d", e.File, e.Line)
			}
			return []any{e.Nodes, where, e.Message, someOf(api.CodeNodes{Nodes: e.Nodes, Names: e.Names})}
		},
		Name:  func(e api.CodeError) string { return e.Message },
		Empty: "No errors.",
	}
}
