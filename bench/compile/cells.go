package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	cellRounds    = 6  // each with processes of its own: two alike differ by some percent for as long as they live
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

// cells measures what a cell costs: the same orders in turns by a worker in a cell and one without, and zygotes of both. The ratio is that
// of all their CPU, in rounds with new processes each.
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
	pairs := make([]turns, len(sizes))
	for round := range cellRounds {
		err := besides(ctx, filepath.Join(dir, fmt.Sprintf("round-%d", round)), root, func(both [cellCompilers]*side, lack string) error {
			if round == 0 {
				row, note, err := zygoteStarts(ctx, both, min(cellStarts, s.Celled))
				if err != nil {
					return err
				}
				rows, notes = append(rows, row), append(notes, lack, note)
			}
			for i, size := range sizes {
				if err := pairs[i].measure(ctx, both, size.name, facts, max(1, int(float64(s.Celled)*size.factor*size.factor/cellRounds))); err != nil {
					return fmt.Errorf("measure %s in cells: %w", size.name, err)
				}
			}
			return nil
		})
		if err != nil {
			return rows, notes, err
		}
	}
	for i, size := range sizes {
		row, note := pairs[i].judged(size.name)
		rows, notes = append(rows, row), append(notes, note)
	}
	return rows, notes, nil
}

// besides starts a pool in cells and one without, both with their files below dir, has something measured, and stops them.
func besides(ctx context.Context, dir, root string, do func(both [cellCompilers]*side, lack string) error) (err error) {
	var both [cellCompilers]*side
	lack := ""
	for i, mode := range []cell.Mode{cell.BestEffort, cell.Off} {
		own := filepath.Join(dir, string(mode))
		if err := os.MkdirAll(own, 0o750); err != nil {
			return err
		}
		keeper, err := cell.Open(ctx, cell.Config{Mode: mode, Dir: own})
		if err != nil {
			return err
		}
		if mode == cell.BestEffort {
			if !keeper.Standing().Seccomp {
				return fmt.Errorf("there are no cells here: %q", keeper.Standing().Reasons())
			}
			lack = fmt.Sprintf("cells are without %q", keeper.Standing().Parts())
		}
		both[i] = &side{keeper: keeper, dir: filepath.Join(own, "ruby"), root: root}
	}
	for _, side := range both {
		failed := side.start(ctx)
		defer func() { err = errors.Join(err, side.stop()) }()
		if failed != nil {
			return failed
		}
	}
	return do(both, lack)
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

// turns are the figures of compilations by both kinds of worker.
type turns struct {
	cpus, walls   []float64 // ratios, in a cell to without
	celled, plain []float64 // milliseconds of CPU
	rounds        []string  // medians of cpus
}

// measure compiles the same orders by both, twice by each: one, the other, the other, one. Whoever compiles what somebody else has just compiled
// takes a sixth more or less, so with single turns half of the ratios would be of the one kind, and half of the other.
func (t *turns) measure(ctx context.Context, both [cellCompilers]*side, size string, facts catalogrequest.Facts, pairs int) error {
	node, before := size+"-1.example.org", len(t.cpus)
	for n := range cellWarm + pairs {
		document, err := json.Marshal(facts.Of(node, fmt.Sprintf("12.%d", 1000+n)))
		if err != nil {
			return err
		}
		order := compile.Order{Node: fleet.Certname(node), Environment: "cells", Version: fleet.DigestOf([]byte(cellVersion)), Facts: document}
		var cpu, wall [cellCompilers]time.Duration
		for _, i := range []int{0, 1, 1, 0} {
			moreCPU, moreWall, err := both[i].compile(ctx, order)
			if err != nil {
				return err
			}
			cpu[i], wall[i] = cpu[i]+moreCPU, wall[i]+moreWall
		}
		if n < cellWarm {
			continue
		}
		t.cpus, t.walls = append(t.cpus, float64(cpu[0])/float64(cpu[1])), append(t.walls, float64(wall[0])/float64(wall[1]))
		t.celled, t.plain = append(t.celled, ms(cpu[0])/2), append(t.plain, ms(cpu[1])/2)
	}
	t.rounds = append(t.rounds, fmt.Sprintf("%.1f", 100*(sum(t.celled[before:])/sum(t.plain[before:])-1)))
	return nil
}

func (t *turns) judged(size string) (measure.Row, string) {
	ratio := sum(t.celled) / sum(t.plain) // collecting garbage is a part of it, and does not come with each catalog
	row := measure.Row{Server: "tutti", Case: size + ", in a cell", Figures: map[string]float64{
		"catalogs": float64(len(t.cpus)), "cpu_ms_per_catalog": part(t.celled, 0.5), "cpu_ms_without": part(t.plain, 0.5), "overhead_percent": 100 * (ratio - 1),
		"overhead_wall_percent": 100 * (part(t.walls, 0.5) - 1),
	}}
	return row, fmt.Sprintf("cell overhead, %s: %.1f %% CPU (%d pairs, half of them between %.1f and %.1f; rounds with processes of their own: %s), "+
		"%.1f %% of the clock; aim below %.0f %% CPU, met: %t", size, 100*(ratio-1), len(t.cpus), 100*(part(t.cpus, 0.25)-1), 100*(part(t.cpus, 0.75)-1),
		strings.Join(t.rounds, ", "), 100*(part(t.walls, 0.5)-1), 100*cellAim, ratio-1 < cellAim)
}

func sum(list []float64) (all float64) {
	for _, value := range list {
		all += value
	}
	return all
}

// part is the value below which a part of a list is.
func part(list []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[int(float64(len(sorted)-1)*share+0.5)]
}
