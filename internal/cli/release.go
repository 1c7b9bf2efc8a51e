package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

var releaseCommand = asking{noun{
	use: "release", short: "Hand the catalogs of a preview to nodes, in waves",
	verbs: []declared{
		releaseCreate, releaseList, releaseShow, releaseNodes, releaseWatch, releasePromote, releasePause, releaseResume,
		releaseAbort, releaseApprove, releaseRefresh,
	},
}}

// releaseExits is what the help of commands that wait for a release says of exit codes.
const releaseExits = `Exit codes: 0 every node has its catalog and applied it; 4 some failed, or the release was aborted or paused by failures; 5 refused: by a
rule, a freeze, an approval that is missing, or because nodes are superseded, pinned or in live mode; 6 nodes were offline or took too long.`

// waveFlags say how a release goes on.
type waveFlags struct {
	api.ReleaseOptions
	budget                     string
	soak, timeout, waitOffline time.Duration
}

func (in *waveFlags) add(f flagSet) {
	f.StringArrayVar(&in.Waves, "wave", nil, "a wave: 1% or 10 of all nodes, @GROUP, or rest; may be given many times; none: all at once")
	f.StringVar(&in.budget, "max-failures", "0", "more failed nodes than this pause the release; none: no bound")
	f.StringVar(&in.Promote, "promote", "", "when the next wave begins: auto (at once), manual (tutti release promote) or soak (after --soak)")
	f.duration(&in.soak, "soak", 0, "time between waves")
	f.BoolVar(&in.NoopFirst, "noop-first", false, "run each wave in noop mode first; nodes that fail in it are not run")
	f.IntVar(&in.Concurrency, "concurrency", 0, "how many runs at the same time; 0: all of a wave")
	f.duration(&in.timeout, "run-timeout", 0, "how long a run may take; 0: as the server is set")
	f.duration(&in.waitOffline, "wait-offline", 0, "how long a wave waits for nodes that are not connected")
	f.StringVar(&in.ApproveBy, "approve-by", "", "somebody with this `ROLE`, not the author, has to approve it before it begins")
	f.offers("promote", "auto", "manual", "soak")
}

// options is what the flags say.
func (in *waveFlags) options() (api.ReleaseOptions, error) {
	o := in.ReleaseOptions
	if in.budget != "none" {
		n, err := strconv.Atoi(in.budget)
		if err != nil || n < 0 {
			return o, usageError{fault.New(fault.Invalid, "--max-failures is a number of nodes, or none, not %.40q", in.budget)}
		}
		o.MaxFailures = &n
	}
	if in.soak > 0 && o.Promote == "" {
		o.Promote = "soak"
	}
	o.Soak, o.Timeout, o.WaitOffline = int64(in.soak/time.Second), int64(in.timeout/time.Second), int64(in.waitOffline/time.Second)
	return o, nil
}

type releaseCreateInput struct {
	waves       waveFlags
	targets     targetFlags
	request     api.ReleaseCreateRequest
	preview     string
	noWait, yes bool
}

