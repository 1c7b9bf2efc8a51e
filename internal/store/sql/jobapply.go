package sql

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/job"
)

// Apply implements job.Ledger.
func (s *Jobs) Apply(ctx context.Context, events []job.Event) (applied []job.Applied, err error) {
	if len(events) == 0 {
		return nil, nil
	}
	packed := s.packOutcomes(events)
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		b, err := s.loadBook(ctx, q, events)
		if err != nil {
			return err
		}
		verdicts := b.step(events)
		if err := b.save(ctx, q); err != nil {
			return err
		}
		for i, v := range verdicts {
			if v.Verdict == job.Took && packed[i] != nil {
				if err := s.insertOutput(ctx, q, v.Run, packed[i]); err != nil {
					return err
				}
			}
		}
		applied = verdicts
		return nil
	})
	return applied, explain(err, "apply %d events of runs", len(events))
}

// packOutcomes packs outputs before the database waits for them.
func (s *Jobs) packOutcomes(events []job.Event) [][]job.Chunk {
	packed := make([][]job.Chunk, len(events))
	for i, e := range events {
		if e.Outcome == nil {
			continue
		}
		packed[i] = slices.Clone(e.Outcome.Chunks)
		for n, c := range packed[i] {
			packed[i][n].Text = s.packer.pack(c.Text)
		}
	}
	return packed
}

// book is the rows that some events are about.
type book struct {
	jobs    map[int64]job.Job
	runs    map[string]job.Run
	touched map[string]bool // runs that changed
	changed map[int64]bool  // jobs that did
}

// loadBook reads the rows. Whoever changes a run holds its job's row, so the jobs are
// locked first, in order.
func (s *Jobs) loadBook(ctx context.Context, q querier, events []job.Event) (b book, err error) {
	b = book{jobs: map[int64]job.Job{}, runs: map[string]job.Run{}, touched: map[string]bool{}, changed: map[int64]bool{}}
	ids := make([]string, len(events))
	for i, e := range events {
		ids[i] = e.Run
	}
	of := filter{dialect: s.dialect}
	oneOf(&of, "id", ids)
	jobs, err := collect(ctx, q, s.scanListedJob, "SELECT "+jobColumns+" FROM jobs WHERE id IN (SELECT job_id FROM job_runs"+of.where()+
		") ORDER BY id"+s.dialect.forUpdate, of.args...)
	if err != nil {
		return b, err
	}
	for _, j := range jobs {
		b.jobs[j.ID] = j
	}
	runs, err := collect(ctx, q, scanRun, "SELECT "+runColumns+" FROM job_runs"+of.where(), of.args...)
	for _, r := range runs {
		if _, locked := b.jobs[r.Job]; !locked { // it was made in between
			return b, fault.New(fault.Unavailable, "a run was ordered just now")
		}
		b.runs[r.ID] = r
	}
	return b, err
}

// step steps the rows through the events.
func (b book) step(events []job.Event) []job.Applied {
	applied := make([]job.Applied, len(events))
	for i, e := range events {
		before, there := b.runs[e.Run]
		if !there {
			applied[i] = job.Applied{Verdict: job.Missing}
			continue
		}
		j, after, verdict := b.jobs[before.Job].Advance(before, e)
		if verdict != job.Took {
			applied[i] = job.Applied{Verdict: verdict, Run: before}
			continue
		}
		if j.Change != b.jobs[j.ID].Change {
			b.changed[j.ID] = true
		}
		b.jobs[j.ID], b.runs[e.Run], b.touched[e.Run] = j, after, true
		applied[i] = job.Applied{Verdict: verdict, Run: after, Job: j}
	}
	return applied
}

// save writes what changed.
func (b book) save(ctx context.Context, q querier) error {
	for id := range b.touched {
		if err := updateRun(ctx, q, b.runs[id]); err != nil {
			return err
		}
	}
	for id := range b.changed {
		if err := updateJob(ctx, q, b.jobs[id]); err != nil {
			return err
		}
	}
	return nil
}

func updateRun(ctx context.Context, q querier, r job.Run) error {
	puppet := ""
	if r.Puppet != nil {
		text, err := json.Marshal(r.Puppet)
		if err != nil {
			return err
		}
		puppet = string(text)
	}
	_, err := q.exec(ctx, `UPDATE job_runs SET state = $1, reason = $2, ending = $3, sent_at = $4, started_at = $5, finished_at = $6, due_at = $7,
		attempts = $8, exit_code = $9, puppet = $10, lines = $11, bytes = $12, digest = $13, cut = $14, change = $15, began = $16 WHERE job_id = $17 AND number = $18`,
		r.State, r.Reason, r.Ending, micros(r.SentAt), micros(r.StartedAt), micros(r.FinishedAt), micros(r.DueAt),
		r.Attempts, r.ExitCode, puppet, r.Output.Lines, r.Output.Bytes, r.Output.Digest, bit(r.Output.Cut), r.Change, r.Began, r.Job, r.Number)
	return err
}

// updateJob writes what changes in the life of a job. What was sealed goes at its end.
func updateJob(ctx context.Context, q querier, j job.Job) error {
	counts, err := json.Marshal(j.Counts)
	if err != nil {
		return err
	}
	_, err = q.exec(ctx, `UPDATE jobs SET status = $1, reason = $2, halted = $3, killed = $4, started_at = $5, finished_at = $6, counts = $7,
		change = $8, own_change = $9, sealed = CASE WHEN $10 = 1 THEN NULL ELSE sealed END, stopping_at = $11, stop_change = $12 WHERE id = $13`,
		j.Status, j.Reason, bit(j.Halted), bit(j.Killed), micros(j.StartedAt), micros(j.FinishedAt), string(counts),
		j.Change, j.OwnChange, bit(j.Status.Final()), micros(j.StoppingAt), j.StopChange, j.ID)
	return err
}

// Direct implements job.Ledger.
func (s *Jobs) Direct(ctx context.Context, id int64, order job.Direction) (j job.Job, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		before, err := s.scanJob(q.row(ctx, "SELECT "+jobColumns+" FROM jobs WHERE id = $1"+s.dialect.forUpdate, id))
		if err != nil {
			return missing(err, "there is no job %d", id)
		}
		after := before.Direct(order)
		if after.Change != before.Change {
			err = updateJob(ctx, q, after)
		}
		j = after
		return err
	})
	return j, explain(err, "stop job %d", id)
}
