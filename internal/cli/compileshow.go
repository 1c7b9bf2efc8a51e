package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

var compileShow = verb[api.Nothing]{
	use: "show ID|NODE", short: "Show a compilation: what it read, its cost, its error and its logs",
	long:    "Show one compilation by its number, or the newest one of a node: what it read, what it cost, why it failed, and what the compiler wrote.",
	example: "  tutti compile show 4711\n  tutti compile show web-1.example.test -o json",
	run: func(ctx context.Context, c *call, _ *api.Nothing) error {
		id, err := compilationNamed(ctx, c.app, c.args[0])
		if err != nil {
			return err
		}
		return showAnswer(ctx, c.app, api.CompileShow, api.CompileShowRequest{ID: id}, func(to print.Printer, record api.CompilationRecord) error {
			return to.Rows(nil, recordRows(record, time.Now()))
		})
	},
}

// compilationNamed is the number of a compilation: name itself, or that of a node's
// newest one.
func compilationNamed(ctx context.Context, a *app, name string) (string, error) {
	if _, err := strconv.ParseInt(name, 10, 64); err == nil {
		return name, nil
	}
	page, err := ask(ctx, a, api.CompileList, api.CompileListRequest{Node: name, Limit: 1})
	if err != nil {
		return "", err
	}
	if len(page.Items) == 0 {
		return "", fault.New(fault.NotFound, "no compilation of %s is known; to compile its catalog: tutti compile now %s", name, name)
	}
	return fmt.Sprint(page.Items[0].ID), nil
}

// recordRows are the facts of a compilation that there are.
func recordRows(r api.CompilationRecord, now time.Time) (rows [][]string) {
	add := func(what, value string) {
		if value != "" {
			rows = append(rows, []string{what, value})
		}
	}
	add("compilation", fmt.Sprint(r.ID))
	add("node", r.Node)
	add("environment", r.Environment+", version "+short(r.Version))
	add("state", compilationState(r.Compilation))
	add("wanted", fmt.Sprintf("%s, for %s", print.Ago(r.WantedAt, now), priorityText(r.Priority)))
	if r.Checks != 0 {
		add("checks", fmt.Sprintf("the catalog of %d, which was used again", r.Checks))
	}
	add("attempts", fmt.Sprint(r.Attempts))
	add("worker", r.Worker)
	if r.Error == nil {
		add("trouble", compilationError(r.Compilation))
	}
	if r.FinishedAt != nil {
		add("finished", print.Ago(*r.FinishedAt, now))
	}
	add("catalog", short(r.Catalog))
	if r.WallMillis > 0 {
		add("cost", fmt.Sprintf("%s, %s of CPU, %s of memory at most", print.Duration(time.Duration(r.WallMillis)*time.Millisecond),
			print.Duration(time.Duration(r.CPUMillis)*time.Millisecond), print.Bytes(r.PeakBytes)))
	}
	if in := r.Inputs; in != nil {
		add("read", fmt.Sprintf("%s, %s, %s", fault.Count(in.Values, "value"), fault.Count(in.Sources, "path"), fault.Count(in.Questions, "question")))
		add("volatile", strings.Join(in.Volatile, "; "))
	}
	if e := r.Error; e != nil {
		add("error", e.Cause+": "+e.Message)
		add("where", fleet.Place(e.File, e.Line))
	}
	for _, l := range r.Logs {
		add("log", strings.TrimSpace(l.Level+": "+l.Message+" "+fleet.Place(l.File, l.Line)))
	}
	return rows
}
