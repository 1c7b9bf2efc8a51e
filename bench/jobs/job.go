package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/bench/internal/simfleet"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

const allCase = "job over all"

// smallJob is a command for some of the agents, through the API.
func (b *bench) smallJob(ctx context.Context) (measure.Row, error) {
	return b.watched(ctx, fmt.Sprintf("job over %d", b.Targets), b.Targets*b.Rounds, func() (map[string]float64, error) {
		var sent, done []time.Duration
		for range b.Rounds {
			course, err := b.command(ctx, api.JobTargets{Nodes: b.names[:b.Targets]}, b.names[:b.Targets])
			if err != nil {
				return nil, err
			}
			sent, done = append(sent, course.Sent), append(done, course.Done)
		}
		latency := measure.Summarize(done)
		return map[string]float64{"sent_s": measure.Summarize(sent).P50.Seconds(), "p50_s": latency.P50.Seconds(), "max_s": latency.Max.Seconds()}, nil
	})
}

// allJob is a command for all agents, while somebody else uses the API.
func (b *bench) allJob(ctx context.Context) (measure.Row, error) {
	return b.watched(ctx, allCase, b.Agents, func() (map[string]float64, error) {
		asking := b.ask(ctx)
		course, err := b.command(ctx, api.JobTargets{All: true}, b.names)
		answers, askErr := asking.stop()
		if err == nil {
			err = askErr
		}
		latency := measure.Summarize(answers)
		return map[string]float64{
			"sent_s": course.Sent.Seconds(), "done_s": course.Done.Seconds(), "api_asks": float64(latency.Count),
			"api_p50_ms": latency.P50.Seconds() * 1e3, "api_p99_ms": latency.P99.Seconds() * 1e3, "api_max_ms": latency.Max.Seconds() * 1e3,
		}, err
	})
}

// command orders `uptime` and follows the job to its end. Then every row must be there, and be true.
func (b *bench) command(ctx context.Context, targets api.JobTargets, names []string) (simfleet.Course, error) {
	start := time.Now()
	request := api.JobCommandRequest{JobOrder: api.JobOrder{Targets: targets}, Command: "uptime"}
	started, err := api.JobCommand.Call(ctx, b.api, request)
	if err != nil {
		return simfleet.Course{}, err
	}
	c, err := simfleet.Follow(ctx, b.api, start, started.Job.ID)
	if err != nil {
		return c, err
	}
	return c, b.fleet.Complete(ctx, b.api, started.Job.ID, names)
}

// taskName writes as much as its parameter says; simulated nodes know what to do.
const taskName = "bench::output"

// deployTask gives the server code with that task.
func deployTask(ctx context.Context, tutti *rivals.Tutti, dir string) error {
	tasks := filepath.Join(dir, "modules", "bench", "tasks")
	if err := os.MkdirAll(tasks, 0o750); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"output.json": `{"description": "write much, or take long", "input_method": "stdin",
			"parameters": {"bytes": {"type": "Optional[Integer]"}, "sleep": {"type": "Optional[Integer]"}}}`,
		"output.sh": "#!/bin/sh\nsleep \"${PT_sleep:-0}\"; head -c \"${PT_bytes:-0}\" /dev/zero | tr '\\0' x\n",
	} {
		if err := os.WriteFile(filepath.Join(tasks, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return tutti.Deploy(ctx, "production", dir, filepath.Join(dir, "none"))
}

// output is a task with much output on some agents at once.
func (b *bench) output(ctx context.Context) (measure.Row, error) {
	return b.watched(ctx, fmt.Sprintf("%d tasks with %.1f MB", b.Writers, float64(b.OutputBytes)/1e6), b.Writers, func() (map[string]float64, error) {
		sampled, stop := context.WithCancel(ctx)
		defer stop()
		peak := make(chan int64, 1)
		go func() {
			_, rss := measure.Peak(sampled, 100*time.Millisecond, b.tutti.Usage)
			peak <- rss
		}()
		start := time.Now()
		request := api.JobTaskRequest{
			JobOrder: api.JobOrder{Targets: api.JobTargets{Nodes: b.names[:b.Writers]}}, Task: taskName,
			Params: json.RawMessage(fmt.Sprintf(`{"bytes":%d}`, b.OutputBytes)),
		}
		started, err := api.JobTask.Call(ctx, b.api, request)
		if err != nil {
			return nil, err
		}
		c, err := simfleet.Follow(ctx, b.api, start, started.Job.ID)
		if err != nil {
			return nil, err
		}
		stop()
		figures := map[string]float64{"sent_s": c.Sent.Seconds(), "done_s": c.Done.Seconds(), "peak_rss_mb": float64(<-peak) / 1e6}
		return figures, b.fleet.Complete(ctx, b.api, started.Job.ID, b.names[:b.Writers])
	})
}
