package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

// releaseFlags say what is released, and how.
type releaseFlags struct {
	targetFlags
	request api.CatalogReleaseRequest
	timeout time.Duration
	yes     bool
}

var catalogRelease = verb[releaseFlags]{
	use: "release [NODE...] --version VERSION", short: "Release the catalogs of a version of the code to nodes in released mode",
	prints: results,
	args:   cobra.ArbitraryArgs,
	long: `Release the catalogs of a version of the code to nodes in released mode: what nodes have next. Catalogs that were
not compiled yet are compiled first; nobody is given them meanwhile. Then exactly what was prepared is released to
every node that has a catalog; the others are named, with the reason, and keep what they have.

` +
		strings.Replace(targetHelp, "before anything starts, and --dry-run starts nothing", "with what they would be given by --dry-run, which releases nothing", 1) +
		`

Exit codes: 0 all nodes have it, 4 some have no such catalog (it does not compile), 5 some refused (they are in live
mode, or pinned), 6 it was not compiled in time.`,
	example: `  tutti catalog release web-1.example.test --version 3f9c2a7d41e0
  tutti catalog release --group 'Web servers' --version 3f9c2a7d41e0 --dry-run
  tutti catalog release --where 'facts.role = "web"' --version 3f9c2a7d41e0 --why 'ticket 4711' --apply now`,
	complete: completeNodes,
	flags: func(f flagSet, in *releaseFlags) {
		addTargetFlags(f, &in.targetFlags)
		f.StringVar(&in.request.Version, "version", "", "the version: its id or commit, or at least six digits of it; see tutti code versions")
		f.StringVarP(&in.request.Environment, "environment", "e", "", "the environment that the version is of; empty: each node's own")
		f.BoolVar(&in.request.DryRun, "dry-run", false, "show what would be released to whom, and release nothing")
		f.StringVar(&in.request.Apply, "apply", "", "when connected agents run with it: now or scheduled; empty: as the server is set (hint_apply)")
		f.StringVar(&in.request.Why, "why", "", "why, for those who look at the generations later")
		f.duration(&in.timeout, "timeout", 10*time.Minute, "how long to wait for catalogs that have to be compiled")
		f.BoolVarP(&in.yes, "yes", "y", false, "do not ask, however many nodes there are")
		f.offers("apply", "now", "scheduled")
	},
	run: func(ctx context.Context, c *call, in *releaseFlags) error {
		in.names = append(in.names, c.args...)
		return releaseCatalogs(ctx, c.app, *in)
	},
}

// releaseCatalogs waits until all that can be is prepared, and releases that.
func releaseCatalogs(ctx context.Context, a *app, f releaseFlags) (err error) {
	if f.request.Version == "" {
		return usageError{fault.New(fault.Invalid, "which version? give --version: an id or commit that `tutti code versions` shows")}
	}
	if f.request.Targets, err = readTargets(a, f.targetFlags); err != nil {
		return err
	}
	client, err := a.client()
	if err != nil {
		return err
	}
	dry := f.request.DryRun
	plan, err := prepareRelease(ctx, a, client, &f)
	if err != nil {
		return err
	}
	if dry {
		if err := printRelease(a.printer(), plan, "Nothing was released."); err != nil {
			return err
		}
		return releaseOutcome(plan)
	}
	if plan.Counts["ready"] > 0 {
		if _, err := a.confirmed("releases version "+short(f.request.Version), plan.Counts["ready"], f.yes); err != nil {
			return err
		}
	}
	f.request.DryRun, f.request.Expect = false, plan.Digest
	done, err := api.CatalogRelease.Call(ctx, client, f.request)
	if err != nil {
		return err
	}
	if err := printRelease(a.printer(), done, ""); err != nil {
		return err
	}
	return releaseOutcome(done)
}

// Pauses between questions whether catalogs are there: short first.
const (
	firstPause   = 200 * time.Millisecond
	longestPause = 5 * time.Second
)

// prepareRelease has compiled what is missing and waits for it.
func prepareRelease(ctx context.Context, a *app, client *api.Client, f *releaseFlags) (plan api.CatalogReleased, err error) {
	f.request.DryRun = true
	late := time.NewTimer(f.timeout)
	defer late.Stop()
	told := 0
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		plan, err = api.CatalogRelease.Call(ctx, client, f.request)
		if err != nil {
			return plan, err
		}
		f.request.Ticket = plan.Ticket
		compiling := plan.Counts["compiling"]
		if compiling == 0 {
			return plan, nil
		}
		if compiling != told {
			a.hint("%d of %s are being compiled", compiling, fault.Count(len(plan.Nodes), "catalog"))
			told = compiling
		}
		select {
		case <-ctx.Done():
			return plan, ctx.Err()
		case <-late.C:
			return plan,
				jobOutcome{
					exitLate, fmt.Sprintf("%s were not compiled within %s; nothing was released; once more, it goes on: the same command",
						fault.Count(compiling, "catalog"), f.timeout),
				}
		case <-time.After(pause):
		}
	}
}

func printRelease(to print.Printer, r api.CatalogReleased, after string) error {
	if to.ForPrograms() {
		return to.Thing(r)
	}
	to.Hint("%s", strings.TrimSpace(countsOf(r.Counts)+". "+after))
	return print.List(to, r.Nodes, print.Table[api.NodeRelease]{
		Columns: []string{"node", "state", "generation", "catalog", "before", "reason"},
		Spare:   []string{"before", "catalog", "generation"},
		Row: func(n api.NodeRelease) []any {
			return []any{n.Node, print.State(n.State), someNumber(n.Generation), print.ID(n.Catalog), print.ID(n.Before), n.Reason}
		},
		Name:  func(n api.NodeRelease) string { return n.Node },
		Empty: "No nodes.",
	})
}

// countsOf is how many nodes are in which state.
func countsOf(counts map[string]int) string {
	var words []string
	for _, state := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%s %s", fault.Count(counts[state], "node"), state))
	}
	return strings.Join(words, ", ")
}

// releaseOutcome is nil when every node has it, or would.
func releaseOutcome(r api.CatalogReleased) error {
	text := "not every node has it: " + countsOf(r.Counts)
	switch {
	case r.Counts["failed"] > 0:
		return jobOutcome{exitSomeFailed, text}
	case r.Counts["refused"] > 0:
		return jobOutcome{exitRefused, text}
	case r.Counts["compiling"] > 0:
		return jobOutcome{exitLate, text}
	}
	return nil
}
