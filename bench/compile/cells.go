package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tutti-project/tutti/bench/internal/catalogrequest"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/compiler/ruby"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/program/cell"
)

// The aims for a cell's cost: CPU of a compilation, and of the time until a zygote is there.
const (
	cellAim       = 0.03
	cellStartAim  = 50 * time.Millisecond
	cellWarm      = 4  // compilations of each size before the measuring
	cellStarts    = 11 // pairs of zygotes
	cellVersion   = "cell"
	cellCompilers = 2 // one of each kind
)

// side compiles with cells, or without.
type side struct {
	keeper *cell.Keeper
	dir    string
	root   string
	pool   *ruby.Pool
	stop   func() error
}

// Path is code.Checkout: there is one version.
func (s *side) Path(context.Context, fleet.Digest) (string, func(), error) {
	return s.root, func() {}, nil
}

// start brings up a pool, and a first zygote: when that is there, the pool knows its Ruby.
func (s *side) start(ctx context.Context) error {
	config := ruby.Config{Dir: s.dir, Workers: 1, CompilesPerWorker: 1 << 30, Keeper: s.keeper}
	s.pool = ruby.New(config, s, compiletest.NewInventory(), slog.New(slog.DiscardHandler))
	running, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.pool.Run(running) }()
	s.stop = func() error { cancel(); return <-ended }
	_, err := s.zygote(ctx, "first")
	return err
}

// zygote starts one for an environment, and tells how long that took.
func (s *side) zygote(ctx context.Context, environment fleet.Environment) (time.Duration, error) {
	begun := time.Now()
	err := s.pool.Warm(ctx, environment, fleet.DigestOf([]byte(cellVersion)), nil)
	return time.Since(begun), err
}

// compile tells the CPU of a compilation, and how long it took.
func (s *side) compile(ctx context.Context, order compile.Order) (cpu, wall time.Duration, err error) {
	outcome, err := s.pool.Compile(ctx, order)
	return outcome.Cost.CPU, outcome.Cost.Wall, err
}

// cells measures what a cell costs: the same orders in turns by a worker in a cell and one without, and zygotes of both. The ratio is the
// median of the pairs'.
func (s settings) cells(ctx context.Context, dir, environment string, facts catalogrequest.Facts) (rows []measure.Row, notes []string, err error) {
	root := filepath.Join(dir, "environment")
	if err := rivals.CopyTree(environment, root); err != nil {
		return nil, nil, err
	}
	if err := os.Mkdir(filepath.Join(root, ".base_modules"), 0o750); err != nil {
		return nil, nil, err
	}
	if err := os.Symlink(moduleDir, filepath.Join(root, ".base_modules", "0")); err != nil {
		return nil, nil, err
	}
	var both [cellCompilers]*side
	for i, mode := range []cell.Mode{cell.BestEffort, cell.Off} {
		own := filepath.Join(dir, string(mode))
		if err := os.Mkdir(own, 0o750); err != nil {
			return nil, nil, err
		}
		keeper, err := cell.Open(ctx, cell.Config{Mode: mode, Dir: own})
		if err != nil {
			return nil, nil, err
		}
		if mode == cell.BestEffort && !keeper.Standing().Seccomp {
			return nil, nil, fmt.Errorf("there are no cells here: %q", keeper.Standing().Reasons())
		}
		both[i] = &side{keeper: keeper, dir: filepath.Join(own, "ruby"), root: root}
		notes = append(notes, fmt.Sprintf("cells, %s: without %q", mode, keeper.Standing().Parts()))
	}
	for _, side := range both {
		err := side.start(ctx)
		defer func() { _ = side.stop() }()
		if err != nil {
			return nil, notes, err
		}
	}
	row, note, err := zygoteStarts(ctx, both, min(cellStarts, s.Celled))
	if err != nil {
		return nil, notes, err
	}
	rows, notes = append(rows, row), append(notes, note)
	for _, size := range sizes {
		row, note, err := cellPairs(ctx, both, size.name, facts, s.Celled)
		if err != nil {
			return rows, notes, fmt.Errorf("measure %s in cells: %w", size.name, err)
		}
		rows, notes = append(rows, row), append(notes, note)
	}
	return rows, notes, nil
}

