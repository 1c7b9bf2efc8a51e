package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/bench/internal/authority"
	"github.com/tutti-project/tutti/bench/internal/catalogrequest"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/load"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// fleet is the nodes of the storm: a certificate and a connection each. All
// certificates have one key, which costs the server the same.
type fleet struct {
	settings
	tutti    *rivals.Tutti
	data     string
	conns    []*load.Conn
	requests []load.Request
}

// The cases.
const (
	idleCase  = "files, idle"
	keptCase  = "storm, kept connections"
	freshCase = "storm, new connections"
)

// stockCurves is what a stock agent's OpenSSL 3.0 offers of what Go knows. Go's own clients would exchange ML-KEM keys, too.
var stockCurves = []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP521, tls.CurveP384}

// idleFor is how long files are fetched with nobody else there.
const idleFor = 5 * time.Second

func (s settings) storm(ctx context.Context, tutti *rivals.Tutti, data string, facts catalogrequest.Facts) (rows []measure.Row, err error) {
	if err := rivals.AllowOpenFiles(s.Agents + 100); err != nil {
		return nil, err
	}
	ca, err := authority.Open(data)
	if err != nil {
		return nil, err
	}
	f := &fleet{settings: s, tutti: tutti, data: data}
	defer f.close()
	for i := range s.Agents {
		node := fmt.Sprintf("storm-%05d.example.org", i)
		config, err := ca.Client(node)
		if err != nil {
			return nil, err
		}
		config.CurvePreferences = stockCurves
		conn, err := load.NewConn(tutti.URL(), config)
		if err != nil {
			return nil, err
		}
		conn.BufferBytes = 4 << 10
		request, err := catalogrequest.New(node, facts.Of(node, "12.1"))
		if err != nil {
			return nil, err
		}
		f.conns, f.requests = append(f.conns, conn), append(f.requests, request)
	}
	begin := time.Now()
	if err := f.each(ctx, 8); err != nil {
		return nil, fmt.Errorf("first catalogs: %w", err)
	}
	// Connections that were idle for minutes are closed: those that are to be kept are made now.
	if err := f.each(ctx, 32); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	fmt.Fprintf(os.Stderr, "storm: %d first catalogs after %.0f s\n", s.Agents, time.Since(begin).Seconds())
	return measure.InTurn(ctx, f.alone,
		func(ctx context.Context) (measure.Row, error) { return f.all(ctx, keptCase, false) },
		func(ctx context.Context) (measure.Row, error) { return f.all(ctx, freshCase, true) },
		f.alone)
}

func (f *fleet) close() {
	for _, conn := range f.conns {
		conn.Close()
	}
}

// each has each node check in, a few at a time.
func (f *fleet) each(ctx context.Context, atOnce int) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(atOnce)
	for i := range f.conns {
		work.Go(func() error { return f.checkIn(ctx, i) })
	}
	return work.Wait()
}

func (f *fleet) checkIn(ctx context.Context, i int) error {
	response, err := f.conns[i].Patient(ctx, f.requests[i])
	return load.Expect(f.requests[i], response, err, http.StatusOK)
}

// alone fetches files with nobody else there.
func (f *fleet) alone(ctx context.Context) (measure.Row, error) {
	return f.watched(ctx, idleCase, func() (map[string]float64, error) {
		return map[string]float64{}, measure.Settle(ctx, idleFor)
	})
}

