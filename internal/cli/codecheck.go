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
		printCheck(a, check)
	}
	return jobOutcome{exitSomeFailed, fmt.Sprintf("%s: nothing was deployed, %s stays as it is. Mend the code, or deploy it with --force",
		fault.Count(check.Mistakes, "mistake"), environment)}
}

// printCheck says what was found, a line each, and how much was looked at. It is not what a deploy was asked for: it goes
// where progress goes.
func printCheck(a *app, check api.CodeCheck) {
	for _, f := range check.Findings {
		if f.Level == "mistake" { // also for who wants to hear nothing
			_, _ = fmt.Fprintln(a.system.Err, print.OneLine(findingLine(f)))
			continue
		}
		a.hint("%s", print.OneLine(findingLine(f)))
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
	if f.Level != "mistake" {
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

// checkedText says what a check looked at.
func checkedText(c api.CodeCheck) string {
	text := "Checked " + fault.Count(c.Files, "file")
	if c.Base != "" {
		text += " beside version " + short(c.Base)
	}
	took := print.Duration(time.Duration(c.Seconds * float64(time.Second)))
	switch {
	case c.Unread:
		return fmt.Sprintf("%s in %s; no catalog was compiled: the files come first", text, took)
	case c.Sets > c.Compiled:
		return fmt.Sprintf("%s and compiled for %d of %s of classes (deploy_check_nodes) in %s", text, c.Compiled, fault.Count(c.Sets, "set"), took)
	case c.Compiled > 0:
		return fmt.Sprintf("%s and compiled for %s, one of each set of classes, in %s", text, fault.Count(c.Compiled, "node"), took)
	}
	return fmt.Sprintf("%s in %s; no node's catalog had to be compiled", text, took)
}
