// Ingest measures how fast fact sets and reports are stored: Tutti over its
// real HTTP with client certificates, against Debian's PuppetDB on a
// PostgreSQL of its own. Method and figures: docs/benchmarks.md.
//
//	go run ./bench/ingest [-only tutti,tutti-postgres,puppetdb] [-nodes 2000]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tutti-project/tutti/bench/internal/fleetgen"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// settings are the knobs; they go into the report as they were.
type settings struct {
	Only    string `json:"only"`
	Nodes   int    `json:"nodes"`
	Workers int    `json:"workers"`
	Rounds  int    `json:"rounds"`      // of changed facts and of reports, into Tutti
	Peer    int    `json:"rounds_peer"` // the same into PuppetDB
	Heap    string `json:"heap"`
	Seed    uint64 `json:"seed"`

	rivals.Knobs `json:"-"`
}

func main() {
	var s settings
	flag.StringVar(&s.Only, "only", "tutti,puppetdb", "servers to measure: tutti, tutti-postgres, puppetdb")
	flag.IntVar(&s.Nodes, "nodes", 2000, "nodes in the fleet")
	flag.IntVar(&s.Workers, "workers", 16, "requests under way at a time")
	flag.IntVar(&s.Rounds, "rounds", 5, "fact sets and reports of each node into Tutti, after the first fact set")
	flag.IntVar(&s.Peer, "rounds-peer", 1, "the same into PuppetDB, which takes minutes for one")
	flag.StringVar(&s.Heap, "heap", "192m", "PuppetDB's Java heap (Debian's default is 192m)")
	flag.Uint64Var(&s.Seed, "seed", 1, "of facts and reports")
	s.Flags(30*time.Minute, "the servers' files and logs")
	flag.Parse()
	s.Main("ingest", s.run)
}

func (s settings) run(ctx context.Context, dir string) error {
	report := &measure.Report{Name: "ingest", Time: time.Now().UTC(), Machine: measure.ThisMachine(), Settings: s}
	fleet := fleetgen.Fleet{Seed: s.Seed, Base: time.Now().Add(-24 * time.Hour).Truncate(time.Second)}
	for name := range strings.SplitSeq(s.Only, ",") {
		rows, notes, err := s.server(ctx, name, filepath.Join(dir, name), fleet)
		report.Rows = append(report.Rows, rows...)
		report.Notes = append(report.Notes, notes...)
		if err != nil {
			return report.Incomplete(os.Stdout, columns, fmt.Errorf("%s: %w", name, err))
		}
	}
	report.Ratios = append(measure.Compare(report.Rows, "tutti", []measure.Aim{
		{Case: firstFacts, Figure: "per_s", Peer: "puppetdb", Min: 100},
		{Case: changedFacts, Figure: "per_s", Peer: "puppetdb", Min: 100},
		{Case: reports, Figure: "per_s", Peer: "puppetdb", Min: 20},
		{Case: firstFacts, Figure: "per_cpu_s", Peer: "puppetdb"},
		{Case: changedFacts, Figure: "per_cpu_s", Peer: "puppetdb"},
		{Case: reports, Figure: "per_cpu_s", Peer: "puppetdb"},
		{Case: afterwards, Figure: "pss_mb", Peer: "puppetdb", Max: 0.2},
	}), measure.Compare(report.Rows, onPostgres, []measure.Aim{
		{Case: firstFacts, Figure: "per_s", Peer: "puppetdb", Min: 10},
		{Case: changedFacts, Figure: "per_s", Peer: "puppetdb", Min: 10},
		{Case: reports, Figure: "per_s", Peer: "puppetdb", Min: 10},
	})...)
	return report.Finish(os.Stdout, columns, s.Out)
}

func (s settings) server(ctx context.Context, name, dir string, fleet fleetgen.Fleet) (_ []measure.Row, notes []string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	store, rounds, err := s.start(ctx, name, dir, fleet)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if stop := store.target().Stop(); err == nil {
			err = stop
		}
	}()
	b := &bench{settings: s, name: name, store: store}
	rows, err := b.all(ctx, rounds)
	if err != nil {
		return rows, nil, err
	}
	notes, err = store.notes(ctx)
	return rows, notes, err
}

func (s settings) start(ctx context.Context, name, dir string, fleet fleetgen.Fleet) (store, int, error) {
	switch name {
	case "puppetdb":
		started, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		target, err := rivals.StartPuppetDB(started, dir, s.Heap)
		if err != nil {
			return nil, 0, err
		}
		db, err := newPuppetDB(target, fleet, s.Workers)
		return db, s.Peer, err
	case "tutti", onPostgres:
		store, err := s.startTutti(ctx, name, dir, fleet)
		return store, s.Rounds, err
	default:
		return nil, 0, fmt.Errorf("no such server; have tutti, %s, puppetdb", onPostgres)
	}
}
