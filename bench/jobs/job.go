package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
	"github.com/tutti-project/tutti/internal/sim"
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
			sent, done = append(sent, course.sent), append(done, course.done)
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
			"sent_s": course.sent.Seconds(), "done_s": course.done.Seconds(), "api_asks": float64(latency.Count),
			"api_p50_ms": latency.P50.Seconds() * 1e3, "api_p99_ms": latency.P99.Seconds() * 1e3, "api_max_ms": latency.Max.Seconds() * 1e3,
		}, err
	})
}

// course is how long a job took from its order on.
type course struct{ sent, done time.Duration }

// command orders `uptime` and follows the job to its end. Then every row must be there, and be true.
func (b *bench) command(ctx context.Context, targets api.JobTargets, names []string) (course, error) {
	start := time.Now()
	request := api.JobCommandRequest{JobOrder: api.JobOrder{Targets: targets}, Command: "uptime"}
	started, err := api.JobCommand.Call(ctx, b.api, request)
	if err != nil {
		return course{}, err
	}
	c, err := b.follow(ctx, start, started.Job.ID)
	if err != nil {
		return c, err
	}
	return c, b.complete(ctx, started.Job.ID, names)
}

// follow asks for the job until it is over.
func (b *bench) follow(ctx context.Context, start time.Time, id string) (course, error) {
	var c course
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		job, err := api.JobShow.Call(ctx, b.api, api.JobRequest{Job: id})
		if err != nil {
			return c, err
		}
		if c.sent == 0 && job.Counts["waiting"] == 0 && job.State != "queued" {
			c.sent = time.Since(start)
		}
		switch job.State {
		case "finished":
			c.done = time.Since(start)
			return c, nil
		case "failed", "stopped":
			return c, fmt.Errorf("the job ended %s: %v", job.State, job.Counts)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return c, fmt.Errorf("the job goes on (%v): %w", job.Counts, ctx.Err())
		}
	}
}

// complete reads all rows of a job: each node has one that succeeded, and the node says so, too.
func (b *bench) complete(ctx context.Context, id string, names []string) error {
	left := map[string]bool{}
	for _, name := range names {
		left[name] = true
	}
	request := api.JobRunsRequest{Job: id, Limit: 1000}
	for {
		page, err := api.JobRuns.Call(ctx, b.api, request)
		if err != nil {
			return err
		}
		for _, run := range page.Items {
			did := sim.Execution{Node: run.Node, Transaction: run.Transaction}
			if wrong := sim.Judge(sim.Verdict{Execution: did, State: run.State, ExitCode: run.ExitCode}, b.fleet.Recorder().Count(did)); wrong != "" {
				return fmt.Errorf("job %s: %s", id, wrong)
			}
			delete(left, run.Node)
		}
		if request.After = page.Next; page.Next == "" {
			break
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("job %s: %d nodes have no row", id, len(left))
	}
	return nil
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
		"output.json": `{"description": "write much", "input_method": "stdin", "parameters": {"bytes": {"type": "Integer"}}}`,
		"output.sh":   "#!/bin/sh\nhead -c \"$PT_bytes\" /dev/zero | tr '\\0' x\n",
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
		c, err := b.follow(ctx, start, started.Job.ID)
		if err != nil {
			return nil, err
		}
		stop()
		figures := map[string]float64{"sent_s": c.sent.Seconds(), "done_s": c.done.Seconds(), "peak_rss_mb": float64(<-peak) / 1e6}
		return figures, b.complete(ctx, started.Job.ID, b.names[:b.Writers])
	})
}
