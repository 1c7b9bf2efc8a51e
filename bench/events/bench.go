package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/bench/internal/authority"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
	"github.com/tutti-project/tutti/internal/sim"
)

// bench is a server, a real node, simulated ones, and who watches.
type bench struct {
	settings
	tutti       *rivals.Tutti
	binary, dir string
	node        *node
	streams     []*stream
	watcher     *watcher
	living      *errgroup.Group
	stop        context.CancelFunc
}

// realName is the node with a real Puppet.
const realName = "real.bench.test"

// open connects everybody. One run goes before: it brings plugins.
func (b *bench) open(ctx context.Context) error {
	b.node = &node{name: realName, home: filepath.Join(b.dir, "node"), binary: b.binary, tutti: b.tutti}
	control := filepath.Join(b.dir, "control")
	if err := os.MkdirAll(filepath.Join(control, "manifests"), 0o750); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(control, "manifests", "site.pp"), []byte(b.node.site(b.Resources)), 0o600); err != nil {
		return err
	}
	if _, err := b.tutti.Run(ctx, "code", "deploy", "production", control); err != nil {
		return err
	}
	living, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.living, living = errgroup.WithContext(living)
	b.stop, b.watcher = stop, newWatcher(realName)
	err := b.enter(ctx, living)
	if err != nil {
		return errors.Join(err, b.close())
	}
	return nil
}

func (b *bench) enter(ctx, living context.Context) error {
	if err := b.connect(ctx, living); err != nil {
		return err
	}
	if err := b.node.start(ctx); err != nil {
		return err
	}
	client, err := b.tutti.API()
	if err != nil {
		return err
	}
	b.living.Go(func() error { return b.watcher.follow(living, client) })
	if err := b.node.run(ctx); err != nil {
		return err
	}
	_, err = b.watcher.await(ctx, true, 1, b.perRun())
	return err
}

// perRun is how many events of resources a real run has.
func (b *bench) perRun() int { return b.Resources / 2 * 2 }

// connect connects the simulated nodes.
func (b *bench) connect(ctx, living context.Context) error {
	ca, err := authority.Open(filepath.Join(b.dir, "server", "data"))
	if err != nil {
		return err
	}
	url := "wss" + strings.TrimPrefix(b.tutti.LocalhostURL(), "https")
	for _, name := range sim.Names(b.Streams, "bench.test") {
		identity, err := ca.Client(name)
		if err != nil {
			return err
		}
		s, err := newStream(name, url, identity)
		if err != nil {
			return err
		}
		b.streams = append(b.streams, s)
		b.living.Go(func() error { return s.live(living) })
	}
	for _, s := range b.streams {
		select {
		case <-s.connected:
		case <-ctx.Done():
			return fmt.Errorf("%s is not connected: %w", s.name, ctx.Err())
		}
	}
	return nil
}

// close ends everybody.
func (b *bench) close() error {
	b.stop()
	return errors.Join(b.node.stop(), b.living.Wait())
}

// alone is runs of the real node with nobody else there.
func (b *bench) alone(ctx context.Context) (measure.Row, error) {
	return b.measure(ctx, "real runs", true, b.Runs, b.perRun(), b.realRuns)
}

// sims is runs of all simulated nodes at once.
func (b *bench) sims(ctx context.Context) (measure.Row, error) {
	return b.measure(ctx, fmt.Sprintf("%d simulated runs at once", b.Streams), false, b.Streams, b.Each, b.simRuns)
}

// amid is runs of the real node while those of the simulated ones go on.
func (b *bench) amid(ctx context.Context) (measure.Row, error) {
	return b.measure(ctx, fmt.Sprintf("real runs, %d simulated meanwhile", b.Streams), true, b.Runs, b.perRun(), func(ctx context.Context) error {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		var others errgroup.Group
		others.Go(func() error {
			for ctx.Err() == nil {
				if err := b.simRuns(ctx); err != nil && ctx.Err() == nil {
					return err
				}
			}
			return nil
		})
		err := b.realRuns(ctx)
		stop()
		return errors.Join(err, others.Wait())
	})
}

func (b *bench) realRuns(ctx context.Context) error {
	for range b.Runs {
		if err := b.node.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// simRuns is a run on each simulated node; they do not begin at the same moment, as no fleet does.
func (b *bench) simRuns(ctx context.Context) error {
	work, ctx := errgroup.WithContext(ctx)
	for i, s := range b.streams {
		work.Go(func() error {
			if err := measure.Settle(ctx, b.every*time.Duration(i)/time.Duration(len(b.streams))); err != nil {
				return err
			}
			return s.write(ctx, b.Each, b.every)
		})
	}
	return work.Wait()
}

func (b *bench) measure(ctx context.Context, name string, realNode bool, runs, each int, work func(context.Context) error) (measure.Row, error) {
	b.watcher.forget()
	watch, err := measure.Start(ctx, b.tutti.Usage)
	if err != nil {
		return measure.Row{}, err
	}
	var late []time.Duration
	begin := time.Now()
	if err = work(ctx); err == nil {
		late, err = b.watcher.await(ctx, realNode, runs, each)
	}
	wall := time.Since(begin)
	span, err := watch.Stop(err)
	if err != nil {
		return measure.Row{}, fmt.Errorf("%s: %w", name, err)
	}
	l := measure.Summarize(late)
	fmt.Fprintf(os.Stderr, "events: %s measured\n", name)
	return measure.Row{Server: "tutti", Case: name, Figures: map[string]float64{
		"events": float64(len(late)), "runs": float64(runs), "per_s": float64(len(late)) / wall.Seconds(),
		"p50_ms": 1000 * l.P50.Seconds(), "p99_ms": 1000 * l.P99.Seconds(), "max_ms": 1000 * l.Max.Seconds(),
		"server_cores": span.Cores(span.Server), "client_cores": span.Cores(span.Clients), "others_cores": span.Cores(span.Others),
	}}, nil
}
