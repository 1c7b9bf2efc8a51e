// Fleet measures how code reaches a fleet of made-up nodes: how long it takes until all
// have a catalog of their first facts, then, of a commit that touches what 2 % of them
// read and of one that touches nothing, until it is known who is touched, how many are
// compiled, and until all catalogs are current. No node asks for a catalog: all
// are compiled ahead. Method and figures: docs/benchmarks.md.
//
//	go run ./bench/fleet [-nodes 10000] [-keep DIR]
//
// With -keep the fleet stays on disk, and the next run begins with it; without it everything
// is made anew and removed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

const moduleDir = "/usr/share/puppet/modules"

// settings are the knobs; they go into the report as they were.
type settings struct {
	Nodes       int    `json:"nodes"`
	Roles       int    `json:"roles"`
	Environment string `json:"environment"`
	Senders     int    `json:"senders"`

	rivals.Knobs `json:"-"` // without its flags but -postgres: a fleet is kept in another way
	limit        time.Duration
	keep         string
	out          string
}

func main() {
	var s settings
	flag.IntVar(&s.Nodes, "nodes", 10_000, "made-up nodes")
	flag.IntVar(&s.Roles, "roles", 50, "roles, as many nodes of each; a commit touches one")
	flag.StringVar(&s.Environment, "environment", "internal/compiler/ruby/testdata/bench", "environment directory that roles are added to")
	flag.IntVar(&s.Senders, "senders", 4, "nodes that send their facts at the same time")
	flag.DurationVar(&s.limit, "limit", 90*time.Minute, "time for all of it")
	flag.StringVar(&s.keep, "keep", "", "keep the fleet with its first catalogs in this directory, and use what is there")
	s.PostgresFlag()
	flag.StringVar(&s.out, "out", "bench/out", "where the JSON goes")
	flag.Parse()
	if s.keep != "" {
		rivals.MainIn("fleet", s.limit, s.keep, s.run)
		return
	}
	rivals.Main("fleet", s.limit, false, s.run)
}

var columns = []string{
	"nodes", "touched", "compiled", "known_s", "current_s", "server_cpu_s", "cpu_ms_each",
	"server_cores", "client_cores", "others_cores", "peak_rss_mb", "server_rss_mb", "compile_pss_mb",
}

func (s settings) run(ctx context.Context, dir string) error {
	if s.Roles < 1 || s.Nodes < s.Roles || s.Nodes%s.Roles != 0 || s.Senders < 1 {
		return fmt.Errorf("-nodes is a multiple of -roles, and -senders at least 1")
	}
	kept, err := s.openKept(dir)
	if err != nil {
		return err
	}
	work := func() ([]measure.Row, error) { return s.measure(ctx, dir, kept) }
	return measure.Run(measure.Report{Name: "fleet", Settings: s}, columns, s.out, work, func(rows []measure.Row) []string {
		notes := s.judge(rows)
		if !kept.Time.IsZero() {
			notes = append(notes, kept.note())
		}
		return notes
	})
}

// measure starts a server and takes a fleet through every case.
func (s settings) measure(ctx context.Context, dir string, kept kept) ([]measure.Row, error) {
	code := environment{dir: filepath.Join(dir, "environment"), roles: s.Roles}
	if err := os.RemoveAll(code.dir); err != nil { // of a run before
		return nil, err
	}
	if err := code.make(s.Environment); err != nil {
		return nil, err
	}
	return s.Alone(ctx, dir, rivals.AsFastAsItCan, func(tutti *rivals.Tutti, _ string) ([]measure.Row, error) {
		b := &bench{settings: s, tutti: tutti, code: code, data: filepath.Join(dir, "server", "data")}
		if err := b.open(); err != nil {
			return nil, err
		}
		defer b.metrics.Close()
		return measure.InTurn(ctx, kept.orFirst(b), b.role, b.nothing, b.previewRole, b.previewAll)
	})
}

// judge compares with the aims of the design.
func (s settings) judge(rows []measure.Row) (notes []string) {
	const most = 2 // seconds
	share := s.Nodes / s.Roles
	for _, row := range rows {
		f := row.Figures
		switch row.Case {
		case roleCase:
			notes = append(notes, fmt.Sprintf("aim: %s: known below %d s, and the %d touched nodes compile, no other: %.3g s, %.0f; met: %t",
				row.Case, most, share, f["known_s"], f["compiled"], f["known_s"] < most && f["compiled"] == float64(share)))
		case nothingCase:
			notes = append(notes, fmt.Sprintf("aim: %s: no compilation: %.0f; met: %t", row.Case, f["compiled"], f["compiled"] == 0))
		}
	}
	return notes
}
