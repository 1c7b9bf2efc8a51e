package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/bench/internal/catalogrequest"
	"github.com/tutti-project/tutti/bench/internal/fleetgen"
	"github.com/tutti-project/tutti/bench/internal/simfleet"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/load"
	"github.com/tutti-project/tutti/bench/rivals/measure"
	"github.com/tutti-project/tutti/internal/sim"
)

// The cases.
const (
	checkInCase = "check-ins"
	reportCase  = "reports"
	jobCase     = "jobs over all"
	acrossCase  = "pings across servers"
	killedCase  = "a server is killed"
)

// manifest gives each node that checks in a catalog of 49 files, and agents an empty one.
const manifest = `node /^node-/ {
  Integer[1, 49].each |$n| {
    file { "/srv/${n}": content => "${facts['os']['release']['full']} ${n}" }
  }
}
node default { }
`

// work is what the servers are given to do.
type work struct {
	settings
	*cluster
	fleet  fleetgen.Fleet
	facts  catalogrequest.Facts
	round  int            // of reports, which differ
	admin  *api.Client    // of the first server
	agents []*fleetOfOne  // by the server that they prefer
	names  []string       // of all agents
	did    *sim.Recorder  // what all agents have done
	conns  []*load.Conn   // one for each node that checks in
	asks   []load.Request // its catalog
}

// fleetOfOne is the agents that prefer one server, and their names.
type fleetOfOne struct {
	*simfleet.Fleet
	names []string
}

func (s settings) newWork(ctx context.Context, c *cluster) (w *work, err error) {
	w = &work{settings: s, cluster: c, names: sim.Names(s.Agents, "bench.test"), did: sim.NewRecorder()}
	w.fleet = fleetgen.Fleet{Seed: 1, Base: time.Now().Add(-time.Hour).Truncate(time.Second)}
	if w.facts, err = catalogrequest.Read(s.Facts); err != nil {
		return w, err
	}
	if w.admin, err = c.servers[0].API(); err != nil {
		return w, err
	}
	code := filepath.Join(c.dir, "code")
	if err := os.MkdirAll(filepath.Join(code, "manifests"), 0o750); err != nil {
		return w, err
	}
	if err := os.WriteFile(filepath.Join(code, "manifests", "site.pp"), []byte(manifest), 0o600); err != nil {
		return w, err
	}
	return w, c.servers[0].Deploy(ctx, "production", code, filepath.Join(code, "none"))
}

// all has the servers that there are do everything, with agents and nodes spread over them.
func (w *work) all(ctx context.Context) (rows []measure.Row, err error) {
	if err := w.spread(ctx); err != nil {
		return nil, err
	}
	if err := w.calm(ctx); err != nil {
		return nil, err
	}
	return measure.InTurn(ctx, w.checkIns, w.reports, w.jobs)
}

// calm waits until no catalog is compiled ahead any more: that is not what is measured.
func (w *work) calm(ctx context.Context) error {
	for quiet := 0; quiet < 3; quiet++ {
		queue, err := api.CompileQueue.Call(ctx, w.admin, api.Nothing{})
		if err != nil {
			return err
		}
		if queue.Wanted+queue.Running > 0 {
			quiet = -1
		}
		if err := measure.Settle(ctx, 2*time.Second); err != nil {
			return fmt.Errorf("%d compilations are wanted: %w", queue.Wanted, err)
		}
	}
	return nil
}

// spread connects agents and nodes anew. Each node gets its first catalog.
func (w *work) spread(ctx context.Context) error {
	w.close()
	w.agents, w.conns, w.asks = nil, nil, nil
	for i := range w.servers {
		first, last := i*w.Agents/len(w.servers), (i+1)*w.Agents/len(w.servers)
		preferred := append(append([]*rivals.Tutti(nil), w.servers[i:]...), w.servers[:i]...)
		one := &fleetOfOne{names: w.names[first:last]}
		one.Fleet = simfleet.New(preferred, w.ca, sim.Config{Names: one.names, Recorder: w.did})
		w.agents = append(w.agents, one)
		if err := one.Enrol(ctx); err != nil {
			return err
		}
		if len(w.servers) == 1 { // later they are known
			if err := one.SendFacts(ctx, w.servers[0].LocalhostURL()); err != nil {
				return err
			}
		}
		if err := one.Connect(ctx); err != nil {
			return err
		}
	}
	for i := range w.Nodes {
		name := w.fleet.Certname(i)
		config, err := w.ca.Client(name)
		if err != nil {
			return err
		}
		conn, err := load.NewConn(w.servers[i%len(w.servers)].URL(), config)
		if err != nil {
			return err
		}
		ask, err := catalogrequest.New(name, w.facts.Of(name, "12.1"))
		if err != nil {
			return err
		}
		w.conns, w.asks = append(w.conns, conn), append(w.asks, ask)
	}
	_, err := w.each(ctx, w.asks)
	return err
}

