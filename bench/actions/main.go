// Actions measures calls of actions on a fleet of simulated agents, which lives in this process, through the API: how long it
// takes until every node has answered an action that reads, and what each answer costs the server, on some of the nodes and on all, also while
// some of them reconnect in the middle; how long an action that changes something, which is a job, takes until all rows are final; and
// what an idle server with some agents takes. A node that is told twice, or not at all, ends it with an error. Method and figures:
// docs/benchmarks.md.
//
//	go run ./bench/actions [-agents 10000] [-some 2000]
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// settings are the knobs; they go into the report as they were.
type settings struct {
	Agents int           `json:"agents"`
	Some   int           `json:"some"`
	Rounds int           `json:"rounds"`
	Settle time.Duration `json:"settle_ns"`

	rivals.Knobs `json:"-"`
}

func main() {
	var s settings
	flag.IntVar(&s.Agents, "agents", 10_000, "simulated agents, each with a certificate of its own")
	flag.IntVar(&s.Some, "some", 2000, "how many of them come first, and are asked before the others come")
	flag.IntVar(&s.Rounds, "rounds", 5, "calls of a kind, one after the other")
	flag.DurationVar(&s.Settle, "settle", 10*time.Second, "time before memory is measured")
	s.Flags(20*time.Minute, "the server's files and logs")
	flag.Parse()
	s.Main("actions", s.run)
}

var columns = []string{
	"calls", "p50_s", "max_s", "cut", "cut_ok", "cut_gone", "server_cpu_us_each", "server_cores", "client_cores", "others_cores",
	"rss_mb", "anon_mb", "tree_rss_mb",
}

func (s settings) run(ctx context.Context, dir string) error {
	if s.Some < oneIn || s.Agents <= s.Some || s.Rounds < 1 {
		return fmt.Errorf("-some is %d or more and below -agents, and -rounds 1 or more", oneIn)
	}
	if err := rivals.AllowOpenFiles(s.Agents); err != nil {
		return err
	}
	return measure.Run(measure.Report{Name: "actions", Settings: s}, columns, s.Out, func() ([]measure.Row, error) { return s.measure(ctx, dir) }, s.judge)
}

// measure starts a server and a fleet and takes them through every case.
func (s settings) measure(ctx context.Context, dir string) ([]measure.Row, error) {
	return s.Alone(ctx, dir, nil, func(tutti *rivals.Tutti, _ string) (rows []measure.Row, err error) {
		b, err := s.open(tutti, dir)
		if err != nil {
			return nil, err
		}
		defer func() {
			if stop := b.close(); err == nil {
				err = stop
			}
		}()
		return measure.InTurn(ctx, b.cases()...)
	})
}

// judge compares with the aims.
func (s settings) judge(rows []measure.Row) []string {
	var notes []string
	aim := func(name, figure string, most float64, text string) {
		notes = append(notes, measure.Below(rows, name, figure, most, name+": "+text)...)
	}
	for _, a := range readers {
		some, all := a.on(s.Some), a.on(s.Agents)
		aim(some, "max_s", 0.5, "all answers in below 0.5 s")
		aim(some, "server_cpu_us_each", 100, "below 100 µs of the server's CPU for a node")
		aim(all, "max_s", 2, "all answers in below 2 s")
	}
	aim(writer.on(s.Some), "max_s", 2, "all rows final below 2 s")
	aim(writer.on(s.Some), "server_cpu_us_each", 800, "below 800 µs of the server's CPU for a run")
	aim(idleCase(s.Some), "rss_mb", 60, "below 60 MB without Ruby's processes")
	aim(idleCase(s.Some), "anon_mb", 60, "below 60 MB without Ruby's processes and the pages of the program")
	return notes
}
