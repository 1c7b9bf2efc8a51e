package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/bench/internal/simfleet"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

func watchCase(watchers int) string { return fmt.Sprintf("job over all, %d browsers watch", watchers) }

// unwatched is a job over all nodes that nobody watches.
func (b *bench) unwatched(ctx context.Context) (measure.Row, error) {
	return b.watchedBy(ctx, "job over all, nobody watches", 0)
}

// watched is the same with many browsers: each has the stream of events, and the summaries of the job.
func (b *bench) watched(ctx context.Context) (measure.Row, error) {
	return b.watchedBy(ctx, watchCase(b.Watchers), b.Watchers)
}

func (b *bench) watchedBy(ctx context.Context, name string, watchers int) (measure.Row, error) {
	var heard atomic.Int64
	figures, span, err := measure.Watched(ctx, name, b.tutti.Usage, func() (map[string]float64, error) {
		start := time.Now()
		started, err := api.JobCommand.Call(ctx, b.api, api.JobCommandRequest{JobOrder: api.JobOrder{Targets: api.JobTargets{All: true}}, Command: "uptime"})
		if err != nil {
			return nil, err
		}
		listening, stop := context.WithCancel(ctx)
		defer stop()
		work, listening := errgroup.WithContext(listening)
		for range watchers {
			for _, path := range []string{"/events", "/jobs/" + started.Job.ID + "/events?summary=true"} {
				work.Go(func() error { return b.hear(listening, path, &heard) })
			}
		}
		course, err := simfleet.Follow(ctx, b.api, start, started.Job.ID)
		stop()
		if ended := work.Wait(); err == nil {
			err = ended
		}
		return map[string]float64{"done_s": course.Done.Seconds(), "nodes": float64(b.nodes), "heard": float64(heard.Load())}, err
	})
	if err != nil {
		return measure.Row{}, err
	}
	if watchers == 0 {
		b.alone = span.Server
		return measure.Ours(name, figures), nil
	}
	figures["watching_cores"] = span.More(b.alone)
	return measure.Ours(name, figures), nil
}

// hear reads a stream until it ends, or until nobody wants to hear it.
func (b *bench) hear(ctx context.Context, path string, heard *atomic.Int64) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.tutti.LocalhostURL()+api.Prefix+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+b.token)
	transport := &http.Transport{TLSClientConfig: b.tutti.Trust(), ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, answer.Status)
	}
	lines, told := bufio.NewScanner(answer.Body), 0
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data:") {
			heard.Add(1)
			told++
		}
	}
	if err := lines.Err(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if told == 0 {
		return fmt.Errorf("%s: nothing was heard, so watching it cost nothing", path)
	}
	return nil
}
