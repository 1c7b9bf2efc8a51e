package server

import (
	"context"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/release"
)

// releaseRuns is release.Runs: waves are jobs.
type releaseRuns struct{ *parts }

// Order implements release.Runs. Whoever made the release was asked for its permission then.
func (d releaseRuns) Order(ctx context.Context, o release.RunOrder) (int64, error) {
	actor := fleet.Actor{Kind: o.AuthorKind, Name: o.Author, Grants: []fleet.Grant{{Permission: fleet.PuppetRun}}}
	spec := job.Spec{
		Kind: job.Puppet, Puppet: &job.PuppetSpec{Noop: o.Noop}, Targets: job.Targets{Nodes: o.Nodes}, Description: o.Description, Key: o.Key, Ordered: !o.Noop,
		MaxFailures: o.MaxFailures, Concurrency: o.Concurrency, Timeout: o.Timeout, WaitOffline: o.WaitOffline,
	}
	j, err := d.jobs.Create(ctx, actor, spec)
	return j.ID, err
}

// Find implements release.Runs.
func (d releaseRuns) Find(ctx context.Context, key string) (int64, error) {
	return d.store.Jobs.JobByKey(ctx, key)
}

// Stop implements release.Runs.
func (d releaseRuns) Stop(ctx context.Context, id int64, kill bool) error {
	_, err := d.jobs.Stop(ctx, fleet.Actor{Kind: fleet.UserActor, Name: "its release"}, id, kill)
	return err
}

// Results implements release.Runs.
func (d releaseRuns) Results(ctx context.Context, id, after int64, n int) (release.Results, error) {
	changes, err := d.jobs.Changes(ctx, id, after, n)
	results := release.Results{Runs: make([]release.Result, len(changes.Runs)), Last: changes.Last, Over: changes.Job.Status.Final()}
	for i, r := range changes.Runs {
		results.Runs[i] = resultOf(r)
	}
	return results, err
}

func resultOf(r job.Run) release.Result {
	result := release.Result{Node: r.Node, Reason: r.Reason, At: r.FinishedAt}
	if r.Puppet != nil {
		result.Transaction, result.Changed = r.Puppet.Transaction, r.Puppet.Status == "changed"
	}
	switch r.State {
	case job.Waiting, job.Sent:
		result.Stands = release.Pending
	case job.Running:
		result.Stands = release.Begun
	case job.Succeeded:
		result.Stands = release.Succeeded
	case job.RunFailed, job.Errored, job.Killed, job.Refused, job.Lost:
		result.Stands = release.RunFailed
	case job.TimedOut:
		result.Stands = release.RunTimedOut
	case job.Offline:
		result.Stands = release.RunOffline
	case job.Skipped:
		result.Stands = release.RunSkipped
	}
	return result
}
