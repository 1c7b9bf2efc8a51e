package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/bench/internal/authority"
	"github.com/tutti-project/tutti/bench/internal/simfleet"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
	"github.com/tutti-project/tutti/internal/sim"
)

// bench is a server, the nodes that are connected to it, and somebody who calls actions.
type bench struct {
	settings
	tutti  *rivals.Tutti
	ca     *authority.Authority
	api    *api.Client
	names  []string          // of all nodes; the first Some of them come first
	fleets []*simfleet.Fleet // that have come
}

// open makes everything but the nodes.
func (s settings) open(tutti *rivals.Tutti, dir string) (*bench, error) {
	b := &bench{settings: s, tutti: tutti, names: sim.Names(s.Agents, "bench.test")}
	var err error
	if b.ca, err = authority.Open(filepath.Join(dir, "server", "data")); err != nil {
		return nil, err
	}
	b.api, err = tutti.API()
	return b, err
}

func (b *bench) close() (err error) {
	for _, f := range b.fleets {
		err = errors.Join(err, f.Close())
	}
	return err
}

// cases is what is measured, in order.
func (b *bench) cases() []func(context.Context) (measure.Row, error) {
	works := []func(context.Context) (measure.Row, error){b.connect(b.names[:b.Some]), b.idle}
	for _, a := range readers {
		works = append(works, b.read(a))
	}
	works = append(works, b.readCut(readers[0]), b.act, b.connect(b.names[b.Some:]))
	for _, a := range readers {
		works = append(works, b.read(a))
	}
	return append(works, b.readCut(readers[0]))
}

// connect is nodes that join all at once.
func (b *bench) connect(names []string) func(context.Context) (measure.Row, error) {
	return func(ctx context.Context) (measure.Row, error) {
		fleet := simfleet.New([]*rivals.Tutti{b.tutti}, b.ca, sim.Config{Names: names})
		if err := fleet.Enrol(ctx); err != nil {
			return measure.Row{}, err
		}
		if err := fleet.SendFacts(ctx, b.tutti.LocalhostURL()); err != nil {
			return measure.Row{}, err
		}
		b.fleets = append(b.fleets, fleet)
		return b.watched(ctx, fmt.Sprintf("connect %d", len(names)), len(names), func() (map[string]float64, error) {
			start := time.Now()
			err := fleet.Connect(ctx)
			return map[string]float64{"max_s": time.Since(start).Seconds()}, err
		})
	}
}

// connected is the nodes that have come.
func (b *bench) connected() []string {
	if len(b.fleets) == 1 {
		return b.names[:b.Some]
	}
	return b.names
}

func idleCase(agents int) string { return fmt.Sprintf("idle with %d", agents) }

// idle is what the server takes after a while in which nothing happens.
func (b *bench) idle(ctx context.Context) (measure.Row, error) {
	if err := measure.Settle(ctx, b.Settle); err != nil {
		return measure.Row{}, err
	}
	usage, err := b.tutti.Usage()
	figures := map[string]float64{
		"rss_mb": float64(usage.RootRSS) / 1e6, "anon_mb": float64(usage.RootAnon) / 1e6, "tree_rss_mb": float64(usage.RSSBytes) / 1e6,
	}
	return measure.Ours(idleCase(len(b.connected())), figures), err
}

// watched does work for so many nodes and adds what it cost.
func (b *bench) watched(ctx context.Context, name string, nodes int, work func() (map[string]float64, error)) (measure.Row, error) {
	figures, span, err := measure.Watched(ctx, name, b.tutti.Usage, work)
	if err != nil {
		return measure.Row{}, err
	}
	figures["server_cpu_us_each"] = span.Server.Seconds() * 1e6 / float64(nodes)
	figures["rss_mb"], figures["tree_rss_mb"] = float64(span.RootRSS)/1e6, float64(span.PeakRSS)/1e6
	return measure.Ours(name, figures), nil
}
