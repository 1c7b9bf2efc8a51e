package release

import (
	"context"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
)

// Jobs is Runs: waves are jobs.
type Jobs struct {
	Jobs *job.Service
	// ByKey is the job that was ordered under a key; NotFound.
	ByKey func(ctx context.Context, key string) (int64, error)
}

// Order implements Runs. Whoever made the release was asked for its permission then.
func (d Jobs) Order(ctx context.Context, o RunOrder) (int64, error) {
	actor := fleet.Actor{Kind: o.AuthorKind, Name: o.Author, Grants: []fleet.Grant{{Permission: fleet.PuppetRun}}}
	spec := job.Spec{
		Kind: job.Puppet, Puppet: &job.PuppetSpec{Noop: o.Noop}, Targets: job.Targets{Nodes: o.Nodes}, Description: o.Description, Key: o.Key, Ordered: !o.Noop,
		MaxFailures: o.MaxFailures, Concurrency: o.Concurrency, Timeout: o.Timeout, WaitOffline: o.WaitOffline,
	}
	j, err := d.Jobs.Create(ctx, actor, spec)
	return j.ID, err
}

// Find implements Runs.
func (d Jobs) Find(ctx context.Context, key string) (int64, error) {
	return d.ByKey(ctx, key)
}

// Stop implements Runs.
func (d Jobs) Stop(ctx context.Context, id int64, kill bool) error {
	_, err := d.Jobs.Stop(ctx, fleet.Actor{Kind: fleet.UserActor, Name: "its release"}, id, kill)
	return err
}

// Results implements Runs.
func (d Jobs) Results(ctx context.Context, id, after int64, n int) (Results, error) {
	changes, err := d.Jobs.Changes(ctx, id, after, n)
	results := Results{Runs: make([]Result, len(changes.Runs)), Last: changes.Last, Over: changes.Job.Status.Final()}
	for i, r := range changes.Runs {
		results.Runs[i] = resultOf(r)
	}
	return results, err
}

func resultOf(r job.Run) Result {
	result := Result{Node: r.Node, Reason: r.Reason, At: r.FinishedAt}
	if r.Puppet != nil {
		result.Transaction, result.Changed = r.Puppet.Transaction, r.Puppet.Status == "changed"
	}
	switch r.State {
	case job.Waiting, job.Sent:
		result.Stands = Pending
	case job.Running:
		result.Stands = Begun
	case job.Succeeded:
		result.Stands = Succeeded
	case job.RunFailed, job.Errored, job.Killed, job.Refused, job.Lost:
		result.Stands = RunFailed
	case job.TimedOut:
		result.Stands = RunTimedOut
	case job.Offline:
		result.Stands = RunOffline
	case job.Skipped:
		result.Stands = RunSkipped
	}
	return result
}
