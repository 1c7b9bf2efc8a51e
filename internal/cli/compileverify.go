package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

// verifyOrder is whose catalogs are verified.
type verifyOrder struct {
	nodes                []string
	environment, version string
	sample               int
	all                  bool
}

var compileVerify = verb[verifyOrder]{
	use: "verify [NODE...]", short: "Compare catalogs with what plain Puppet gives", args: cobra.ArbitraryArgs,
	prints: results,
	long: `Have plain Puppet compile the catalogs of nodes once more, each in a fresh process that
shares none of Tutti's compiler, and compare: resources, parameters, tags, edges,
exported resources, and their order. What Puppet asks of the inventory is answered as it
was when Tutti compiled. Catalogs are verified one after the other, in the environments
that their nodes have.

same            equal, or both fail with the same message
differs         an alarm: no catalog of that version is used again, it is compiled each time
not-comparable  the code reads a clock, chance or the world outside, or what the catalog
                was made of changed since; the reason says which
failed          plain Puppet could not be run to its end

The exit code is 0 when all are the same, 3 when one differs, 4 when one could not be
verified, 5 when one could not be compared.`,
	example: `  tutti compile verify web-1.example.test
  tutti compile verify --sample 10 --environment production
  tutti compile verify --all -o json
  tutti compile verify web-1.example.test --version 3fdc0a1b`,
	flags: func(f flagSet, in *verifyOrder) {
		f.IntVar(&in.sample, "sample", 0, "one node of each of so many sets of classes, those that most nodes have")
		f.BoolVar(&in.all, "all", false, "all nodes of the environment")
		f.StringVarP(&in.environment, "environment", "e", "production", "of --sample and --all")
		f.StringVar(&in.version, "version", "", "of this version of the code, or the beginning of its digest, instead of the current one")
	},
	run: func(ctx context.Context, c *call, in *verifyOrder) error {
		in.nodes = c.args
		ways := 0
		for _, chosen := range []bool{len(c.args) > 0, in.sample != 0, in.all} {
			if chosen {
				ways++
			}
		}
		if ways != 1 || in.sample < 0 {
			return usageError{fmt.Errorf("name nodes, or give --sample or --all; usage: %s", c.cmd.UseLine())}
		}
		return verifyAll(ctx, c.app, *in)
	},
}

func verifyAll(ctx context.Context, a *app, order verifyOrder) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	if err := order.choose(ctx, client); err != nil {
		return err
	}
	var found []api.Verification
	for _, node := range order.nodes {
		v, err := order.verify(ctx, client, node)
		if err != nil {
			return err
		}
		found = append(found, v)
		if len(order.nodes) > 1 {
			a.hint("%d of %d: %s: %s", len(found), len(order.nodes), v.Node, v.Outcome)
		}
	}
	if err := print.List(a.printer(), found, verificationTable()); err != nil {
		return err
	}
	if err := printDifferences(a, found); err != nil {
		return err
	}
	return verifyVerdict(found)
}

// choose finds the nodes that are meant.
func (o *verifyOrder) choose(ctx context.Context, client *api.Client) error {
	switch {
	case o.all:
		return api.All(ctx, client, api.NodeList, func(after string) api.NodeListRequest {
			return api.NodeListRequest{Environment: o.environment, After: after}
		}, func(node api.Node) error {
			o.nodes = append(o.nodes, node.Name)
			return nil
		})
	case o.sample > 0:
		page, err := api.CompileSample.Call(ctx, client, api.CompileSampleRequest{Environment: o.environment, Sample: o.sample})
		o.nodes = page.Items
		return err
	}
	return nil
}

// verify verifies one. A node that has no catalog of the version is no error among many.
func (o *verifyOrder) verify(ctx context.Context, client *api.Client, node string) (api.Verification, error) {
	v, err := api.CompileVerify.Call(ctx, client, api.CompileVerifyRequest{Node: node, Version: o.version})
	if known, ok := errors.AsType[*fault.Error](err); ok && known.Kind == fault.NotFound && len(o.nodes) > 1 {
		return api.Verification{
			Node: node, Version: o.version, Outcome: "not-comparable", Cause: "hand", Reason: known.Detail, Differences: []api.VerifyDifference{},
		}, nil
	}
	return v, err
}

