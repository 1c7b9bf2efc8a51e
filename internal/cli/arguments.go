package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/internal/fault"
)

// exactly takes n arguments, and else shows how the command is used.
func exactly(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		words := strings.Fields(cmd.Use)[1:]
		switch {
		case len(args) > n:
			return oneTooMany(cmd, args[n])
		case len(args) < n && n <= len(words):
			return usageError{fault.New(fault.Invalid, "%s missing; usage: %s", areMissing(words[len(args):n]), cmd.UseLine())}
		case len(args) < n:
			return usageError{fault.New(fault.Invalid, "%s missing; usage: %s", fault.Are(n-len(args), "argument"), cmd.UseLine())}
		}
		return nil
	}
}

// atMostOne takes one argument, or none.
func atMostOne(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return oneTooMany(cmd, args[1])
	}
	return nil
}

func oneTooMany(cmd *cobra.Command, arg string) error {
	return usageError{fault.New(fault.Invalid, "%.60q is one argument too many; usage: %s", arg, cmd.UseLine())}
}

// areMissing are words with their verb: NODE is; NODE and PATH are.
func areMissing(words []string) string {
	if len(words) == 1 {
		return words[0] + " is"
	}
	return strings.Join(words, " and ") + " are"
}

// scriptArguments is the word of a use for what a program of people's own is given as it stands.
const scriptArguments = "[ARGUMENT]..."

// noneEmpty refuses an argument without a character, such as "$NODE" where no NODE is set: it names nothing. What goes to
// people's own programs may be empty.
func noneEmpty(fit cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := fit(cmd, args); err != nil {
			return err
		}
		words := strings.Fields(cmd.Use)[1:]
		for i, arg := range args {
			word := wordAt(words, i)
			if arg == "" && word != scriptArguments {
				return usageError{fault.New(fault.Invalid, "%s is empty; usage: %s", nameOf(word), cmd.UseLine())}
			}
		}
		return nil
	}
}

// wordAt is the word of a use that says what an argument is: the last one may stand for all that follow.
func wordAt(words []string, i int) string {
	switch {
	case i < len(words):
		return words[i]
	case len(words) > 0 && strings.HasSuffix(words[len(words)-1], "..."):
		return words[len(words)-1]
	}
	return ""
}

// nameOf is a word of a use without what says how often it may stand there.
func nameOf(word string) string {
	name := strings.TrimSuffix(word, "...")
	if inner, optional := strings.CutPrefix(name, "["); optional {
		name = strings.TrimSuffix(strings.TrimSuffix(inner, "]"), "...")
	}
	if name == "" || strings.ToUpper(name) != name {
		return "an argument"
	}
	return name
}