func (w *work) close() {
	for _, one := range w.agents {
		_ = one.Close()
	}
	for _, conn := range w.conns {
		conn.Close()
	}
}

func (w *work) report(node, round int) load.Request {
	return load.Request{
		Method: http.MethodPut, Path: fmt.Sprintf("/puppet/v3/report/%s?environment=production", w.fleet.Certname(node)), Body: w.fleet.PuppetReport(node, round),
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}, "X-Puppet-Version": {"7.23.0"}},
	}
}

// checkIns is all nodes asking for their catalogs with the facts that they sent before, again and again.
func (w *work) checkIns(ctx context.Context) (measure.Row, error) {
	return w.requests(ctx, checkInCase, func(node, _ int) load.Request { return w.asks[node] })
}

// reports is all nodes sending the reports of their runs.
func (w *work) reports(ctx context.Context) (measure.Row, error) {
	return w.requests(ctx, reportCase, w.report)
}

// requests has each node ask once in each round.
func (w *work) requests(ctx context.Context, name string, ask func(node, round int) load.Request) (measure.Row, error) {
	asks := make([][]load.Request, w.Rounds)
	for round := range asks {
		w.round++
		for node := range w.Nodes {
			asks[round] = append(asks[round], ask(node, w.round))
		}
	}
	return w.watched(ctx, name, w.Nodes*w.Rounds, func() (map[string]float64, error) {
		var latencies []time.Duration
		var wall time.Duration
		for _, of := range asks {
			result, err := w.each(ctx, of)
			if err != nil {
				return nil, err
			}
			latencies, wall = append(latencies, result.Latencies...), wall+result.Wall
		}
		took := measure.Summarize(latencies)
		return map[string]float64{"per_s": float64(took.Count) / wall.Seconds(), "p50_ms": ms(took.P50), "p99_ms": ms(took.P99), "max_ms": ms(took.Max)}, nil
	})
}

// each has each node ask once.
func (w *work) each(ctx context.Context, asks []load.Request) (load.Result, error) {
	return load.Run(ctx, load.Plan{Workers: w.Workers, Total: len(asks)}, func(ctx context.Context, _, node int) error {
		response, err := w.conns[node].Patient(ctx, asks[node])
		return load.Expect(asks[node], response, err, http.StatusOK)
	})
}

// jobs is a command for all agents, again and again, asked of the first server. Each has a row in the end, which is true.
func (w *work) jobs(ctx context.Context) (measure.Row, error) {
	return w.watched(ctx, jobCase, w.Agents*w.Rounds, func() (map[string]float64, error) {
		var took []time.Duration
		for range w.Rounds {
			start := time.Now()
			started, err := api.JobCommand.Call(ctx, w.admin, api.JobCommandRequest{JobOrder: api.JobOrder{Targets: api.JobTargets{Nodes: w.names}}, Command: "uptime"})
			if err != nil {
				return nil, err
			}
			course, err := simfleet.Follow(ctx, w.admin, start, started.Job.ID)
			if err != nil {
				return nil, err
			}
			took = append(took, course.Done)
			if err := w.agents[0].Complete(ctx, w.admin, started.Job.ID, w.names); err != nil {
				return nil, err
			}
		}
		done := measure.Summarize(took)
		return map[string]float64{"p50_ms": ms(done.P50), "max_ms": ms(done.Max), "done_s": done.P50.Seconds()}, nil
	})
}

// watched does work of so many parts and adds what it cost all processes, and what the servers alone.
func (w *work) watched(ctx context.Context, name string, parts int, do func() (map[string]float64, error)) (measure.Row, error) {
	name = withServers(name, len(w.servers))
	before, err := w.serversUsage()
	if err != nil {
		return measure.Row{}, err
	}
	figures, span, err := measure.Watched(ctx, name, w.usage, do)
	if err != nil {
		return measure.Row{}, err
	}
	after, err := w.serversUsage()
	figures["done"] = float64(parts)
	figures["cpu_ms_each"] = ms(span.Server) / float64(parts)
	figures["servers_ms_each"] = ms(after.Since(before).CPU) / float64(parts)
	figures["peak_rss_mb"] = float64(span.PeakRSS) / 1e6
	return measure.Ours(name, figures), err
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }
