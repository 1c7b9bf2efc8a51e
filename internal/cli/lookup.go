package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/yamljson"
)

type lookupFlags struct {
	request  api.NodeLookupRequest
	fallback string
}

// lookup is `puppet lookup` with the server's code.
var lookup = asking{verb[lookupFlags]{
	use: "lookup KEY...", short: "Ask Hiera what it gives for a node, and why",
	args: func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usageError{fault.New(fault.Invalid, "which key? usage: %s", cmd.UseLine())}
		}
		return nil
	},
	long: `Ask Hiera what it gives for a node: from the code and data on the server that the node gets, with the node's newest
facts, its trusted data and what groups give it. The server's compiler answers. Of several keys the first that is
found counts.

--explain shows where Hiera looked and what it found there, as 'puppet lookup --explain' does. Values are those of
Hiera before any manifest: --compile compiles the node's catalog first, for a hierarchy with variables of manifests.
Values that are Sensitive, or that eyaml decrypted, are not shown.

If nothing is found, the exit code is 1; if the code or data has a mistake, 4.`,
	example: `  tutti lookup ntp::servers --node web-1.example.test
  tutti lookup ntp::servers --node web-1.example.test --explain
  tutti lookup profile::users --node web-1.example.test --merge deep --environment test
  tutti lookup app::port --node web-1.example.test --default 8080 -o json`,
	flags: func(f flagSet, in *lookupFlags) {
		r := &in.request
		f.StringVar(&r.Name, "node", "", "whose facts and trusted data count; it must be given")
		f.StringVarP(&r.Environment, "environment", "e", "", "the data of this environment; default: of the node's")
		f.StringVar(&r.Merge, "merge", "", "how values of several layers become one: first, unique, hash, deep; default: as lookup_options say")
		f.StringVar(&r.KnockoutPrefix, "knock-out-prefix", "", "with --merge deep: what begins with this is taken out")
		f.BoolVar(&r.SortMergedArrays, "sort-merged-arrays", false, "with --merge deep: sort arrays")
		f.BoolVar(&r.MergeHashArrays, "merge-hash-arrays", false, "with --merge deep: merge hashes in arrays, too")
		f.StringVar(&in.fallback, "default", "", "the value if nothing is found")
		f.BoolVar(&r.Explain, "explain", false, "say where each value is from")
		f.BoolVar(&r.Compile, "compile", false, "compile the node's catalog before, so that variables of manifests have values")
		f.completes("node", completeNodes)
		f.offers("merge", "first", "unique", "hash", "deep")
	},
	run: runLookup,
}}

func runLookup(ctx context.Context, c *call, in *lookupFlags) error {
	request := in.request
	request.Keys = c.args
	deep := request.KnockoutPrefix != "" || request.SortMergedArrays || request.MergeHashArrays
	switch request.Merge {
	case "", "first", "unique", "hash", "deep":
	default:
		return usageError{fault.New(fault.Invalid, "--merge is first, unique, hash or deep, not %.40q", request.Merge)}
	}
	switch {
	case request.Name == "":
		return usageError{fault.New(fault.Invalid, "for which node? give --node NAME")}
	case deep && request.Merge != "deep":
		return usageError{fault.New(fault.Invalid, "--knock-out-prefix, --sort-merged-arrays and --merge-hash-arrays need --merge deep")}
	}
	if c.changed("default") {
		request.Default = &in.fallback
	}
	answer, err := ask(ctx, c.app, api.NodeLookup, request)
	if err != nil {
		return err
	}
	for _, l := range answer.Logs {
		c.hint("%s: %s", l.Level, l.Message)
	}
	if err := printLookup(c, answer); err != nil {
		return err
	}
	switch {
	case answer.Problem != "":
		return jobOutcome{exitSomeFailed, answer.Problem}
	case !answer.Found:
		return &fault.Error{
			Kind: fault.NotFound, Hint: lookFurther(request),
			Detail: fmt.Sprintf("Hiera has no value for %s for node %s in environment %s (version %s)",
				strings.Join(answer.Keys, ", "), answer.Node, answer.Environment, short(answer.Version)),
		}
	}
	return nil
}

func lookFurther(request api.NodeLookupRequest) string {
	if request.Explain {
		return "the explanation says where it looked"
	}
	return "--explain shows where it looked"
}

func printLookup(c *call, answer api.LookedUp) error {
	return print.One(c.printer(), answer, func(p print.Printer, answer api.LookedUp) error {
		if answer.Explanation != "" {
			return p.Text(strings.TrimRight(answer.Explanation, "\n") + "\n")
		}
		if !answer.Found {
			return nil
		}
		var text string
		if json.Unmarshal(answer.Value, &text) == nil {
			return p.Text(text + "\n")
		}
		document, err := yamljson.FromJSON(answer.Value)
		if err != nil {
			return err
		}
		return p.Text(string(document))
	})
}
