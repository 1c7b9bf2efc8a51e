package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

// System is the world outside: streams and environment, given so that tests can.
type System struct {
	Name     string // by which the program was called: tutti, or puppet-job and its kind
	In       io.Reader
	Out, Err io.Writer
	Env      []string // KEY=value
	Width    int      // of the terminal that Out is; 0: it is none
	ErrWidth int      // the same of Err
	Asks     bool     // In is a terminal with somebody at it
	// Interrupts tells of each Ctrl-C until stop is called; nil: there are none.
	Interrupts func() (each <-chan os.Signal, stop func())
	// SecondChance is how long a second Ctrl-C is waited for; 0: 5 seconds.
	SecondChance time.Duration
	// Completes is how long a shell waits for what the server offers, and is then offered nothing; 0: 2 seconds.
	Completes time.Duration
}

// Getenv returns the value of an environment variable; empty when it is not set.
func (s System) Getenv(name string) string {
	value, _ := s.lookup(name)
	return value
}

// lookup returns the value of an environment variable, and whether it is set.
func (s System) lookup(name string) (value string, there bool) {
	for _, entry := range s.Env {
		if key, rest, ok := strings.Cut(entry, "="); ok && key == name {
			value, there = rest, true
		}
	}
	return value, there
}

// animates says whether lines on Err may be written over.
func (s System) animates() bool {
	return s.ErrWidth > 0 && s.Getenv("TERM") != "dumb" && s.Getenv("CI") == ""
}

// canAsk says whether there is somebody who can be asked.
func (s System) canAsk() bool { return s.Asks && s.ErrWidth > 0 && s.Getenv("CI") == "" }

// app is one invocation: what every command shares.
type app struct {
	system   System
	access   accessFlags
	output   string
	printing printing
	colour   string
	quiet    bool
	tools    toolsMode
}

// Run executes one command line and returns its exit code.
func Run(ctx context.Context, args []string, system System) int {
	a := &app{system: system}
	args, wrong := a.fromEnterprise(args)
	root := a.root() //nolint:contextcheck // what a shell asks for has a context of its own, with a deadline
	root.SetArgs(args)
	root.SetIn(system.In)
	root.SetOut(system.Out)
	root.SetErr(system.Err)
	err := wrong
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if err != nil {
		err = excluded(err)
	}
	if err != nil && !errors.Is(err, errDiffers) && !errors.Is(err, errSaid) {
		a.report(err)
	}
	return a.tools.exitCode(exitCode(err))
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "tutti",
		Short: "The open control plane for Puppet and OpenVox fleets",
		Long: `Tutti compiles catalogs, serves Puppet agents, and knows what became of them.

Start a server, then point the other commands at it:

  tutti server --data /var/lib/tutti
  export TUTTI_DATA=/var/lib/tutti        # on the server's own machine
  tutti node list

From another machine, add the server once, and log in:

  tutti context add prod --server https://tutti.example.test:8140 --ca-fingerprint 5A:0F:...
  tutti login ann`,
		Example: "  tutti demo\n  tutti node list\n  tutti report show 3f9c2a",
		Version: api.ProgramVersion(), SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
		Args:              noVerb, RunE: showHelp,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{wrongFlag(cmd, err)}
	})
	a.helpOn(root)
	root.PersistentFlags().StringVar(&a.colour, "color", "auto", "colours: auto (on a terminal, unless NO_COLOR is set), always or never")
	root.PersistentPreRunE = a.checkColour
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "print results and errors only, no hints")
	for _, v := range slices.Concat(hostCommands, commands) {
		root.AddCommand(v.command(a))
	}
	a.completes(root)
	strictly(root)
	return root
}

// strictly makes cobra's own commands refuse what is none of their words, as all others do.
func strictly(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				about, rest, err := root.Find(args)
				if err != nil {
					return err
				}
				return noVerb(about, rest)
			}
		case "completion":
			cmd.Args, cmd.RunE = noVerb, showHelp
			for _, shell := range cmd.Commands() {
				shell.Args = noArgument
			}
		}
	}
}

// commands are what every operating system has.
var commands = []declared{
	compileCommand, agentCommand, caCommand, codeCommand, engineCommand, nodeCommand, groupCommand, catalogCommand, previewCommand, appCommand, releaseCommand,
	rollbackCommand, policyCommand, resourceCommand, factCommand, lookup, reportCommand, eventCommand, queryCommand, runCommand, taskCommand, actionCommand,
	puppetCommand, mcoCommand,
	ping, commandCommand, scriptCommand, fileCommand, jobCommand, loginCommand, logoutCommand, accessCommand, whoamiCommand, tokenCommand,
	userCommand, roleCommand, auditCommand, clusterCommand, consoleCommand, contextCommand, versionCommand, manCommand, agentChildren,
}

// noVerb refuses what is none of a command's commands.
func noVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := fault.DidYouMean(args[0], verbNames(cmd))
	if known := otherWords[args[0]]; slices.Contains(verbNames(cmd), known) {
		hint = "did you mean " + known + "?"
	}
	if slices.Contains(verbNames(cmd.Root()), args[0]) {
		hint = "see `tutti " + args[0] + " --help`"
	}
	if hint == "" {
		hint = "see `" + cmd.CommandPath() + " --help`"
	}
	return usageError{&fault.Error{Kind: fault.Invalid, Detail: fmt.Sprintf("unknown command %.60q for %q", args[0], cmd.CommandPath()), Hint: hint}}
}

func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// noArgument is for a command that takes none.
func noArgument(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return oneTooMany(cmd, args[0])
	}
	return nil
}

// hint prints advice that is not a result.
func (a *app) hint(format string, args ...any) {
	if !a.quiet && !a.tools.follows() {
		_, _ = io.WriteString(a.system.Err, print.Wrapped(print.Visible(fmt.Sprintf(format+"\n", args...)), a.system.ErrWidth))
	}
}

// usageError is a command line that cannot be right.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }
