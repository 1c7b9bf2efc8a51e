package cli

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/agent"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

type actionTryInput struct {
	input     string
	configDir string
}

var actionTry = verb[actionTryInput]{
	use: "try PATH ACTION [FIELD=VALUE]...", short: "Try an action of a module on this machine, without a server", args: twoAndMore,
	long: `Load the module at PATH as the agent would, check the input, run the action on this machine, and print its results. PATH is
the module's executable, or, for an external agent of Choria, its folder of executables. What is wrong with the module, the
input or the results is said in the words that a server would get.

Input: FIELD=VALUE, made to the type that the action's schema has; a list is a,b or JSON. With --input, an object of JSON.

The exit code is 4 if the action was not done.`,
	example: "  tutti action try ./notes status path=/etc/motd\n  tutti action try ./notes write --input '{\"path\": \"/tmp/note\", \"text\": \"hello\"}' -o json",
	flags: func(f flagSet, in *actionTryInput) {
		f.StringVar(&in.input, "input", "", "fields as an object of JSON; @FILE: in a file; -: on standard input")
		f.StringVar(&in.configDir, "config-dir", "", "directory of the module's configuration, NAME.conf or NAME.cfg; empty: that of the module")
	},
	run: runActionTry,
}

func twoAndMore(cmd *cobra.Command, args []string) error {
	if len(args) < 2 {
		return usageError{fault.New(fault.Invalid, "%s missing; usage: %s", areMissing([]string{"PATH", "ACTION"}[len(args):]), cmd.UseLine())}
	}
	return nil
}

// triedAction is what -o json prints.
type triedAction struct {
	Module  string          `json:"module"`
	Action  string          `json:"action"`
	State   action.Code     `json:"state"`
	Message string          `json:"message,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func runActionTry(ctx context.Context, c *call, in *actionTryInput) error {
	given := taskParams{texts: map[string]string{}, values: map[string]json.RawMessage{}, shown: map[string]bool{}}
	for _, word := range c.args[2:] {
		name, value, pair := strings.Cut(word, "=")
		if !pair {
			return usageError{fault.New(fault.Invalid, "%.80q is no field of the input: those are FIELD=VALUE", word)}
		}
		if err := given.text(name, value, true); err != nil {
			return err
		}
	}
	if err := readInput(c.app, given, in.input); err != nil {
		return err
	}
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	trial := agent.Trial{
		Binary: binary, Path: c.args[0], ConfigDir: in.configDir, Action: c.args[1], Texts: given.texts, Values: given.values,
		Log: slog.New(slog.NewTextHandler(c.system.Err, nil)),
	}
	if trial.ConfigDir == "" {
		trial.ConfigDir = filepath.Dir(trial.Path)
	}
	if trial.ConfigDir, err = filepath.Abs(trial.ConfigDir); err != nil {
		return err
	}
	tried, err := trial.Try(ctx)
	if err != nil {
		return err
	}
	return c.printTried(trial, tried)
}

// readInput reads --input.
func readInput(a *app, given taskParams, text string) error {
	file, isFile := strings.CutPrefix(text, "@")
	switch {
	case text == "":
		return nil
	case text == "-":
		return given.object("standard input", a.system.In, false)
	case isFile:
		from, err := openFile(file)
		if err != nil {
			return err
		}
		defer func() { _ = from.Close() }()
		return given.object(file, from, false)
	}
	return given.object("--input", strings.NewReader(text), true)
}

func (c *call) printTried(trial agent.Trial, tried agent.Tried) error {
	a := tried.Answer
	if c.printer().ForPrograms() {
		if err := c.printer().Thing(triedAction{tried.Module, trial.Action, a.Code, a.Message, json.RawMessage(a.Data)}); err != nil {
			return err
		}
	} else if err := c.printResults(tried.Action, a.Data); err != nil {
		return err
	}
	if a.Code != action.Done {
		return jobOutcome{exitSomeFailed, a.Code.String() + ": " + a.Message}
	}
	if said := strings.TrimSpace(tried.Stderr); said != "" {
		c.hint("On standard error: %.2000s", said)
	}
	return nil
}

// printResults prints the fields of results, each under its title, in the order that their schema has.
func (c *call) printResults(a action.Action, data []byte) error {
	if len(data) == 0 || string(data) == "null" {
		return nil
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(data, &values); err != nil { // it is no object
		return c.printer().Text(string(data) + "\n")
	}
	schema, err := action.Compile(a.Results)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, f := range schema.Fields() {
		if value, there := values[f.Name]; there {
			rows = append(rows, []string{f.Title, fieldText(value)})
			delete(values, f.Name)
		}
	}
	var rest [][]string
	for name, value := range values {
		rest = append(rest, []string{name, fieldText(value)})
	}
	slices.SortFunc(rest, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return print.Rows(func(rows [][]string) [][]string { return rows })(c.printer(), append(rows, rest...))
}

// fieldText is a value as people read it: a text without quotes.
func fieldText(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}
