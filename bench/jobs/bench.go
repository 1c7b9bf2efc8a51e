package main

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/bench/internal/authority"
	"github.com/tutti-project/tutti/bench/internal/simfleet"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
	"github.com/tutti-project/tutti/internal/sim"
)

// bench is a server, a fleet, and somebody who orders it.
type bench struct {
	settings
	tutti *rivals.Tutti
	ca    *authority.Authority
	api   *api.Client
	names []string
	fleet *simfleet.Fleet

	unasked time.Duration // the server's processor time for a job whose events nobody asks for
}

// open makes the fleet; nobody is connected yet.
func (s settings) open(ctx context.Context, tutti *rivals.Tutti, dir string) (*bench, error) {
	b := &bench{settings: s, tutti: tutti, names: sim.Names(s.Agents, "bench.test")}
	var err error
	if b.ca, err = authority.Open(filepath.Join(dir, "server", "data")); err != nil {
		return nil, err
	}
	if b.api, err = tutti.API(); err != nil {
		return nil, err
	}
	if err := deployTask(ctx, tutti, filepath.Join(dir, "code")); err != nil {
		return nil, err
	}
	pause := api.CompilePauseRequest{Reason: "what is compiled of the fleet's first facts is not measured"}
	if _, err := api.CompilePause.Call(ctx, b.api, pause); err != nil {
		return nil, err
	}
	b.fleet = simfleet.New([]*rivals.Tutti{tutti}, b.ca, sim.Config{Names: b.names})
	if err := b.fleet.Enrol(ctx); err != nil {
		return nil, err
	}
	return b, b.fleet.SendFacts(ctx, tutti.LocalhostURL())
}

// cases is what is measured, in order.
func (b *bench) cases() []func(context.Context) (measure.Row, error) {
	works := []func(context.Context) (measure.Row, error){b.connect}
	add := func(name string, work func(context.Context) (measure.Row, error)) {
		if strings.Contains(name, b.only) {
			works = append(works, work)
		}
	}
	add("idle", b.memory("idle"))
	add("ping", b.ping(b.Targets))
	add("ping", b.ping(b.Agents))
	add("job", b.smallJob)
	add("job", b.allJob)
	add("job", b.memory("idle after jobs"))
	add("task", b.task("own API", b.ownTask))
	add("task", b.task("orchestrator API", b.orchestratorTask))
	add("events", b.events("events of all, nobody asks", 0))
	add("events", b.events(askedCase, eventClients))
	add("output", b.output)
	add("output", b.memory("idle after output"))
	add("storm", b.storm)
	add("storm", b.memory("idle after storm"))
	return works
}

// connect is all agents coming at once.
func (b *bench) connect(ctx context.Context) (measure.Row, error) {
	return b.watched(ctx, "connect", b.Agents, func() (map[string]float64, error) {
		start := time.Now()
		err := b.fleet.Connect(ctx)
		return map[string]float64{"done_s": time.Since(start).Seconds()}, err
	})
}

// storm is all connections broken at once; agents come back by themselves.
func (b *bench) storm(ctx context.Context) (measure.Row, error) {
	return b.watched(ctx, "reconnect storm", b.Agents, func() (map[string]float64, error) {
		start := time.Now()
		b.fleet.Do(sim.Step{Kind: sim.Storm})
		err := b.fleet.AwaitConnected(ctx, start)
		return map[string]float64{"done_s": time.Since(start).Seconds()}, err
	})
}

// memory is what the server takes after a while in which nothing happens.
func (b *bench) memory(name string) func(context.Context) (measure.Row, error) {
	return func(ctx context.Context) (measure.Row, error) {
		if err := measure.Settle(ctx, b.Settle); err != nil {
			return measure.Row{}, err
		}
		usage, err := b.tutti.Usage()
		return measure.Ours(name, map[string]float64{"agents": float64(b.Agents), "rss_mb": float64(usage.RSSBytes) / 1e6}), err
	}
}

// watched does work for a number of agents and adds what it cost.
func (b *bench) watched(ctx context.Context, name string, agents int, work func() (map[string]float64, error)) (measure.Row, error) {
	figures, span, err := measure.Watched(ctx, name, b.tutti.Usage, work)
	if err != nil {
		return measure.Row{}, err
	}
	figures["agents"] = float64(agents)
	figures["server_cpu_ms_each"] = span.Server.Seconds() * 1e3 / float64(agents)
	figures["peak_rss_mb"] = float64(span.PeakRSS) / 1e6
	return measure.Ours(name, figures), nil
}
