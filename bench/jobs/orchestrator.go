package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/bench/internal/simfleet"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// task is one task on some of the agents, ordered and followed in one of two ways: by Tutti's own API, and as clients of Puppet Enterprise do.
func (b *bench) task(by string, order func(context.Context, []string) (string, time.Duration, error)) func(context.Context) (measure.Row, error) {
	return func(ctx context.Context) (measure.Row, error) {
		return b.watched(ctx, fmt.Sprintf("task on %d, %s", b.Targets, by), b.Targets*b.Rounds, func() (map[string]float64, error) {
			var done []time.Duration
			for range b.Rounds {
				id, took, err := order(ctx, b.names[:b.Targets])
				if err == nil {
					err = b.fleet.Complete(ctx, b.api, id, b.names[:b.Targets])
				}
				if err != nil {
					return nil, err
				}
				done = append(done, took)
			}
			latency := measure.Summarize(done)
			return map[string]float64{"p50_s": latency.P50.Seconds(), "max_s": latency.Max.Seconds()}, nil
		})
	}
}

func (b *bench) ownTask(ctx context.Context, names []string) (string, time.Duration, error) {
	start := time.Now()
	started, err := api.JobTask.Call(ctx, b.api, api.JobTaskRequest{
		JobOrder: api.JobOrder{Targets: api.JobTargets{Nodes: names}}, Task: taskName, Params: json.RawMessage(`{"bytes":1}`),
	})
	if err != nil {
		return "", 0, err
	}
	course, err := simfleet.Follow(ctx, b.api, start, started.Job.ID)
	return started.Job.ID, course.Done, err
}

// orchestratorTask asks for the job as often as ownTask does, and then for all of its nodes at once, as these clients do.
func (b *bench) orchestratorTask(ctx context.Context, names []string) (string, time.Duration, error) {
	token, err := os.ReadFile(b.tutti.TokenPath())
	if err != nil {
		return "", 0, err
	}
	client := orchestratorClient{base: b.tutti.URL() + "/orchestrator/v1", token: strings.TrimSpace(string(token)), http: &http.Client{
		Transport: &http.Transport{TLSClientConfig: b.tutti.Trust()},
	}}
	defer client.http.CloseIdleConnections()
	start := time.Now()
	var started struct{ Job struct{ Name string } }
	order := map[string]any{
		"task": taskName, "environment": "production", "noop": nil, "params": map[string]int{"bytes": 1},
		"scope": map[string]any{"nodes": names},
	}
	if err := client.ask(ctx, http.MethodPost, "/command/task", order, &started); err != nil {
		return "", 0, err
	}
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		var job struct{ State string }
		if err := client.ask(ctx, http.MethodGet, "/jobs/"+started.Job.Name, nil, &job); err != nil {
			return "", 0, err
		}
		switch job.State {
		case "finished":
			took := time.Since(start)
			return started.Job.Name, took, client.nodes(ctx, started.Job.Name, len(names))
		case "failed", "stopped":
			return "", 0, fmt.Errorf("the job ended %s", job.State)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", 0, fmt.Errorf("the job goes on: %w", ctx.Err())
		}
	}
}

// orchestratorClient asks as clients of Puppet Enterprise do.
type orchestratorClient struct {
	base, token string
	http        *http.Client
}

// nodes reads how each node of a job ended.
func (c orchestratorClient) nodes(ctx context.Context, id string, want int) error {
	var all struct{ Items []struct{ State string } }
	if err := c.ask(ctx, http.MethodGet, "/jobs/"+id+"/nodes", nil, &all); err != nil {
		return err
	}
	for _, item := range all.Items {
		if item.State != "finished" {
			return fmt.Errorf("a node ended %s", item.State)
		}
	}
	if len(all.Items) != want {
		return fmt.Errorf("the job has %d nodes, not %d", len(all.Items), want)
	}
	return nil
}

func (c orchestratorClient) ask(ctx context.Context, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Authentication", c.token)
	answer, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusAccepted {
		return fmt.Errorf("%s %s: status %d", method, path, answer.StatusCode)
	}
	return json.NewDecoder(answer.Body).Decode(into)
}