var releaseCreate = verb[releaseCreateInput]{
	use: "create --preview PREVIEW", short: "Release exactly the catalogs of a preview to its nodes, in waves, and watch it",
	args: exactly(0),
	long: `Release exactly the catalogs of a preview to its nodes that change, or to those of them that flags name. Nothing is compiled: what was
reviewed is what is applied. Wave by wave each node's catalog is set and Puppet is run.

A node that has another catalog by now than the preview compared with, or whose facts or other inputs changed meanwhile, is superseded: it is
named with the reason and left out. With --refresh those are previewed again, for another release. Nodes take releases in released mode only
(tutti catalog mode), unless they are pinned. Ctrl-C leaves the release going on.

` + releaseExits,
	example: `  tutti release create --preview 3
  tutti release create --preview 3 --wave 1% --wave 10% --wave rest --max-failures 2
  tutti release create --preview 3 --wave @canary --wave rest --soak 30m --approve-by lead`,
	flags: func(f flagSet, in *releaseCreateInput) {
		f.StringVar(&in.preview, "preview", "", "the preview, which is ready")
		f.StringVar(&in.request.Description, "description", "", "what it is about, for people")
		f.BoolVar(&in.request.Refresh, "refresh", false, "make a new preview of nodes that are superseded")
		f.BoolVar(&in.request.DryRun, "dry-run", false, "show waves and nodes, and release nothing")
		f.BoolVar(&in.noWait, "no-wait", false, "print the release's number and do not watch it")
		f.BoolVarP(&in.yes, "yes", "y", false, "do not ask, however many nodes there are")
		in.waves.add(f)
		addTargetFlags(f, &in.targets)
	},
	run: func(ctx context.Context, c *call, in *releaseCreateInput) (err error) {
		if in.request.Preview, err = strconv.ParseInt(in.preview, 10, 64); err != nil || in.request.Preview < 1 {
			return usageError{fault.New(fault.Invalid, "which preview? give --preview: a number that `tutti preview list` shows")}
		}
		if in.request.ReleaseOptions, err = in.waves.options(); err != nil {
			return err
		}
		if !in.targets.none() {
			if in.request.Targets, err = readTargets(c.app, in.targets); err != nil {
				return err
			}
		}
		dry := in.request.DryRun
		in.request.DryRun = true
		client, plan, err := planRelease(ctx, c.app, api.ReleaseCreate, in.request)
		if err != nil {
			return err
		}
		if dry {
			return showPlan(c.printer(), plan)
		}
		in.request.DryRun = false
		return makeRelease(ctx, c.app, client, api.ReleaseCreate, in.request, plan, in.noWait, in.yes)
	},
}

// planRelease asks what a release would be.
func planRelease[Request any](
	ctx context.Context, a *app, op api.Op[Request, api.ReleaseReport], dryRun Request,
) (client *api.Client, plan api.ReleaseReport, err error) {
	if client, err = a.client(); err != nil {
		return nil, plan, err
	}
	plan, err = op.Call(ctx, client, dryRun)
	return client, plan, err
}

// showPlan prints what a release would be.
func showPlan(to print.Printer, plan api.ReleaseReport) error {
	if to.ForPrograms() {
		return to.Thing(plan)
	}
	return printPlan(plan, to.Linef)
}

// makeRelease says what a release will be, makes it, and watches it.
func makeRelease[Request any](
	ctx context.Context, a *app, client *api.Client, op api.Op[Request, api.ReleaseReport], request Request, plan api.ReleaseReport, noWait, yes bool,
) error {
	if err := printPlan(plan, func(format string, args ...any) error { a.hint(format, args...); return nil }); err != nil {
		return err
	}
	if n := plan.Counts["waiting"]; n > 0 {
		if _, err := a.confirmed(plan.Kind+" changes the catalog", n, yes); err != nil {
			return err
		}
	}
	made, err := op.Call(ctx, client, request)
	if err != nil {
		return err
	}
	a.hint("Release %s: %s", made.ID, releaseSummary(made.Release))
	if made.Refreshed != "" {
		a.hint("Superseded nodes are previewed again: tutti preview watch %s", made.Refreshed)
	}
	if noWait {
		a.hint("Watch it with: tutti release watch %s", made.ID)
		if a.printer().ForPrograms() {
			return a.printer().Thing(made)
		}
		return a.printer().Linef("%s", made.ID)
	}
	return watchRelease(ctx, a, client, made.ID)
}

