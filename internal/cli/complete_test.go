package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// eachVerb calls see with every command that people call.
func eachVerb(see func(cmd *cobra.Command)) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Hidden || cmd.Name() == "completion" || cmd.Name() == "help" {
			return
		}
		if cmd.Runnable() {
			see(cmd)
		}
		for _, below := range cmd.Commands() {
			walk(below)
		}
	}
	walk((&app{}).root())
}

// eachFlag are a command's flags, and those that it gives to the commands below.
func eachFlag(cmd *cobra.Command, see func(*pflag.Flag)) {
	cmd.Flags().VisitAll(see)
	cmd.PersistentFlags().VisitAll(see)
}

// Every argument and every flag with a value has something that a shell offers for it, or a reason why nothing is.
func TestEverythingIsCompletedOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	offered, reasons := 0, 0
	count := func(c completion, what string) {
		switch {
		case c.asks():
			offered++
		case c.none != "":
			reasons++
		default:
			t.Errorf("%s: nothing is offered, and no reason is given: name it in arguments or flagValues", what)
		}
	}
	eachVerb(func(cmd *cobra.Command) {
		if !cmd.HasSubCommands() && cmd.ValidArgsFunction == nil {
			t.Errorf("%s offers files for its arguments", cmd.CommandPath())
		}
		for _, word := range argumentWords(cmd.Use).words {
			count(completionOf(cmd, word), cmd.CommandPath()+" "+word)
		}
		eachFlag(cmd, func(flag *pflag.Flag) {
			if flag.Value.Type() == "bool" || flag.Value.Type() == "boolfunc" || flag.Name == "help" {
				return
			}
			if _, there := cmd.GetFlagCompletionFunc(flag.Name); !there {
				t.Errorf("%s --%s offers files", cmd.CommandPath(), flag.Name)
			}
			if c, known := flagCompletion(cmd, flag.Name); known {
				count(c, cmd.CommandPath()+" --"+flag.Name)
			}
		})
	})
	if offered < 150 || reasons < 150 {
		t.Errorf("%d are offered and %d have a reason: this test has lost its eyes", offered, reasons)
	}
}

// A line of the tables that no command has is about nothing.
func TestTablesOfCompletionsAreUsed(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	eachVerb(func(cmd *cobra.Command) {
		for _, word := range argumentWords(cmd.Use).words {
			used[word], used[cmd.CommandPath()+" "+word] = true, true
		}
		used[cmd.CommandPath()+" *"] = true
		eachFlag(cmd, func(flag *pflag.Flag) {
			used["--"+flag.Name], used[cmd.CommandPath()+" --"+flag.Name] = true, true
		})
	})
	for word := range arguments {
		if !used[word] {
			t.Errorf("no command has the argument %s", word)
		}
	}
	for flag := range flagValues {
		if !used[flag] && !used["--"+flag] {
			t.Errorf("no command has the flag %s", flag)
		}
	}
}

func TestWordsOfUses(t *testing.T) {
	t.Parallel()
	for use, want := range map[string]useWords{
		"list":                                    {},
		"show NODE":                               {words: []string{"NODE"}},
		"rename OLD NEW":                          {words: []string{"OLD", "NEW"}},
		"sign NAME... | --all":                    {words: []string{"NAME"}, repeat: true},
		"release [NODE...] --version VERSION":     {words: []string{"NODE"}, repeat: true},
		"show [MODEL|MODEL[INSTANCE]]":            {words: []string{"MODEL"}},
		"mode [NODE] [live|released|unset]":       {words: []string{"NODE", "live|released|unset"}},
		"run [NODE|@FILE|-]...":                   {words: []string{"NODE"}, repeat: true},
		"rerun JOB [NAME=VALUE]...":               {words: []string{"JOB", "NAME=VALUE"}, repeat: true},
		"set FREEZE --why TEXT (--from A --to B)": {words: []string{"FREEZE"}},
		"deploy ENVIRONMENT DIR|GIT-URL[@REF]":    {words: []string{"ENVIRONMENT", "DIR"}},
	} {
		got := argumentWords(use)
		if diff := cmp.Diff(want.words, got.words); diff != "" || got.repeat != want.repeat {
			t.Errorf("%s: repeat %v (-want +got):\n%s", use, got.repeat, diff)
		}
	}
}

// What is fixed, and what no server is asked for, is offered without one; what is asked of a server that is away is nothing, without a word.
func TestCompletionsWithoutAServer(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must(t, "context", "add", "prod", "--server", "127.0.0.1:9", "--system-ca")
	s.must(t, "context", "add", "lab", "--server", "lab.test", "--system-ca")
	for line, want := range map[string][]string{
		"node list -o j":                        {"json", "jsonl"},
		"node list --output=cs":                 {"csv"},
		"node list --context p":                 {"prod\thttps://127.0.0.1:9"},
		"context use ":                          {"prod\thttps://127.0.0.1:9", "lab\thttps://lab.test:8140"},
		"context rename lab ":                   nil,
		"catalog mode web-1 ":                   {"live", "released", "unset"},
		"ca list --state re":                    {"requested", "revoked"},
		"event list --kind begin,e":             {"begin,end"},
		"node show ":                            nil,
		"node list --group ":                    nil,
		"report show ":                          nil,
		"server --log-level w":                  {"warn"},
		"policy test --effect a":                {"approve"},
		"node list --where facts.os.family = x": nil,
	} {
		words := strings.Split(line, " ")
		code, out, said := s.run(t, nil, append([]string{"__complete"}, words...)...)
		got := slices.DeleteFunc(strings.Split(strings.TrimSpace(out), "\n"), func(text string) bool { return strings.HasPrefix(text, ":") })
		if len(got) == 0 {
			got = nil
		}
		if diff := cmp.Diff(want, got); diff != "" || code != exitDone || strings.Contains(said, "cannot reach") {
			t.Errorf("%s: exit code %d, said %q (-want +got):\n%s", line, code, said, diff)
		}
	}
}
