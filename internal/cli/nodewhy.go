package cli

import (
	"context"
	"strconv"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

var nodeSummary = verb[api.NodeSummaryRequest]{
	use: "summary", short: "Count nodes by the state of their last run",
	long: `Count nodes by the state of their last run, and by whether their agent is connected: all, or those that everything holds for
that is given. The states add up to the number of nodes.`,
	example: "  tutti node summary\n  tutti node summary --group 'Web servers' -o json",
	flags: func(f flagSet, in *api.NodeSummaryRequest) {
		f.StringVar(&in.Where, "where", "", "only nodes that this PQL condition holds for")
		f.StringVar(&in.Group, "group", "", "only nodes in this group (name or id)")
		f.StringVarP(&in.Environment, "environment", "e", "", "only nodes of this environment")
		f.completes("where", completeCondition)
		f.completes("group", completeGroup)
	},
	run: func(ctx context.Context, c *call, in *api.NodeSummaryRequest) error {
		if _, err := readCondition(in.Where); err != nil {
			return err
		}
		return showAnswer(ctx, c.app, api.NodeSummary, *in, print.Rows(func(n api.NodeCounts) [][]string {
			return [][]string{
				{"Nodes", strconv.Itoa(n.Nodes)},
				{"Failed", strconv.Itoa(n.States.Failed)},
				{"Corrective", strconv.Itoa(n.States.Corrective)},
				{"Changed", strconv.Itoa(n.States.Changed)},
				{"Pending", strconv.Itoa(n.States.Pending)},
				{"Unchanged", strconv.Itoa(n.States.Unchanged)},
				{"Never reported", strconv.Itoa(n.States.None)},
				{"Connected", strconv.Itoa(n.Connections.Yes)},
				{"Not connected", strconv.Itoa(n.Connections.No)},
				{"Never connected", strconv.Itoa(n.Connections.Never)},
				{"Late", strconv.Itoa(n.Late)},
			}
		}))
	},
}

var nodeWhy = verb[api.NameRequest]{
	use: "why NODE", short: "Say why a node's last run failed",
	long: `Say why a node's last run failed: what failed first, with its place in the code, what was skipped because of it, and the last run
that did not fail.`,
	example: "  tutti node why web-1.example.test",
	into:    byName,
	run:     shows(api.NodeWhy, printReasons),
}

func printReasons(to print.Printer, w api.NodeReasons) error {
	now := time.Now()
	if e := w.CompileError; e != nil {
		to.Line("Its catalog does not compile: " + placed(e.Message, e.File, e.Line))
	}
	switch {
	case w.Report == nil:
		to.Line("It has never reported.")
	case w.Report.Status != "failed":
		to.Line("The last run, " + print.AgoOf(&w.Report.ReceivedAt, now) + ", did not fail.")
	case w.FailedCount == 0:
		to.Line("The last run, " + print.AgoOf(&w.Report.ReceivedAt, now) + ", failed as a whole:")
	default:
		to.Line(fault.Count(w.FailedCount, "resource") + " failed " + print.AgoOf(&w.Report.ReceivedAt, now) + ", " + strconv.Itoa(w.SkippedCount) + " skipped:")
	}
	for _, line := range w.Log {
		to.Line("  " + placed(line.Message, line.File, line.Line))
	}
	below := map[string][]api.SkippedResource{}
	for _, s := range w.Skipped {
		below[s.Because] = append(below[s.Because], s)
	}
	var tree func(because, indent string)
	tree = func(because, indent string) {
		for _, s := range below[because] {
			to.Line(indent + "skipped " + placed(s.Resource, s.File, s.Line))
			if s.Resource != because {
				tree(s.Resource, indent+"  ")
			}
		}
	}
	for _, f := range w.Failed {
		to.Line("  failed " + placed(f.Resource, f.File, f.Line))
		to.Line("    " + f.Message)
		tree(f.Resource, "    ")
	}
	if len(below[""]) > 0 {
		to.Line("  skipped, and the catalog does not say why:")
		tree("", "    ")
	}
	if w.LastGood != nil {
		to.Line("The last run that did not fail: " + print.AgoOf(&w.LastGood.ReceivedAt, now) + ", version " + w.LastGood.Version +
			"; `tutti report show " + w.LastGood.ID[:min(len(w.LastGood.ID), 12)] + "`")
	}
	return nil
}

// placed adds to words where they are from.
func placed(text, file string, line int) string {
	if file == "" {
		return text
	}
	return text + " (" + file + ":" + strconv.Itoa(line) + ")"
}
