package sql

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/job"
)

// insertOutput stores packed chunks of a run.
func (s *Jobs) insertOutput(ctx context.Context, q querier, r job.Run, chunks []job.Chunk) error {
	rows := make([][]any, len(chunks))
	for i, c := range chunks {
		rows[i] = []any{r.Job, int64(r.Number), int64(c.First), int64(c.Count), micros(c.At), c.Text}
	}
	return s.dialect.insert(ctx, q, "job_output", []column{
		{"job_id", ints}, {"number", ints}, {"first", ints}, {"count", ints}, {"at", ints}, {"text", blobs},
	}, "", rows)
}

// Chunks implements job.Archive.
func (s *Jobs) Chunks(ctx context.Context, run string, after, n int) ([]job.Chunk, error) {
	chunks, err := collect(ctx, s.reads, s.scanChunk, `SELECT o.first, o.count, o.at, o.text FROM job_runs r
		JOIN job_output o ON o.job_id = r.job_id AND o.number = r.number
		WHERE r.id = $1 AND o.first + o.count - 1 > $2 ORDER BY o.first LIMIT $3`, run, after, n)
	return chunks, explain(err, "read the output of a run")
}

func (s *Jobs) scanChunk(row scanner) (c job.Chunk, err error) {
	var packed []byte
	if err = row.Scan(&c.First, &c.Count, at(&c.At), &packed); err == nil {
		c.Text, err = s.packer.unpack(packed)
	}
	return c, err
}

// PruneJobs implements job.Ledger, some rows at a time: output first, the job last.
func (s *Jobs) PruneJobs(ctx context.Context, before time.Time) (int, error) {
	for count := 0; ; count++ {
		id, err := one[int64](s.reads.row(ctx, `SELECT COALESCE(MIN(id), 0) FROM jobs
			WHERE status IN ('finished', 'failed', 'stopped') AND finished_at < $1`, micros(before)))
		if err != nil || id == 0 {
			return count, explain(err, "find jobs past their time")
		}
		if err := s.forgetJob(ctx, id); err != nil {
			return count, explain(err, "forget job %d", id)
		}
	}
}

func (s *Jobs) forgetJob(ctx context.Context, id int64) error {
	for _, some := range []string{
		"DELETE FROM job_output WHERE (job_id, number, first) IN (SELECT job_id, number, first FROM job_output WHERE job_id = $1 LIMIT $2)",
		"DELETE FROM job_runs WHERE (job_id, number) IN (SELECT job_id, number FROM job_runs WHERE job_id = $1 LIMIT $2)",
	} {
		for count := int64(pruneBatch); count == pruneBatch; {
			err := s.write(ctx, func(ctx context.Context, q querier) (err error) {
				count, err = q.exec(ctx, some, id, pruneBatch)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return s.write(ctx, func(ctx context.Context, q querier) error {
		if _, err := q.exec(ctx, "DELETE FROM job_files WHERE job_id = $1", id); err != nil {
			return err
		}
		_, err := q.exec(ctx, "DELETE FROM jobs WHERE id = $1", id)
		return err
	})
}
