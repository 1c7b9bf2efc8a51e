package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tutti-project/tutti/internal/cli/print"
)

// widestHelp is how long lines of help get on a wide terminal: longer ones are hard to read.
const widestHelp = 110

// helpOn makes cmd and all below it write their help in the width of the terminal.
func (a *app) helpOn(cmd *cobra.Command) {
	width := min(a.system.Width, widestHelp)
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		_, _ = io.WriteString(a.system.Out, helpText(cmd, width))
	})
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := io.WriteString(a.system.Err, helpText(cmd, width))
		return err
	})
}

// helpText is what --help prints.
func helpText(cmd *cobra.Command, width int) string {
	var text strings.Builder
	long := cmd.Long
	if long == "" {
		long = cmd.Short
	}
	text.WriteString(print.Wrapped(long+"\n", width))
	use := cmd.UseLine()
	if !cmd.Runnable() || cmd.HasAvailableSubCommands() && cmd.Example == "" || !cmd.HasParent() {
		use = cmd.CommandPath() + " COMMAND"
	}
	fmt.Fprintf(&text, "\nUsage:\n  %s\n", use)
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(&text, "\nAlso called:\n  %s\n", strings.Join(cmd.Aliases, ", "))
	}
	if cmd.Example != "" {
		fmt.Fprintf(&text, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		text.WriteString("\nCommands:\n")
		shown, widest := []*cobra.Command{}, cmd.NamePadding()
		for _, below := range cmd.Commands() {
			if below.IsAvailableCommand() || below.Name() == "help" {
				shown, widest = append(shown, below), max(widest, len(below.Name()))
			}
		}
		for _, below := range shown {
			text.WriteString(wrappedBehind(fmt.Sprintf("  %-*s %s", widest, below.Name(), below.Short), widest+3, width))
		}
	}
	writeFlags(&text, "Flags", cmd.LocalFlags(), width)
	writeFlags(&text, "Common flags", cmd.InheritedFlags(), width)
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&text, "\n`%s COMMAND --help` says more about a command.\n", cmd.CommandPath())
	}
	return text.String()
}

func writeFlags(text *strings.Builder, title string, flags *pflag.FlagSet, width int) {
	if flags.HasAvailableFlags() {
		fmt.Fprintf(text, "\n%s:\n%s", title, flags.FlagUsagesWrapped(width))
	}
}

// wrappedBehind wraps a line whose further lines begin at a column.
func wrappedBehind(line string, column, width int) string {
	if width <= column || len(line) <= column {
		return line + "\n"
	}
	wrapped := print.Wrapped(line[column:], width-column)
	return line[:column] + strings.ReplaceAll(strings.TrimSuffix(wrapped, "\n"), "\n", "\n"+strings.Repeat(" ", column)) + "\n"
}