// verifyVerdict is nil when all are the same.
func verifyVerdict(found []api.Verification) error {
	counts := map[string]int{}
	for _, v := range found {
		counts[v.Outcome]++
	}
	switch {
	case counts["differs"] > 0:
		return jobOutcome{exitDiffers, fmt.Sprintf("not what plain Puppet gives: %d of %s", counts["differs"], fault.Count(len(found), "catalog"))}
	case counts["failed"] > 0:
		return jobOutcome{exitSomeFailed, fmt.Sprintf("%d of %s could not be verified", counts["failed"], fault.Count(len(found), "catalog"))}
	case counts["not-comparable"] > 0:
		return jobOutcome{exitRefused, fmt.Sprintf("%d of %s could not be compared", counts["not-comparable"], fault.Count(len(found), "catalog"))}
	}
	return nil
}

func verificationTable() print.Table[api.Verification] {
	return print.Table[api.Verification]{
		Columns: []string{"node", "environment", "version", "catalog", "outcome", "differences", "why", "when"},
		Spare:   []string{"catalog", "version", "environment", "when"},
		Row: func(v api.Verification) []any {
			return []any{v.Node, v.Environment, print.ID(v.Version), print.ID(v.Catalog), print.State(v.Outcome), v.Count, v.Reason, v.At}
		},
		Name:  func(v api.Verification) string { return fmt.Sprint(v.ID) },
		Empty: "Nothing was verified.",
	}
}

// printDifferences shows people what differs.
func printDifferences(a *app, found []api.Verification) error {
	if a.printer().ForPrograms() || a.quiet {
		return nil
	}
	var out strings.Builder
	for _, v := range found {
		for _, d := range v.Differences {
			fmt.Fprintf(&out, "\n%s: %s\n", v.Node, strings.TrimSpace(d.Resource+" "+d.What))
			if d.Tutti != "" {
				fmt.Fprintf(&out, "  Tutti         %s\n", print.OneLine(d.Tutti))
			}
			if d.Plain != "" {
				fmt.Fprintf(&out, "  plain Puppet  %s\n", print.OneLine(d.Plain))
			}
		}
		if v.Count > len(v.Differences) {
			fmt.Fprintf(&out, "%s: %d more\n", v.Node, v.Count-len(v.Differences))
		}
	}
	return a.printer().Text(out.String())
}

var compileVerifications = verb[api.CompileVerifiedRequest]{
	use: "verifications", short: "List catalogs that were compared with what plain Puppet gives, the latest first",
	prints: aList,
	long: `List catalogs that were compared with what plain Puppet gives, the latest first: those that somebody asked for, those of
one node for each of some sets of classes after a deploy (setting verify_after_deploy), and those of a share of all compilations
(verify_share). -o json has the differences.`,
	example: `  tutti compile verifications
  tutti compile verifications --outcome differs -o json`,
	flags: func(f flagSet, in *api.CompileVerifiedRequest) {
		f.StringVar(&in.Node, "node", "", "of this node")
		f.StringVarP(&in.Environment, "environment", "e", "", "of this environment")
		f.StringVar(&in.Version, "version", "", "of this version of the code, its whole digest")
		f.StringVar(&in.Outcome, "outcome", "", "with this outcome: same, differs, not-comparable or failed")
	},
	run: pages(api.CompileVerified, nextVerified, func(*api.CompileVerifiedRequest) print.Table[api.Verification] { return verificationTable() }),
}

func nextVerified(in *api.CompileVerifiedRequest, after string, _ int) { in.After = after }

// verifiedText says how a version's catalogs stand to plain Puppet; empty when none was compared.
func verifiedText(v *api.CodeVerified) string {
	switch {
	case v == nil:
		return ""
	case v.Differs > 0:
		return fmt.Sprintf("ALARM: %s not what plain Puppet gives (%s): no catalog of this version is used again; "+
			"see `tutti compile verifications --outcome differs`\n", fault.Are(v.Differs, "catalog"), strings.Join(v.Nodes, ", "))
	}
	return fmt.Sprintf("compared with plain Puppet: %d the same, %d not comparable, %d failed\n", v.Same, v.NotComparable, v.Failed)
}
