// Console measures the console in a real browser: the list of nodes of a small and of a large fleet (time to the first rows, to a filtered list,
// bytes, the server's processor time), a preview that changes every node, a job over all nodes while a page shows it, and what it costs the
// server when many browsers watch such a job. With -puppetboard the same list is shown by Puppetboard, which asks the same server.
// Method and figures: docs/benchmarks.md.
//
//	go run ./bench/console [-nodes 10000] [-large 50000] [-puppetboard DIR]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// settings are the knobs; they go into the report as they were.
type settings struct {
	Nodes    int `json:"nodes"`
	Large    int `json:"large"`
	Watchers int `json:"watchers"`
	Views    int `json:"views"`

	rivals.Knobs `json:"-"`
	only         string
	board        string
}

func main() {
	var s settings
	flag.IntVar(&s.Nodes, "nodes", 10_000, "nodes of the fleet, each with a connected agent")
	flag.IntVar(&s.Large, "large", 50_000, "nodes of the large fleet, of which only the list is shown; 0: none")
	flag.IntVar(&s.Watchers, "watchers", 100, "browsers that watch a job over all nodes")
	flag.IntVar(&s.Views, "views", 20, "how often a page is shown for the server's processor time")
	flag.StringVar(&s.only, "only", "", "list, large, preview or job: these cases alone, with what they need")
	flag.StringVar(&s.board, "puppetboard", "", "directory of Puppetboard's source; its libraries must be there")
	s.Flags(60*time.Minute, "the server's files and logs")
	flag.Parse()
	s.Main("console", s.run)
}

var columns = []string{
	"nodes", "first_rows_ms", "opened_ms", "filtered_ms", "sorted_ms", "kb", "requests", "server_cpu_ms", "sorted_cpu_ms",
	"frames_per_s", "long_tasks", "long_pairs", "worst_task_ms", "summaries_per_s", "done_s", "heard", "server_cores", "watching_cores", "others_cores",
}

func (s settings) run(ctx context.Context, dir string) error {
	if err := rivals.AllowOpenFiles(s.Nodes); err != nil {
		return err
	}
	return measure.Run(measure.Report{Name: "console", Settings: s}, columns, s.Out, func() ([]measure.Row, error) { return s.measure(ctx, dir) }, s.judge)
}

func (s settings) wants(name string) bool { return s.only == "" || s.only == name }

// measure takes a fleet with agents, and then a larger one that only was seen.
func (s settings) measure(ctx context.Context, dir string) ([]measure.Row, error) {
	var rows []measure.Row
	if s.only != "large" {
		some, err := s.onServer(ctx, filepath.Join(dir, "fleet"), s.Nodes, (*bench).fleetCases)
		if rows = append(rows, some...); err != nil {
			return rows, err
		}
	}
	if s.Large > 0 && s.wants("large") {
		some, err := s.onServer(ctx, filepath.Join(dir, "large"), s.Large, func(b *bench) []func(context.Context) (measure.Row, error) {
			return []func(context.Context) (measure.Row, error){b.reports, b.list}
		})
		if rows = append(rows, some...); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// onServer starts a server with a console, and does cases on it.
func (s settings) onServer(
	ctx context.Context, dir string, nodes int, cases func(*bench) []func(context.Context) (measure.Row, error),
) ([]measure.Row, error) {
	port, err := rivals.FreePort(ctx)
	if err != nil {
		return nil, err
	}
	args := append([]string{"--console-listen", "127.0.0.1:" + strconv.Itoa(port), "--console-plain", "--puppetdb-clients", boardName}, rivals.AsFastAsItCan...)
	return s.Alone(ctx, dir, args, func(tutti *rivals.Tutti, _ string) (rows []measure.Row, err error) {
		b, err := s.open(tutti, dir, nodes)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, b.close()) }()
		return measure.InTurn(ctx, cases(b)...)
	})
}

// judge compares with the budgets of the console.
func (s settings) judge(rows []measure.Row) []string {
	var notes []string
	aim := func(name, figure string, most float64, text string) {
		notes = append(notes, measure.Below(rows, name, figure, most, text)...)
	}
	small, large := listCase(s.Nodes), listCase(s.Large)
	aim(small, "first_rows_ms", 1500, fmt.Sprintf("list of %d nodes: first rows below 1.5 s, cold", s.Nodes))
	aim(small, "filtered_ms", 200, fmt.Sprintf("list of %d nodes: filtered below 200 ms", s.Nodes))
	aim(small, "server_cpu_ms", 30, fmt.Sprintf("list of %d nodes: below 30 ms of the server's processor time", s.Nodes))
	aim(large, "first_rows_ms", 3000, fmt.Sprintf("list of %d nodes: first rows below 3 s, cold", s.Large))
	aim(previewCase, "opened_ms", 1500, fmt.Sprintf("preview that changes %d nodes: open below 1.5 s", s.Nodes))
	aim(jobCase, "long_pairs", 1, "job: no task above 100 ms twice in a row")
	aim(jobCase, "summaries_per_s", 4.5, "job: at most 4 summaries a second")
	aim(watchCase(s.Watchers), "watching_cores", 0.25, fmt.Sprintf("%d browsers that watch a job: below a quarter of a core", s.Watchers))
	for _, row := range rows {
		if row.Case == jobCase {
			notes = append(notes, fmt.Sprintf("aim: job: 30 frames a second: %.1f; met: %t", row.Figures["frames_per_s"], row.Figures["frames_per_s"] >= 30))
		}
	}
	return notes
}
