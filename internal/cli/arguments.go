package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
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

// environmentWithRef is the argument of a verb whose code a flag names. People write the code behind the environment, as in a deploy, or before it.
func environmentWithRef(cmd *cobra.Command, args []string) error {
	told := func(detail, environment, code string) error {
		return usageError{&fault.Error{Kind: fault.Invalid, Detail: detail, Hint: fmt.Sprintf("`%s %s --ref %.200s`", cmd.CommandPath(), environment, code)}}
	}
	switch {
	case len(args) == 1 && isCode(args[0]) && !isEnvironment(args[0]):
		return told(fmt.Sprintf("for which environment? %.200q is its code, which --ref names", args[0]), "production", args[0])
	case len(args) == 2 && isCode(args[0]) && isEnvironment(args[1]) && !isCode(args[1]):
		return told(fmt.Sprintf("%.200q is one argument too many: --ref names the code", args[0]), args[1], args[0])
	case len(args) == 2 && isCode(args[1]) && isEnvironment(args[0]):
		return told(fmt.Sprintf("%.200q is one argument too many: --ref names the code", args[1]), args[0], args[1])
	}
	return exactly(1)(cmd, args)
}

// place is the arguments of a verb that shows a line of code.
func place(cmd *cobra.Command, args []string) error {
	told := func(detail, environment, file string) error {
		return usageError{&fault.Error{Kind: fault.Invalid, Detail: detail, Hint: fmt.Sprintf("`%s %s %.200s`", cmd.CommandPath(), environment, file)}}
	}
	switch {
	case len(args) == 1 && isPlace(args[0]):
		return told("ENVIRONMENT is missing, whose code it is", "production", args[0])
	case len(args) == 1 && isEnvironment(args[0]):
		return usageError{&fault.Error{
			Kind: fault.Invalid, Detail: "FILE:LINE is missing, such as manifests/site.pp:12",
			Hint: fmt.Sprintf("what is deployed: `tutti code status %s`, and what was: `tutti code versions %s`", args[0], args[0]),
		}}
	case len(args) == 2 && isPlace(args[0]) && isEnvironment(args[1]):
		return told("the environment is named first", args[1], args[0])
	}
	return exactly(2)(cmd, args)
}

// isPlace says whether an argument is a file of code, perhaps with a line.
func isPlace(arg string) bool { return strings.ContainsAny(arg, "/:.") }

// isCode says whether an argument is a directory, or reads like the path of one or like the URL of a repository.
func isCode(arg string) bool {
	return strings.ContainsAny(arg, "/:") || strings.HasPrefix(arg, ".") || isDir(arg)
}

// isEnvironment says whether an argument can be the name of an environment.
func isEnvironment(arg string) bool {
	_, err := fleet.ParseEnvironment(arg)
	return err == nil
}
