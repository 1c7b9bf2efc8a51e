package simfleet

import (
	"context"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/sim"
)

// Course is how long a job took from its order on.
type Course struct {
	Sent time.Duration // no run waits any more
	Done time.Duration
}

// Follow asks for a job that was ordered at start until it is over.
func Follow(ctx context.Context, c *api.Client, start time.Time, id string) (Course, error) {
	var course Course
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		job, err := api.JobShow.Call(ctx, c, api.JobRequest{Job: id})
		if err != nil {
			return course, err
		}
		if course.Sent == 0 && job.Counts["waiting"] == 0 && job.State != "queued" {
			course.Sent = time.Since(start)
		}
		switch job.State {
		case "finished":
			course.Done = time.Since(start)
			return course, nil
		case "failed", "stopped":
			return course, fmt.Errorf("the job ended %s: %v", job.State, job.Counts)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return course, fmt.Errorf("the job goes on (%v): %w", job.Counts, ctx.Err())
		}
	}
}

// Complete reads all rows of a job: each node has one that succeeded, and the node says so, too.
func (f *Fleet) Complete(ctx context.Context, c *api.Client, id string, names []string) error {
	left := map[string]bool{}
	for _, name := range names {
		left[name] = true
	}
	request := api.JobRunsRequest{Job: id, Limit: 1000}
	for {
		page, err := api.JobRuns.Call(ctx, c, request)
		if err != nil {
			return err
		}
		for _, run := range page.Items {
			did := sim.Execution{Node: run.Node, Transaction: run.Transaction}
			if wrong := sim.Judge(sim.Verdict{Execution: did, State: run.State, ExitCode: run.ExitCode}, f.Recorder().Count(did)); wrong != "" {
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
