package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/bench/internal/authority"
	"github.com/tutti-project/tutti/bench/internal/simfleet"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
	"github.com/tutti-project/tutti/internal/sim"
)

// bench is a server and its fleet.
type bench struct {
	settings
	tutti *rivals.Tutti
	api   *api.Client
	dir   string
	names []string
	fleet *simfleet.Fleet

	previewed int64 // what is released
}

// open makes the fleet; nobody is connected yet.
func (s settings) open(tutti *rivals.Tutti, dir string) (*bench, error) {
	b := &bench{settings: s, tutti: tutti, dir: dir, names: sim.Names(s.Nodes, "bench.test")}
	ca, err := authority.Open(b.data())
	if err != nil {
		return nil, err
	}
	if b.api, err = tutti.API(); err != nil {
		return nil, err
	}
	b.fleet = simfleet.New([]*rivals.Tutti{tutti}, ca, sim.Config{Names: b.names, Catalogs: tutti.LocalhostURL(), Enrolling: s.Enrolling})
	return b, nil
}

func (b *bench) data() string { return filepath.Join(b.dir, "server", "data") }

// all is the cases in order.
func (b *bench) all(ctx context.Context) ([]measure.Row, error) {
	rows, err := measure.InTurn(ctx, b.first, b.mode, b.connect, b.preview)
	if err != nil {
		return rows, err
	}
	more, err := b.release(ctx)
	return append(rows, more...), err
}

// first gives every node facts and a catalog.
func (b *bench) first(ctx context.Context) (measure.Row, error) {
	return b.watched(ctx, "first facts and catalogs", b.Nodes, func() error {
		if err := b.tutti.Deploy(ctx, "production", b.edition(1), filepath.Join(b.dir, "none")); err != nil {
			return err
		}
		if err := b.fleet.Enrol(ctx); err != nil {
			return err
		}
		if err := b.fleet.SendFacts(ctx, b.tutti.LocalhostURL()); err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, "release: all have sent their facts")
		return every(ctx, 2*time.Second, func() (bool, error) {
			status, err := api.EnvironmentStatus.Call(ctx, b.api, api.EnvironmentRequest{Environment: "production"})
			if err != nil {
				return false, err
			}
			if status.Failed > 0 {
				return false, fmt.Errorf("%d nodes do not compile: %+v", status.Failed, status.Errors)
			}
			return status.Current == b.Nodes, nil
		})
	})
}

// edition writes code whose catalogs differ from those of another edition in every file.
func (b *bench) edition(n int) string {
	dir := filepath.Join(b.dir, fmt.Sprintf("edition-%d", n))
	manifests := filepath.Join(dir, "manifests")
	text := fmt.Sprintf("Integer[1, %d].each |$n| {\n  file { \"/srv/${n}\": content => \"${facts['networking']['hostname']} ${n}, edition %d\\n\" }\n}\n",
		b.Resources, n)
	if err := os.MkdirAll(manifests, 0o750); err == nil { // else the deploy says what is missing
		_ = os.WriteFile(filepath.Join(manifests, "site.pp"), []byte(text), 0o600)
	}
	return dir
}

// mode brings all nodes into released mode.
func (b *bench) mode(ctx context.Context) (measure.Row, error) {
	return b.watched(ctx, "into released mode", b.Nodes, func() error {
		_, err := b.tutti.Run(ctx, "catalog", "mode", "--group", "All Nodes", "released")
		return err
	})
}

// connect is all agents coming at once; each fetches the catalog that it has.
func (b *bench) connect(ctx context.Context) (measure.Row, error) {
	return b.watched(ctx, "connect", b.Nodes, func() error { return b.fleet.Connect(ctx) })
}

// watched does work for a number of nodes and says what it cost.
func (b *bench) watched(ctx context.Context, name string, nodes int, work func() error) (measure.Row, error) {
	watch, err := measure.Start(ctx, b.tutti.Usage)
	if err != nil {
		return measure.Row{}, err
	}
	span, err := watch.Stop(work())
	if err != nil {
		return measure.Row{}, fmt.Errorf("%s: %w", name, err)
	}
	row, err := b.row(name, nodes, span)
	fmt.Fprintf(os.Stderr, "release: %s: %d nodes, %.1f s, %.2f ms of the server's CPU each\n", name, nodes, span.Wall.Seconds(), row.Figures["cpu_ms_each"])
	return row, err
}

func (b *bench) row(name string, nodes int, span measure.Span) (measure.Row, error) {
	bytes, err := b.databaseBytes()
	return measure.Row{Server: "tutti", Case: name, Figures: map[string]float64{
		"nodes": float64(nodes), "wall_s": span.Wall.Seconds(), "per_s": float64(nodes) / span.Wall.Seconds(), "server_cpu_s": span.Server.Seconds(),
		"cpu_ms_each":  1000 * span.Server.Seconds() / float64(nodes),
		"server_cores": span.Cores(span.Server), "client_cores": span.Cores(span.Clients), "others_cores": span.Cores(span.Others),
		"peak_rss_mb": float64(span.PeakRSS) / 1e6, "peak_pss_mb": float64(span.PeakPSS) / 1e6, "database_mb": float64(bytes) / 1e6,
	}}, err
}

// databaseBytes is what the database takes on disk, with its log.
func (b *bench) databaseBytes() (bytes int64, err error) {
	files, err := filepath.Glob(filepath.Join(b.data(), "tutti.db*"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("there is no database in %s", b.data())
	}
	for _, file := range files {
		info, statErr := os.Stat(file)
		switch {
		case statErr == nil:
			bytes += info.Size()
		case !errors.Is(statErr, fs.ErrNotExist): // the log comes and goes
			err = errors.Join(err, statErr)
		}
	}
	return bytes, err
}

// every asks until the answer is yes.
func every(ctx context.Context, pause time.Duration, ask func() (bool, error)) error {
	for {
		if done, err := ask(); done || err != nil {
			return err
		}
		if err := measure.Settle(ctx, pause); err != nil {
			return err
		}
	}
}
