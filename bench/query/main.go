// Query measures what people ask of a fleet: Tutti on SQLite and on PostgreSQL
// against Debian's PuppetDB, over the same nodes, facts, catalogs and reports.
// Method and figures: docs/benchmarks.md.
//
//	go run ./bench/query [-peers tutti-sqlite,tutti-postgres,puppetdb] [-nodes 20000] [-keep DIR]
//
// With -keep a loaded peer stays on disk and is asked again by the next run;
// without it everything is made anew and removed.
package main

import (
	"context"
	"flag"
	"time"

	"github.com/tutti-project/tutti/bench/rivals"
)

// settings are the knobs; they go into the report as they were.
type settings struct {
	Peers   string `json:"peers"`
	Nodes   int    `json:"nodes"`
	Reports int    `json:"reports"`
	Seed    uint64 `json:"seed"`
	Workers int    `json:"workers"`
	Heap    string `json:"heap"`
	Times   int    `json:"times"`
	Only    string `json:"only,omitempty"`

	loadOnly bool
	limit    time.Duration
	keep     string
	out      string
}

func main() {
	var s settings
	flag.StringVar(&s.Peers, "peers", "tutti-sqlite,tutti-postgres,puppetdb", "servers to ask")
	flag.IntVar(&s.Nodes, "nodes", 20_000, "nodes in the fleet")
	flag.IntVar(&s.Reports, "reports", 10, "reports of each node")
	flag.Uint64Var(&s.Seed, "seed", 1, "of facts, catalogs and reports")
	flag.IntVar(&s.Workers, "workers", 4, "connections that load")
	flag.StringVar(&s.Heap, "heap", "1g", "PuppetDB's Java heap")
	flag.IntVar(&s.Times, "times", 30, "how often each query is asked, unless it takes seconds")
	flag.StringVar(&s.Only, "only", "", "ask only queries whose name holds this")
	flag.BoolVar(&s.loadOnly, "load-only", false, "load, ask nothing")
	flag.DurationVar(&s.limit, "limit", 6*time.Hour, "time for all of it")
	flag.StringVar(&s.keep, "keep", "", "keep loaded peers in this directory, and use what is there")
	flag.StringVar(&s.out, "out", "bench/out", "where the JSON goes")
	flag.Parse()
	if s.keep != "" {
		rivals.MainIn("query", s.limit, s.keep, s.run)
		return
	}
	rivals.Main("query", s.limit, false, s.run)
}

func (s settings) run(ctx context.Context, dir string) error {
	return s.all(ctx, dir)
}