// watched does work while files are fetched, and says what that cost whom.
func (f *fleet) watched(ctx context.Context, name string, work func() (map[string]float64, error)) (measure.Row, error) {
	fetcher, err := startFetcher(ctx, fetching{URL: f.tutti.URL(), Data: f.data, Clients: f.FileClients, PerS: f.FileRate})
	if err != nil {
		return measure.Row{}, err
	}
	watch, err := measure.Start(ctx, f.tutti.Usage)
	if err != nil {
		return measure.Row{}, err
	}
	figures, err := work()
	span, err := watch.Stop(err)
	files, cpu, stopErr := fetcher.stop()
	if err := errors.Join(err, stopErr); err != nil {
		return measure.Row{}, fmt.Errorf("%s: %w", name, err)
	}
	latency := measure.Summarize(files.Latencies)
	maps.Copy(figures, map[string]float64{
		"files_per_s": float64(len(files.Latencies)) / files.Wall.Seconds(), "file_p50_ms": 1000 * latency.P50.Seconds(), "file_p99_ms": 1000 * latency.P99.Seconds(),
		"wall_s": span.Wall.Seconds(), "server_cpu_s": span.Server.Seconds(), "client_cpu_s": span.Clients.Seconds(), "files_cpu_s": cpu.Seconds(),
		"server_cores": span.Cores(span.Server), "client_cores": span.Cores(span.Clients),
		"files_cores": span.Cores(cpu), "others_cores": span.Cores(max(0, span.Others-cpu)),
	})
	fmt.Fprintf(os.Stderr, "%s: %.1f s; files %.0f a second, p99 %.1f ms; cores: server %.2f, agents %.2f, files %.2f, others %.2f\n", name, span.Wall.Seconds(),
		figures["files_per_s"], figures["file_p99_ms"], figures["server_cores"], figures["client_cores"], figures["files_cores"], figures["others_cores"])
	return measure.Row{Server: "tutti", Case: name, Figures: figures}, nil
}

// all has every node check in, evenly spread over f.within, while files are fetched. A
// latency counts from when the node wanted to ask.
func (f *fleet) all(ctx context.Context, name string, fresh bool) (measure.Row, error) {
	if fresh {
		f.close()
	}
	before, err := f.tutti.Usage()
	if err != nil {
		return measure.Row{}, err
	}
	return f.watched(ctx, name, func() (map[string]float64, error) {
		begin := time.Now()
		latencies, err := f.checkInAll(ctx, begin)
		wall := time.Since(begin)
		if err != nil {
			return nil, err
		}
		after, err := f.tutti.Usage()
		latency := measure.Summarize(latencies)
		return map[string]float64{
			"requests": float64(f.Agents), "served": float64(len(latencies)), "cpu_ms_each": 1000 * after.Since(before).CPU.Seconds() / float64(f.Agents),
			"p50_ms": 1000 * latency.P50.Seconds(), "p99_ms": 1000 * latency.P99.Seconds(), "per_s": float64(f.Agents) / wall.Seconds(),
		}, err
	})
}

// checkInAll has every node check in when it is its time.
func (f *fleet) checkInAll(ctx context.Context, begin time.Time) (latencies []time.Duration, err error) {
	var mu sync.Mutex
	work, working := errgroup.WithContext(ctx)
	for i := range f.conns {
		work.Go(func() error {
			at := begin.Add(f.within * time.Duration(i) / time.Duration(f.Agents))
			if err := measure.Settle(working, time.Until(at)); err != nil {
				return err
			}
			if err := f.checkIn(working, i); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			latencies = append(latencies, time.Since(at))
			return nil
		})
	}
	err = work.Wait()
	return latencies, err
}

// judgeStorm compares with the aims of the design.
func judgeStorm(rows []measure.Row) (notes []string) {
	const slowest, share = 2000, 0.8 // milliseconds; of the idle speed
	idle := 0.0
	for _, row := range rows {
		f := row.Figures
		switch row.Case {
		case idleCase:
			idle = max(idle, f["files_per_s"])
		case keptCase, freshCase:
			notes = append(notes, fmt.Sprintf("aim: %s: all served, p99 below %d ms: %.0f of %.0f, %.0f ms; met: %t",
				row.Case, slowest, f["served"], f["requests"], f["p99_ms"], f["served"] == f["requests"] && f["p99_ms"] < slowest))
			notes = append(notes, fmt.Sprintf("aim: %s: files meanwhile at %.0f %% of their idle speed: %.0f %%; met: %t",
				row.Case, 100*share, 100*f["files_per_s"]/idle, f["files_per_s"] >= share*idle))
		}
	}
	return notes
}