// printPlan says what a release would be.
func printPlan(p api.ReleaseReport, say func(format string, args ...any) error) error {
	lines := []string{}
	for _, w := range p.Waves {
		lines = append(lines, fmt.Sprintf("wave %d (%s): %s%s", w.Number, w.Size, fault.Count(w.Nodes, "node"), waveNodes(w)))
	}
	if len(p.Waves) > 1 && slices.ContainsFunc(p.Waves, drawn) {
		lines = append(lines, "the nodes of a wave of a number or a share are drawn by their names, the same each time; --wave @GROUP names them")
	}
	if p.Already > 0 {
		lines = append(lines, fmt.Sprintf("%s already as wanted and left alone", fault.Count(p.Already, "node")))
	}
	named := p.Left[:min(len(p.Left), namedAtMost)]
	for _, t := range named {
		lines = append(lines, fmt.Sprintf("left out: %s is %s: %s", t.Name, t.State, print.OneLine(t.Reason)))
	}
	if more := leftOut(p) - len(named); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more that are left out", more))
	}
	for _, f := range p.Findings {
		lines = append(lines, fmt.Sprintf("rule %s (%s): %s", f.Rule, f.Effect, print.OneLine(f.Message)))
	}
	for _, n := range p.Needs {
		lines = append(lines, "needs the approval of somebody with the role "+n.Role)
	}
	if p.Frozen != "" {
		lines = append(lines, "nothing begins "+p.Frozen)
	}
	for _, line := range lines {
		if err := say("  %s", line); err != nil {
			return err
		}
	}
	return nil
}

// namedAtMost is how many nodes are named that a release leaves out.
const namedAtMost = 10

// leftOut is how many nodes are in no wave: the answer names some of them only.
func leftOut(p api.ReleaseReport) (nodes int) {
	for _, n := range p.Counts {
		nodes += n
	}
	for _, w := range p.Waves {
		nodes -= w.Nodes
	}
	return nodes
}

// fewNodes is of how many nodes a wave has all of them named.
const fewNodes = 3

// waveNodes names the nodes of a small wave, and the first of one that is drawn.
func waveNodes(w api.ReleaseWave) string {
	switch more := w.Nodes - fewNodes; {
	case len(w.First) == 0, more > 0 && !drawn(w):
		return ""
	case more > 0 && len(w.First) > fewNodes:
		return fmt.Sprintf(": %s and %d more", strings.Join(w.First[:fewNodes], ", "), more)
	}
	return ": " + strings.Join(w.First, ", ")
}

// drawn says whether it is left to the server which nodes a wave has.
func drawn(w api.ReleaseWave) bool { return w.Size != "rest" && !strings.HasPrefix(w.Size, "@") }

var releaseList = verb[api.ReleaseListRequest]{
	use: "list", short: "List releases, newest first", example: "  tutti release list --state running",
	prints: aList,
	flags: func(f flagSet, in *api.ReleaseListRequest) {
		f.StringVarP(&in.Environment, "environment", "e", "", "those of this environment")
		f.StringVar(&in.State, "state", "", "waiting_approval, running, paused, stopping, done, done_with_failures or aborted")
	},
	run: pages(api.ReleaseList, nextReleases, func(*api.ReleaseListRequest) print.Table[api.Release] {
		return print.Table[api.Release]{
			Columns: []string{"release", "of", "environment", "state", "wave", "nodes", "done", "failed", "by", "made", "description"},
			Spare:   []string{"description", "made", "by", "of", "environment", "wave"},
			Row: func(r api.Release) []any {
				return []any{
					r.ID, releaseSource(r), r.Environment, print.State(stateText(r.State)), fmt.Sprintf("%d/%d", r.Wave, len(r.Waves)), r.Nodes,
					r.Counts["ok"] + r.Counts["changed"], r.Failures, r.Author, r.CreatedAt, r.Description,
				}
			},
			Name:  func(r api.Release) string { return r.ID },
			Empty: "No releases. `tutti release create --preview PREVIEW` makes one.",
		}
	}),
}

func nextReleases(in *api.ReleaseListRequest, after string, limit int) {
	in.After, in.Limit = after, limit
}

// releaseSource is what a release's catalogs are from.
func releaseSource(r api.Release) string {
	switch {
	case r.Preview != "":
		return "preview " + r.Preview
	case r.RollsBack != "":
		return "back from release " + r.RollsBack
	}
	return "roll back"
}

