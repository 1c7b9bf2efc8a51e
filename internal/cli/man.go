package cli

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
)

var manCommand = hidden{verb[api.Nothing]{
	use: "man DIR", short: "Write the manual pages into a directory", example: "  tutti man /usr/local/share/man/man1",
	long: "Write the manual pages into a directory: tutti.1, tutti-node.1, tutti-node-list.1 and so on. They are made from what --help says.",
	run: func(_ context.Context, c *call, _ *api.Nothing) error {
		if err := os.MkdirAll(c.args[0], 0o755); err != nil { //nolint:gosec // pages are for everybody
			return unwritten("the pages", c.args[0], err)
		}
		pages := manPages(c.cmd.Root(), api.ProgramBuild())
		for _, name := range slices.Sorted(maps.Keys(pages)) {
			if err := os.WriteFile(filepath.Join(c.args[0], name), []byte(pages[name]), 0o644); err != nil { //nolint:gosec // as above
				return unwritten("the pages", c.args[0], err)
			}
		}
		c.hint("%s in %s", fault.Are(len(pages), "page"), c.args[0])
		return nil
	},
}}

// hidden is a command that help does not list.
type hidden struct{ declared }

func (h hidden) command(a *app) *cobra.Command {
	cmd := h.declared.command(a)
	cmd.Hidden = true
	return cmd
}

// manPages are the manual pages of a tree of commands, by their files' names. The date is that of the source: the same source has the same pages.
func manPages(root *cobra.Command, build api.Build) map[string]string {
	date := ""
	if at, err := time.Parse(time.RFC3339, build.Date); err == nil {
		date = at.Format(time.DateOnly)
	}
	pages := map[string]string{}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Hidden || cmd.Name() == "help" {
			return
		}
		page := manPage{date: date, version: build.Version}
		page.write(cmd)
		pages[manName(cmd)+".1"] = page.text.String()
		for _, below := range cmd.Commands() {
			walk(below)
		}
	}
	walk(root)
	return pages
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage is a page that is written, in the macros of man(7).
type manPage struct {
	date, version string
	text          strings.Builder
}

func (p *manPage) linef(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

func (p *manPage) write(cmd *cobra.Command) {
	p.linef(`.TH "%s" 1 "%s" "tutti %s" "Tutti"`, strings.ToUpper(roff(manName(cmd))), p.date, roff(p.version))
	p.linef(".SH NAME\n%s \\- %s", roff(manName(cmd)), roff(cmd.Short))
	p.linef(".SH SYNOPSIS\n.nf\n%s\n.fi", p.synopsis(cmd))
	p.linef(".SH DESCRIPTION")
	p.literal(first(cmd.Long, cmd.Short+"."))
	if cmd.Example != "" {
		p.linef(".SH EXAMPLES")
		p.literal(cmd.Example)
	}
	p.flags("OPTIONS", cmd.NonInheritedFlags())
	p.flags("OPTIONS OF ALL COMMANDS ABOVE", cmd.InheritedFlags())
	p.linef(".SH EXIT STATUS\n.nf")
	for _, status := range exitStatuses {
		p.linef("%-4d %s", status.code, roff(status.meaning))
	}
	p.linef(".fi")
	p.seeAlso(cmd)
}

func (p *manPage) synopsis(cmd *cobra.Command) string {
	if cmd.HasAvailableSubCommands() && cmd.Example == "" {
		return roff(cmd.CommandPath() + " COMMAND [flags]")
	}
	return roff(cmd.UseLine())
}

// literal writes text with the lines that it has.
func (p *manPage) literal(text string) {
	p.linef(".nf")
	for line := range strings.Lines(text) {
		p.linef("%s", roff(strings.TrimRight(line, "\n ")))
	}
	p.linef(".fi")
}

func (p *manPage) flags(title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	p.linef(".SH %s", title)
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(flag)
		name := "--" + flag.Name
		if flag.Shorthand != "" {
			name = "-" + flag.Shorthand + ", " + name
		}
		if value != "" {
			name += " " + value
		}
		p.linef(".TP\n\\fB%s\\fR\n%s", roff(name), roff(usage)+defaultText(flag))
	})
}

func defaultText(flag *pflag.Flag) string {
	switch flag.DefValue {
	case "", "[]", "false", "0", "0s":
		return ""
	}
	return roff(" (default " + flag.DefValue + ")")
}

func (p *manPage) seeAlso(cmd *cobra.Command) {
	var names []string
	if cmd.HasParent() {
		names = append(names, manName(cmd.Parent()))
	}
	for _, below := range cmd.Commands() {
		if !below.Hidden && below.Name() != "help" {
			names = append(names, manName(below))
		}
	}
	if len(names) == 0 {
		return
	}
	p.linef(".SH SEE ALSO")
	for i, name := range names {
		comma := ","
		if i == len(names)-1 {
			comma = ""
		}
		p.linef(".BR %s (1)%s", roff(name), comma)
	}
}

// roff escapes a line: a backslash, a dash that is to be copied, a dot or a quote at the beginning.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `\(ga`, "\n", " ").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}

// exitStatuses are the exit codes in words, as docs/reference has them.
var exitStatuses = []struct {
	code    int
	meaning string
}{
	{exitDone, "done"},
	{exitFailed, "failed for another reason"},
	{exitUsage, "the command line is wrong"},
	{exitDiffers, "there is a difference; only with --exit-code"},
	{exitSomeFailed, "a job failed on some nodes; code has mistakes or does not compile"},
	{exitRefused, "the server or nodes refuse: it conflicts with what is there"},
	{exitLate, "nodes were offline or took too long"},
	{exitDenied, "not logged in, or no right"},
	{exitUnreachable, "no answer from the server"},
	{exitInterrupted, "interrupted"},
}
