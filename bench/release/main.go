// Release measures what it costs to release a change to a fleet of simulated nodes in waves: their connections and
// what their agents do are real (internal/sim), the machines below are made up. All nodes have a catalog, a preview
// changes each of them, and the preview is released to 1 %, to 10 %, and to the rest. Every node has to fetch, apply and report exactly
// what was released to it. Method and figures: docs/benchmarks.md.
//
//	go run ./bench/release [-nodes 10000] [-waves 1%,10%,rest]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// settings are the knobs; they go into the report as they were.
type settings struct {
	Nodes     int    `json:"nodes"`
	Waves     string `json:"waves"`
	Resources int    `json:"resources"`
	Enrolling int    `json:"enrolling"`

	rivals.Knobs `json:"-"`
}

func main() {
	var s settings
	flag.IntVar(&s.Nodes, "nodes", 10_000, "simulated nodes, each with a certificate of its own")
	flag.StringVar(&s.Waves, "waves", "1%,10%,rest", "sizes of the waves")
	flag.IntVar(&s.Resources, "resources", 20, "files in each node's catalog")
	flag.IntVar(&s.Enrolling, "enrolling", 4, "nodes that send their facts at the same time")
	s.Flags(20*time.Minute, "the server's files and log")
	flag.Parse()
	s.Main("release", s.run)
}

var columns = []string{
	"nodes", "wall_s", "per_s", "server_cpu_s", "cpu_ms_each", "server_cores", "client_cores", "others_cores", "peak_rss_mb", "peak_pss_mb", "database_mb",
}

func (s settings) run(ctx context.Context, dir string) error {
	if s.Nodes < 1 || s.Resources < 1 || s.Enrolling < 1 {
		return errors.New("-nodes, -resources and -enrolling are at least 1")
	}
	if err := rivals.AllowOpenFiles(s.Nodes); err != nil {
		return err
	}
	return measure.Run(measure.Report{Name: "release", Settings: s}, columns, s.Out, func() ([]measure.Row, error) { return s.measure(ctx, dir) }, judge)
}

func judge(rows []measure.Row) (notes []string) {
	for _, row := range rows {
		if row.Case == wholeCase {
			notes = append(notes,
				fmt.Sprintf("a release costs the server %.1f ms of CPU for each node; every node applied what was released to it, once", row.Figures["cpu_ms_each"]))
		}
	}
	return notes
}

// measure starts a server and a fleet and takes them through every case.
func (s settings) measure(ctx context.Context, dir string) ([]measure.Row, error) {
	return s.Alone(ctx, dir, rivals.AsFastAsItCan, func(tutti *rivals.Tutti, _ string) (rows []measure.Row, err error) {
		b, err := s.open(tutti, dir)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, b.fleet.Close()) }()
		return b.all(ctx)
	})
}
