package cli

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tutti-project/tutti/internal/fault"
)

// declared is a command as a value: it becomes one of cobra's in one place, when the program starts.
type declared interface {
	command(a *app) *cobra.Command
}

// verb is a command that does something. Its flags and arguments are read into an In, which for many verbs is the request
// of the operation that they call; run does the rest, and is made by one of the kinds, or is a function of its own.
type verb[In any] struct {
	use, short, long, example string
	aliases                   []string
	args                      cobra.PositionalArgs            // nil: one for each word of use behind the first
	complete                  func(*app) cobra.CompletionFunc // offers arguments; nil: none
	flags                     func(f flagSet, in *In)         // nil: there are none
	prints                    outputs                         // nil: aThing
	into                      func(in *In, args []string)     // takes the arguments; nil: run does
	run                       func(ctx context.Context, c *call, in *In) error
	destroys                  func(ctx context.Context, c *call, in *In) (loss string, err error) // says what would be done; nil: it destroys nothing
	below                     []declared                                                          // verbs of its own; a verb that has some is run without one, too
}

// call is one use of a verb: the program, and the command line that it was called by.
type call struct {
	*app
	cmd  *cobra.Command
	args []string
}

// changed says whether a flag was given.
func (c *call) changed(flag string) bool { return c.cmd.Flags().Changed(flag) }

func (v verb[In]) command(a *app) *cobra.Command {
	in := new(In)
	p := plain{
		cmd: &cobra.Command{Use: v.use, DisableFlagsInUseLine: true, Aliases: v.aliases, Short: v.short, Long: v.long, Example: v.example, Args: v.args},
		app: a, complete: v.complete, prints: v.prints, below: v.below,
		run: func(ctx context.Context, c *call) error {
			once := *in // what a verb adds to it does not count for the next look
			return v.run(ctx, c, &once)
		},
	}
	if v.flags != nil {
		p.flags = func(f flagSet) { v.flags(f, in) }
	}
	if v.into != nil {
		p.into = func(args []string) { v.into(in, args) }
	}
	if v.destroys != nil {
		p.destroys = func(ctx context.Context, c *call) (string, error) { return v.destroys(ctx, c, in) }
	}
	return p.command()
}

// plain is a verb whose In is known to its functions alone: what is alike in all verbs is compiled once, not for each of a hundred types.
type plain struct {
	cmd      *cobra.Command
	app      *app
	complete func(*app) cobra.CompletionFunc
	flags    func(flagSet)
	prints   outputs
	into     func(args []string)
	run      func(context.Context, *call) error
	destroys func(context.Context, *call) (loss string, err error)
	below    []declared
}

func (v *plain) command() *cobra.Command {
	cmd, a := v.cmd, v.app
	if cmd.Args == nil {
		cmd.Args = exactly(wordsOf(cmd.Use))
	}
	cmd.Args = noneEmpty(cmd.Args)
	if v.complete != nil {
		cmd.ValidArgsFunction = inTime(a.system, v.complete(a))
	}
	if v.prints == nil {
		v.prints = aThing
	}
	flags := flagSet{FlagSet: cmd.Flags(), cmd: cmd, app: a}
	if v.flags != nil {
		v.flags(flags)
	}
	v.prints.flags(flags)
	var care caution
	if v.destroys != nil {
		care.flags(flags)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := &call{app: a, cmd: cmd, args: args}
		if err := v.prints.check(c); err != nil {
			return err
		}
		if err := cmp.Or(c.required(), c.oneNeeded()); err != nil {
			return err
		}
		if v.into != nil {
			v.into(args)
		}
		if v.destroys != nil {
			ctx := cmd.Context()
			if on, err := care.goesOn(c, func() (string, error) { return v.destroys(ctx, c) }); err != nil || !on {
				return c.nearby(err)
			}
		}
		return c.nearby(c.asFlags(c.repeat(cmd.Context(), v.run)))
	}
	for _, v := range v.below {
		cmd.AddCommand(v.command(a))
	}
	return cmd
}

// wordsOf is how many arguments a use names. One that has optional, repeated or other words has to say by args what fits.
func wordsOf(use string) int {
	words := strings.Fields(use)[1:]
	for _, word := range words {
		if strings.ContainsAny(word[:1], "[(|-") || strings.HasSuffix(word, "...") {
			panic("the verb " + use + " needs args")
		}
	}
	return len(words)
}

// flagSet is the flags of a verb, with what cobra knows of them.
type flagSet struct {
	*pflag.FlagSet
	cmd *cobra.Command
	app *app
}

// requires says which flags have to be given.
func (f flagSet) requires(names ...string) {
	for _, name := range names {
		if err := f.SetAnnotation(name, requiredFlag, nil); err != nil {
			panic(err) // there is no such flag
		}
	}
}

// requiresOne says of which flags at least one has to be given.
func (f flagSet) requiresOne(names ...string) {
	for _, name := range names {
		if err := f.SetAnnotation(name, oneOfFlags, nil); err != nil {
			panic(err) // there is no such flag
		}
	}
}

// The annotations of flags that have to be given, and of those of which one has to be.
const (
	requiredFlag = "tutti_required"
	oneOfFlags   = "tutti_one_of"
)

// required names the flags that are missing.
func (c *call) required() error {
	var missing []string
	c.cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, must := f.Annotations[requiredFlag]; must && !f.Changed {
			missing = append(missing, "--"+f.Name)
		}
	})
	if len(missing) == 0 {
		return nil
	}
	return usageError{&fault.Error{Kind: fault.Invalid, Detail: areMissing(missing) + " missing", Hint: "see `" + c.cmd.CommandPath() + " --help`"}}
}

// completes says what a flag's value may be.
func (f flagSet) completes(flag string, with func(*app) cobra.CompletionFunc) {
	if err := f.cmd.RegisterFlagCompletionFunc(flag, inTime(f.app.system, with(f.app))); err != nil {
		panic(err) // there is no such flag
	}
}

// offers names all values that a flag can have.
func (f flagSet) offers(flag string, values ...string) {
	f.completes(flag, func(*app) cobra.CompletionFunc {
		return func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			return beginning(values, begun), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		}
	})
}

// noun is a command that only groups others; called bare it shows its help, and an unknown verb is an error, not a silent success.
type noun struct {
	use, short string
	verbs      []declared
	flags      func(flagSet) // that all of them have; nil: none
	hidden     bool
}

func (n noun) command(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: n.use, DisableFlagsInUseLine: true, Short: n.short, Args: noVerb, RunE: showHelp, Hidden: n.hidden}
	if n.flags != nil {
		n.flags(flagSet{FlagSet: cmd.PersistentFlags(), cmd: cmd, app: a})
	}
	for _, v := range n.verbs {
		cmd.AddCommand(v.command(a))
	}
	addSynonyms(cmd, n.verbs, a)
	return cmd
}

// asking is a command that asks a server: it and those below it have the flags of a client.
type asking struct{ declared }

func (c asking) command(a *app) *cobra.Command { return withAccess(a, c.declared.command(a)) }
