package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

// checkMode is what a deploy asks of its check.
func checkMode(force, noCheck bool) string {
	switch {
	case force:
		return "force"
	case noCheck:
		return "off"
	}
	return ""
}

// refusedCode says why a version was not deployed.
func refusedCode(a *app, environment string, check api.CodeCheck, warnings []string) error {
	if a.printer().ForPrograms() {
		if err := a.printer().Thing(struct {
			Check    api.CodeCheck `json:"check"`
			Warnings []string      `json:"warnings,omitempty"`
		}{check, warnings}); err != nil {
			return err
		}
	} else {
		printCheck(a, check, "the same with -o json")
	}
	return jobOutcome{exitSomeFailed, fmt.Sprintf("%s: nothing was deployed, %s stays as it is. Mend the code, or deploy it with --force",
		fault.Count(check.Mistakes, "mistake"), environment)}
}

// shownFindings is how many warnings and notes people are shown unasked.
const shownFindings = 20

// printCheck says what was found, a line each, and how much was looked at. It is not what a deploy was asked for: it goes
// where progress goes. There may be many warnings and notes: all shows all.
func printCheck(a *app, check api.CodeCheck, all string) {
	shown, left, leftNew := 0, 0, 0
	for _, f := range check.Findings {
		switch {
		case f.Level == "mistake": // also for who wants to hear nothing
			_, _ = fmt.Fprintln(a.system.Err, print.OneLine(findingLine(f)))
		case shown < shownFindings:
			shown++
			a.hint("%s", print.OneLine(findingLine(f)))
		default:
			if left++; f.New {
				leftNew++
			}
		}
	}
	if left > 0 {
		text := fmt.Sprintf("and %d more", left)
		if leftNew > 0 {
			text += fmt.Sprintf(", %d of them new", leftNew)
		}
		a.hint("%s; %s shows all", text, all)
	}
	if check.Cut > 0 {
		a.hint("%s more were not kept: mend some of these, and deploy again", fault.Count(check.Cut, "finding"))
	}
	a.hint("%s", checkedText(check))
}

// findingLine is a finding as compilers write them: file:line:column: what.
func findingLine(f api.CodeFinding) string {
	place := f.File
	for _, n := range []int{f.Line, f.Column} {
		if n == 0 || place == "" {
			break
		}
		place += fmt.Sprintf(":%d", n)
	}
	text := f.Message
	switch {
	case f.New:
		text = "new " + f.Level + ": " + text
	case f.Level != "mistake":
		text = f.Level + ": " + text
	}
	if place != "" {
		text = place + ": " + text
	}
	if len(f.Nodes) == 0 {
		return text
	}
	text += "  (" + strings.Join(f.Nodes, ", ")
	if more := f.Alike - len(f.Nodes); more > 0 {
		text += fmt.Sprintf(" and %s with the same classes", fault.Count(more, "node"))
	}
	return text + ")"
}

// checkedText says what a check looked at, and how much it warns of.
func checkedText(c api.CodeCheck) string {
	text := "Checked " + fault.Count(c.Files, "file")
	if c.Base != "" {
		text += " beside version " + short(c.Base)
	}
	more := ""
	if c.More > 0 {
		more = fmt.Sprintf(", and for %s that read other changed files", fault.Count(c.More, "more node"))
	}
	took := print.Duration(time.Duration(c.Seconds * float64(time.Second)))
	switch {
	case c.Unread:
		text += fmt.Sprintf(" in %s; no catalog was compiled: the files come first", took)
	case c.Sets > c.Compiled:
		text += fmt.Sprintf(" and compiled for %d of %d sets of classes (deploy_check_nodes)%s in %s", c.Compiled, c.Sets, more, took)
	case c.Compiled > 0:
		text += fmt.Sprintf(" and compiled for %s, one of each set of classes%s, in %s (a preview compiles for all)", fault.Count(c.Compiled, "node"), more, took)
	default:
		text += fmt.Sprintf(" in %s; no node's catalog had to be compiled", took)
	}
	switch {
	case c.New > 0:
		return fmt.Sprintf("%s: %s, %d new", text, fault.Count(c.Warnings, "warning"), c.New)
	case c.Warnings > 0:
		return text + ": " + fault.Count(c.Warnings, "warning")
	}
	return text
}