// releaseSummary is a release in a line.
func releaseSummary(r api.Release) string {
	text := fmt.Sprintf("%s, %s", releaseSource(r), stateText(r.State))
	if r.Reason != "" {
		text += ": " + print.OneLine(r.Reason)
	}
	return fmt.Sprintf("%s; wave %d of %d; %s: %s", text, r.Wave, len(r.Waves), fault.Count(r.Nodes, "node"), releaseCounts(r.Counts))
}

// releaseOrder is the states of targets as they are counted for people.
var releaseOrder = []string{"changed", "ok", "failed", "foreign", "timed_out", "offline", "skipped", "superseded", "refused", "applying", "sent", "waiting"}

func releaseCounts(counts map[string]int) string {
	var words []string
	for _, state := range releaseOrder {
		if n := counts[state]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, stateText(state)))
		}
	}
	return strings.Join(words, ", ")
}

var releaseShow = verb[api.ReleaseShowRequest]{
	use: "show RELEASE", short: "Show a release, its waves, and what happened in it", example: "  tutti release show 7",
	into: func(in *api.ReleaseShowRequest, args []string) { in.Release = args[0] },
	run:  shows(api.ReleaseShow, print.Words(releaseText)),
}

func releaseText(r api.ReleaseReport) string {
	var text strings.Builder
	fmt.Fprintf(&text, "Release %s: %s\n", r.ID, releaseSummary(r.Release))
	for _, line := range spared(r.Release) {
		fmt.Fprintf(&text, "  %s\n", line)
	}
	for _, w := range r.Waves {
		job := ""
		if w.Job != "" {
			job = ", job " + w.Job
		}
		counts := ""
		if w.StartedAt != nil && len(w.Counts) > 0 {
			counts = ": " + releaseCounts(w.Counts)
		}
		fmt.Fprintf(&text, "  wave %d (%s): %s, %s%s%s\n", w.Number, w.Size, fault.Count(w.Nodes, "node"), w.State, job, counts)
	}
	for _, n := range r.Needs {
		approval := "needs"
		if n.Met {
			approval = "has"
		}
		fmt.Fprintf(&text, "  %s the approval of %s\n", approval, n.Role)
	}
	for _, e := range r.Entries {
		by := "tutti"
		if e.By != "" {
			by = e.By
		}
		fmt.Fprintf(&text, "  %s  %s: %s\n", e.At.Local().Format(time.DateTime), by, print.OneLine(e.Text))
	}
	return text.String()
}

var releaseNodes = verb[api.ReleaseTargetsRequest]{
	use: "nodes RELEASE", short: "List the nodes of a release, how each stands, and why",
	prints:  aList,
	example: "  tutti release nodes 7\n  tutti release nodes 7 --state failed,superseded",
	flags: func(f flagSet, in *api.ReleaseTargetsRequest) {
		f.StringVar(&in.State, "state", "", "those that stand like this, several with commas")
		f.IntVar(&in.Wave, "wave", 0, "those of this wave")
	},
	into: func(in *api.ReleaseTargetsRequest, args []string) { in.Release = args[0] },
	run: pages(api.ReleaseTargets, nextTargets, func(*api.ReleaseTargetsRequest) print.Table[api.ReleaseTarget] {
		return print.Table[api.ReleaseTarget]{
			Columns: []string{"node", "wave", "state", "generation", "catalog", "reason"},
			Spare:   []string{"catalog", "generation", "wave"},
			Row: func(t api.ReleaseTarget) []any {
				return []any{t.Name, someNumber(t.Wave), print.State(stateText(t.State)), someNumber(t.Generation), print.ID(t.Catalog), t.Reason}
			},
			Name:  func(t api.ReleaseTarget) string { return t.Name },
			Empty: "No such nodes.",
		}
	}),
}

func nextTargets(in *api.ReleaseTargetsRequest, after string, limit int) {
	in.After, in.Limit = after, limit
}
