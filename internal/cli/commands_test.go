package cli

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// everyCommand calls with each command, also those that are not shown.
func everyCommand(with func(cmd *cobra.Command)) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		with(cmd)
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk((&app{}).root())
}

// Whatever is wrong with arguments is an error of usage: too many, one that is empty.
func TestArgumentsThatDoNotFit(t *testing.T) {
	t.Parallel()
	many, none := make([]string, 20), 0
	for i := range many {
		many[i] = "x"
	}
	everyCommand(func(cmd *cobra.Command) {
		if cmd.Args == nil || !cmd.Runnable() || strings.HasPrefix(cmd.CommandPath(), "tutti errand") { // errands are the agent's own
			return
		}
		for _, args := range [][]string{many, {""}} {
			err := cmd.Args(cmd, args)
			if _, ok := errors.AsType[usageError](err); err != nil && !ok {
				t.Errorf("%s with %d arguments: %v", cmd.CommandPath(), len(args), err)
			}
			if err != nil && len(args) == 1 && strings.Contains(err.Error(), " is empty; usage: ") {
				none++
			}
		}
	})
	if none < 60 {
		t.Errorf("%d commands refuse an empty argument by name: this test has lost its eyes", none)
	}
}

func TestEnvironmentHasAShortForm(t *testing.T) {
	t.Parallel()
	n := 0
	everyCommand(func(cmd *cobra.Command) {
		if flag := cmd.Flags().Lookup("environment"); flag != nil {
			if n++; flag.Shorthand != "e" {
				t.Errorf("%s has --environment and no -e", cmd.CommandPath())
			}
		}
	})
	if n < 25 {
		t.Errorf("%d commands have --environment: this test has lost its eyes", n)
	}
}

var (
	namedFlag = regexp.MustCompile(`--[a-z][a-z-]*[a-z]`)
	ofAnother = regexp.MustCompile("`?tutti [a-z ]+[^`.;,\n]*|`[^`]*`")
)

// ofAsking are flags by which commands name a server: the helps that say how a server is found name them, whatever they have.
var ofAsking = []string{"--server", "--data", "--context", "--token-file", "--ca-fingerprint", "--help"}

// A help names only flags that its command has, beside those that stand in another command's line.
func TestHelpNamesFlagsThatExist(t *testing.T) {
	t.Parallel()
	n := 0
	everyCommand(func(cmd *cobra.Command) {
		all := cmd.Flags()
		all.AddFlagSet(cmd.InheritedFlags())
		for _, name := range namedFlag.FindAllString(ofAnother.ReplaceAllString(cmd.Long, ""), -1) {
			if n++; all.Lookup(name[2:]) == nil && !slices.Contains(ofAsking, name) {
				t.Errorf("the help of %s names %s, which it does not have", cmd.CommandPath(), name)
			}
		}
	})
	if n < 50 {
		t.Errorf("helps name %d flags: this test has lost its eyes", n)
	}
}

// What means one thing has one verb that is shown; the others do the same.
func TestSynonyms(t *testing.T) {
	t.Parallel()
	root := (&app{}).root()
	for line, shown := range map[string]string{
		"code remove": "code delete", "policy remove": "policy delete", "policy freeze remove": "policy freeze delete",
		"preview noise remove": "preview noise delete", "group remove": "group delete", "user purge": "user delete", "role remove": "role delete",
		"node delete": "node purge", "ca delete": "ca clean", "job cancel": "job stop", "preview abort": "preview cancel", "release stop": "release abort",
	} {
		old, rest, err := root.Find(strings.Fields(line))
		if err != nil || len(rest) > 0 || !old.Hidden {
			t.Errorf("%s: %v, %v, hidden %v", line, err, rest, old.Hidden)
			continue
		}
		now, _, err := root.Find(strings.Fields(shown))
		if err != nil || now.Hidden || now.Short != old.Short || !slices.Equal(strings.Fields(old.Use)[1:], strings.Fields(now.Use)[1:]) {
			t.Errorf("%s is not %s: %q, %q, %v", line, shown, old.Use, now.Use, err)
		}
	}
	if cmd, rest, _ := root.Find([]string{"node", "clean"}); len(rest) != 1 {
		t.Errorf("node clean is %s: Puppet's revokes the certificate, this one would not", cmd.CommandPath())
	}
	var out bytes.Buffer
	if code := Run(t.Context(), []string{"code", "--help"}, System{Out: &out, Err: &out}); code != exitDone || !strings.Contains(out.String(), "delete") ||
		strings.Contains(out.String(), "  remove") {
		t.Errorf("exit code %d\n%s", code, &out)
	}
}
