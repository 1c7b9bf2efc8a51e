package sql

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
)

const runColumns = `job_id, number, id, node, state, reason, ending, sent_at, started_at, finished_at, due_at, attempts,
	exit_code, puppet, lines, bytes, digest, cut, change, began`

func scanRun(row scanner) (r job.Run, err error) {
	var puppet string
	err = row.Scan(&r.Job, &r.Number, &r.ID, &r.Node, &r.State, &r.Reason, &r.Ending, at(&r.SentAt), at(&r.StartedAt), at(&r.FinishedAt), at(&r.DueAt),
		&r.Attempts, &r.ExitCode, &puppet, &r.Output.Lines, &r.Output.Bytes, &r.Output.Digest, &r.Output.Cut, &r.Change, &r.Began)
	if err == nil && puppet != "" {
		if err = json.Unmarshal([]byte(puppet), &r.Puppet); err != nil {
			err = fmt.Errorf("result of run %s: %w", r.ID, err)
		}
	}
	return r, err
}

// JobRun implements job.Archive.
func (s *Jobs) JobRun(ctx context.Context, id string) (job.Run, error) {
	r, err := scanRun(s.reads.row(ctx, "SELECT "+runColumns+" FROM job_runs WHERE id = $1", id))
	return r, explain(missing(err, "there is no run %.80q", id), "read a run")
}

// Runs implements job.Archive.
func (s *Jobs) Runs(ctx context.Context, id int64, page job.RunPage) ([]job.Run, error) {
	f := filter{dialect: s.dialect}
	f.add("job_id = ?", id)
	f.add("number > ?", page.After)
	oneOf(&f, "state", page.States)
	if page.Node != "" {
		f.add("node = ?", page.Node)
	}
	if page.Digest != "" {
		f.add("digest = ?", page.Digest)
	}
	runs, err := collect(ctx, s.reads, scanRun, "SELECT "+runColumns+" FROM job_runs"+f.where()+" ORDER BY number LIMIT "+f.mark(page.Limit), f.args...)
	return runs, explain(err, "list the runs of job %d", id)
}

// WaitingRuns implements job.Ledger.
func (s *Jobs) WaitingRuns(ctx context.Context, id int64, after, n int) ([]job.Run, error) {
	runs, err := collect(ctx, s.reads, scanRun, "SELECT "+runColumns+` FROM job_runs
		WHERE job_id = $1 AND state = 'waiting' AND number > $2 ORDER BY number LIMIT $3`, id, after, n)
	return runs, explain(err, "list the waiting runs of job %d", id)
}

// Due implements job.Ledger.
func (s *Jobs) Due(ctx context.Context, now time.Time, n int) ([]job.Run, error) {
	runs, err := collect(ctx, s.reads, scanRun, "SELECT "+runColumns+` FROM job_runs
		WHERE state IN ('sent', 'running') AND due_at <= $1 ORDER BY due_at, job_id, number LIMIT $2`, micros(now), n)
	return runs, explain(err, "list the runs that are due")
}

// UnfinishedOf implements job.Ledger.
func (s *Jobs) UnfinishedOf(ctx context.Context, nodes []fleet.Certname) ([]job.Run, error) {
	f := filter{dialect: s.dialect, terms: []string{"state IN ('waiting', 'sent', 'running')"}}
	if len(nodes) == 0 {
		return nil, nil
	}
	oneOf(&f, "node", nodes)
	runs, err := collect(ctx, s.reads, scanRun, "SELECT "+runColumns+" FROM job_runs"+f.where()+" ORDER BY job_id, number", f.args...)
	return runs, explain(err, "list the runs of nodes that have not ended")
}

// Changes implements job.Archive.
func (s *Jobs) Changes(ctx context.Context, id, after int64, n int) (j job.Job, runs []job.Run, err error) {
	err = s.snapshot(ctx, func(ctx context.Context, q querier) (err error) {
		if j, err = s.scanJob(q.row(ctx, "SELECT "+jobColumns+" FROM jobs WHERE id = $1", id)); err != nil {
			return missing(err, "there is no job %d", id)
		}
		runs, err = collect(ctx, q, scanRun, "SELECT "+runColumns+" FROM job_runs WHERE job_id = $1 AND change > $2 ORDER BY change LIMIT $3", id, after, n)
		return err
	})
	return j, runs, explain(err, "read the changes of job %d", id)
}

// MayFetch implements job.Archive.
func (s *Jobs) MayFetch(ctx context.Context, node fleet.Certname, d fleet.Digest, endedAfter time.Time) (bool, error) {
	n, err := one[int](s.reads.row(ctx, `SELECT COUNT(*) FROM (SELECT 1 FROM job_files f JOIN job_runs r ON r.job_id = f.job_id
		WHERE f.digest = $1 AND r.node = $2 AND (r.state IN ('waiting', 'sent', 'running') OR r.finished_at > $3) LIMIT 1) found`,
		d, node, micros(endedAfter)))
	return n > 0, explain(err, "look whether %s may fetch a file", node)
}