// zygoteStarts starts zygotes of both kinds in turns.
func zygoteStarts(ctx context.Context, both [cellCompilers]*side, pairs int) (measure.Row, string, error) {
	var took [cellCompilers][]float64
	var more []float64
	for n := range pairs {
		var pair [cellCompilers]float64
		for i := range both {
			i = (i + n) % cellCompilers
			start, err := both[i].zygote(ctx, fleet.Environment(fmt.Sprintf("turn%d", n)))
			if err != nil {
				return measure.Row{}, "", fmt.Errorf("start a zygote: %w", err)
			}
			pair[i] = ms(start)
			took[i] = append(took[i], pair[i])
		}
		more = append(more, pair[0]-pair[1])
	}
	figures := map[string]float64{"start_ms": part(took[0], 0.5), "start_ms_without": part(took[1], 0.5), "start_more_ms": part(more, 0.5)}
	note := fmt.Sprintf("a zygote's start: %.0f ms more in a cell (median of %d pairs, half of them between %.0f and %.0f; %.0f ms without); aim below %s, met: %t",
		part(more, 0.5), len(more), part(more, 0.25), part(more, 0.75), part(took[1], 0.5), cellStartAim, part(more, 0.5) < ms(cellStartAim))
	return measure.Row{Server: "tutti", Case: "zygote in a cell", Figures: figures}, note, nil
}

// cellPairs compiles the same orders by both in turns, first one and then the other first.
func cellPairs(ctx context.Context, both [cellCompilers]*side, size string, facts catalogrequest.Facts, pairs int) (measure.Row, string, error) {
	node := size + "-1.example.org"
	var cpus, walls, celled, plain []float64
	for n := range cellWarm + pairs {
		document, err := json.Marshal(facts.Of(node, fmt.Sprintf("12.%d", 1000+n)))
		if err != nil {
			return measure.Row{}, "", err
		}
		order := compile.Order{Node: fleet.Certname(node), Environment: "cells", Version: fleet.DigestOf([]byte(cellVersion)), Facts: document}
		var cpu, wall [cellCompilers]time.Duration
		for i := range both {
			i = (i + n) % cellCompilers
			if cpu[i], wall[i], err = both[i].compile(ctx, order); err != nil {
				return measure.Row{}, "", err
			}
		}
		if n < cellWarm {
			continue
		}
		cpus, walls = append(cpus, float64(cpu[0])/float64(cpu[1])), append(walls, float64(wall[0])/float64(wall[1]))
		celled, plain = append(celled, ms(cpu[0])), append(plain, ms(cpu[1]))
	}
	ratio := part(cpus, 0.5)
	row := measure.Row{Server: "tutti", Case: size + ", in a cell", Figures: map[string]float64{
		"catalogs": float64(pairs), "cpu_ms_per_catalog": part(celled, 0.5), "cpu_ms_without": part(plain, 0.5), "overhead_percent": 100 * (ratio - 1),
		"overhead_wall_percent": 100 * (part(walls, 0.5) - 1),
	}}
	note := fmt.Sprintf("cell overhead, %s: %.1f %% CPU (median of %d pairs, half of them between %.1f and %.1f), %.1f %% of the clock; aim below %.0f %% CPU, met: %t",
		size, 100*(ratio-1), pairs, 100*(part(cpus, 0.25)-1), 100*(part(cpus, 0.75)-1), 100*(part(walls, 0.5)-1), 100*cellAim, ratio-1 < cellAim)
	return row, note, nil
}

// part is the value below which a part of a list is.
func part(list []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[int(float64(len(sorted)-1)*share+0.5)]
}
