package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/bench/internal/authority"
	"github.com/tutti-project/tutti/bench/internal/catalogrequest"
	"github.com/tutti-project/tutti/internal/peers"
	"github.com/tutti-project/tutti/internal/peers/load"
	"github.com/tutti-project/tutti/internal/peers/measure"
)

// fleet is the nodes of the storm: a certificate and a connection each. All
// certificates have one key, which costs the server the same.
type fleet struct {
	settings
	tutti    *peers.Tutti
	conns    []*load.Conn
	requests []load.Request
}

// idleFor is how long files are fetched with nobody else there.
const idleFor = 5 * time.Second

func (s settings) storm(ctx context.Context, tutti *peers.Tutti, data string, facts catalogrequest.Facts) (rows []measure.Row, err error) {
	if err := peers.AllowOpenFiles(s.Agents + 100); err != nil {
		return nil, err
	}
	ca, err := authority.Open(data)
	if err != nil {
		return nil, err
	}
	f := &fleet{settings: s, tutti: tutti}
	defer f.close()
	for i := range s.Agents {
		node := fmt.Sprintf("storm-%05d.example.org", i)
		config, err := ca.Client(node)
		if err != nil {
			return nil, err
		}
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
		func(ctx context.Context) (measure.Row, error) { return f.all(ctx, "storm, kept connections", false) },
		func(ctx context.Context) (measure.Row, error) { return f.all(ctx, "storm, new connections", true) },
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
	// Not a context with a deadline: requests under way are finished, as in the storm.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer time.AfterFunc(idleFor, cancel).Stop()
	begin := time.Now()
	files, err := f.fetch(ctx)
	row := measure.Row{Server: "tutti", Case: "files, idle", Figures: map[string]float64{"requests": float64(len(files))}}
	fileFigures(row.Figures, files, time.Since(begin))
	return row, err
}

// fileFigures says how files were served.
func fileFigures(figures map[string]float64, files []time.Duration, wall time.Duration) {
	latency := measure.Summarize(files)
	figures["files_per_s"] = float64(len(files)) / wall.Seconds()
	figures["file_p50_ms"], figures["file_p99_ms"] = 1000*latency.P50.Seconds(), 1000*latency.P99.Seconds()
}

// fetch gets one file again and again until ctx ends, f.FileRate times a second if it can. A latency counts from
// when the file was wanted; a client that is late does not fetch more afterwards.
func (f *fleet) fetch(ctx context.Context) (latencies []time.Duration, err error) {
	var mu sync.Mutex
	var work errgroup.Group
	every := time.Duration(float64(f.FileClients) / f.FileRate * float64(time.Second))
	for i := range f.FileClients {
		config, err := f.tutti.Client(context.WithoutCancel(ctx), fmt.Sprintf("files-%d.example.org", i))
		if err != nil {
			return nil, err
		}
		conn, err := load.NewConn(f.tutti.URL(), config)
		if err != nil {
			return nil, err
		}
		work.Go(func() error {
			defer conn.Close()
			for next := time.Now(); ; {
				if measure.Settle(ctx, time.Until(next)) != nil {
					return nil
				}
				response, err := conn.Discard(ctx, someFile)
				switch {
				case ctx.Err() != nil:
					return nil
				case err != nil || response.Status != http.StatusOK:
					return errors.Join(err, load.Expect(someFile, response, err, http.StatusOK))
				}
				now := time.Now()
				mu.Lock()
				latencies = append(latencies, now.Sub(next))
				mu.Unlock()
				if next = next.Add(every); next.Before(now) {
					next = now
				}
			}
		})
	}
	err = work.Wait()
	return latencies, err
}

var someFile = load.Request{
	Path:   "/puppet/v3/file_content/modules/storm/some.txt?environment=production",
	Header: http.Header{"Accept": {"application/octet-stream"}},
}

// all has every node check in, evenly spread over f.within, while files are fetched. A
// latency counts from when the node wanted to ask.
func (f *fleet) all(ctx context.Context, name string, fresh bool) (measure.Row, error) {
	if fresh {
		f.close()
	}
	watch, err := measure.Start(ctx, f.tutti.Usage)
	if err != nil {
		return measure.Row{}, err
	}
	begin := time.Now()
	latencies, files, err := f.meanwhile(ctx, begin)
	wall := time.Since(begin)
	span, err := watch.Stop(err)
	if err != nil {
		return measure.Row{}, err
	}
	latency := measure.Summarize(latencies)
	row := measure.Row{Server: "tutti", Case: name, Figures: map[string]float64{
		"requests": float64(f.Agents), "served": float64(len(latencies)), "cpu_ms_each": 1000 * span.Server.Seconds() / float64(f.Agents),
		"p50_ms": 1000 * latency.P50.Seconds(), "p99_ms": 1000 * latency.P99.Seconds(), "per_s": float64(f.Agents) / wall.Seconds(),
		"server_cores": span.Cores(span.Server), "client_cores": span.Cores(span.Clients), "others_cores": span.Cores(span.Others),
	}}
	fileFigures(row.Figures, files, wall)
	return row, nil
}

func (f *fleet) meanwhile(ctx context.Context, begin time.Time) (latencies, files []time.Duration, err error) {
	fetching, stop := context.WithCancel(ctx)
	defer stop()
	var fetcher errgroup.Group
	fetcher.Go(func() (err error) {
		files, err = f.fetch(fetching)
		return err
	})
	var mu sync.Mutex
	work, working := errgroup.WithContext(ctx)
	for i := range f.conns {
		work.Go(func() error {
			at := begin.Add(f.within * time.Duration(i) / time.Duration(f.Agents))
			select {
			case <-time.After(time.Until(at)):
			case <-working.Done():
				return working.Err()
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
	stop()
	return latencies, files, errors.Join(err, fetcher.Wait())
}
