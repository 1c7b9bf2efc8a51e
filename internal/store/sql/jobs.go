package sql

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
)

// Jobs is orders over many nodes and the runs that they have there.
type Jobs struct{ *base }

const jobColumns = `id, spec, actor, actor_kind, status, reason, halted, killed, rerun_of,
	created_at, started_at, finished_at, counts, change, own_change`

// scanJob reads jobColumns, and what else is asked for.
func (s *Jobs) scanJob(row scanner, more ...any) (j job.Job, err error) {
	var spec []byte
	var counts string
	err = row.Scan(append([]any{
		&j.ID, &spec, &j.Actor, &j.ActorKind, &j.Status, &j.Reason, &j.Halted, &j.Killed, &j.RerunOf,
		at(&j.CreatedAt), at(&j.StartedAt), at(&j.FinishedAt), &counts, &j.Change, &j.OwnChange,
	}, more...)...)
	if err != nil {
		return j, err
	}
	if err := json.Unmarshal([]byte(counts), &j.Counts); err != nil {
		return j, fmt.Errorf("counts of job %d: %w", j.ID, err)
	}
	if err := s.unpackJSON(spec, &j.Spec); err != nil {
		return j, fmt.Errorf("spec of job %d: %w", j.ID, err)
	}
	return j, nil
}

func (s *base) packJSON(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	return s.packer.pack(text), err
}

func (s *base) unpackJSON(packed []byte, to any) error {
	text, err := s.packer.unpack(packed)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	return err
}

func (s *Jobs) scanListedJob(row scanner) (job.Job, error) { return s.scanJob(row) }

// CreateJob implements job.Ledger.
func (s *Jobs) CreateJob(ctx context.Context, j job.Job, runs []job.Run, sealed []byte) (job.Job, error) {
	spec, bulk := j.Spec.Apart()
	text, err := s.packJSON(spec)
	if err != nil {
		return job.Job{}, explain(err, "create a job")
	}
	rest, err := s.packJSON(bulk)
	if err != nil {
		return job.Job{}, explain(err, "create a job")
	}
	edges, err := s.packEdges(j.Edges)
	if err != nil {
		return job.Job{}, explain(err, "create a job")
	}
	counts, err := json.Marshal(j.Counts)
	if err != nil {
		return job.Job{}, explain(err, "create a job")
	}
	task := ""
	if spec.Kind == job.Task {
		task = spec.Task.Name
	}
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		if spec.Key != "" {
			there, err := s.scanJob(q.row(ctx, "SELECT "+jobColumns+" FROM jobs WHERE order_key = $1 AND order_key <> ''", spec.Key))
			if err == nil || !errors.Is(err, sql.ErrNoRows) {
				j = there
				return err
			}
		}
		id, err := one[int64](q.row(ctx, `INSERT INTO jobs (order_key, kind, task, spec, bulk, sealed, actor, actor_kind, status, reason, halted, killed,
			rerun_of, created_at, started_at, finished_at, counts, change, own_change, edges)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20) RETURNING id`,
			spec.Key, j.Spec.Kind, task, text, rest, sealed, j.Actor, j.ActorKind, j.Status, j.Reason, bit(j.Halted), bit(j.Killed),
			j.RerunOf, micros(j.CreatedAt), micros(j.StartedAt), micros(j.FinishedAt), string(counts), j.Change, j.OwnChange, edges))
		if err != nil {
			return err
		}
		if err := s.insertRuns(ctx, q, id, runs); err != nil {
			return err
		}
		if err := s.insertJobFiles(ctx, q, id, spec.Files()); err != nil {
			return err
		}
		j.ID = id
		return nil
	})
	return j, explain(err, "create a job")
}

// packEdges is nil if there are none.
func (s *Jobs) packEdges(edges []job.Edge) ([]byte, error) {
	if len(edges) == 0 {
		return nil, nil
	}
	return s.packJSON(edges)
}

func (s *Jobs) insertRuns(ctx context.Context, q querier, id int64, runs []job.Run) error {
	rows := make([][]any, len(runs))
	for i, r := range runs {
		rows[i] = []any{id, int64(r.Number), r.ID, string(r.Node), string(r.State), r.Reason}
	}
	return s.dialect.insert(ctx, q, "job_runs", []column{{"job_id", ints}, {"number", ints}, {"id", texts}, {"node", texts}, {"state", texts}, {"reason", texts}}, "", rows)
}

func (s *Jobs) insertJobFiles(ctx context.Context, q querier, id int64, files []job.FileRef) error {
	rows := make([][]any, len(files))
	for i, f := range files {
		rows[i] = []any{string(f.Digest), id}
	}
	return s.dialect.insert(ctx, q, "job_files", []column{{"digest", texts}, {"job_id", ints}}, "ON CONFLICT DO NOTHING", rows)
}

// Job implements job.Archive.
func (s *Jobs) Job(ctx context.Context, id int64) (job.Job, error) {
	var packed, edges []byte
	j, err := s.scanJob(s.reads.row(ctx, "SELECT "+jobColumns+", bulk, edges FROM jobs WHERE id = $1", id), &packed, &edges)
	if err != nil {
		return j, explain(missing(err, "there is no job %d", id), "read job %d", id)
	}
	var bulk job.Bulk
	err = s.unpackJSON(packed, &bulk)
	j.Spec = j.Spec.With(bulk)
	if err == nil && len(edges) > 0 {
		err = s.unpackJSON(edges, &j.Edges)
	}
	return j, explain(err, "read the bulk of job %d", id)
}

// Jobs implements job.Archive. The statement has only the conditions that are asked
// for, so that it can use its indexes.
func (s *Jobs) Jobs(ctx context.Context, page job.Page) ([]job.Job, error) {
	f := filter{dialect: s.dialect}
	if page.Before > 0 {
		f.add("id < ?", page.Before)
	}
	oneOf(&f, "status", page.Statuses)
	oneOf(&f, "kind", page.Kinds)
	if page.Actor != "" {
		f.add("actor = ?", page.Actor)
	}
	if page.Task != "" {
		f.add("task = ?", page.Task)
	}
	if page.Node != "" {
		f.add("id IN (SELECT job_id FROM job_runs WHERE node = ?)", page.Node)
	}
	jobs, err := collect(ctx, s.reads, s.scanListedJob, "SELECT "+jobColumns+" FROM jobs"+f.where()+" ORDER BY id DESC LIMIT "+f.mark(page.Limit), f.args...)
	return jobs, explain(err, "list jobs")
}

// Unended implements job.Ledger.
func (s *Jobs) Unended(ctx context.Context) ([]job.Job, error) {
	jobs, err := collect(ctx, s.reads, s.scanListedJob, "SELECT "+jobColumns+" FROM jobs WHERE status IN ('queued', 'running', 'stopping') ORDER BY id")
	return jobs, explain(err, "list jobs that have not ended")
}

// Sealed implements job.Ledger.
func (s *Jobs) Sealed(ctx context.Context, id int64) (sealed []byte, err error) {
	err = s.reads.row(ctx, "SELECT sealed FROM jobs WHERE id = $1", id).Scan(&sealed)
	return sealed, explain(missing(err, "there is no job %d", id), "read job %d", id)
}

// JobFiles implements job.Archive.
func (s *Jobs) JobFiles(ctx context.Context) ([]fleet.Digest, error) {
	digests, err := collect(ctx, s.reads, one[fleet.Digest], "SELECT DISTINCT digest FROM job_files ORDER BY digest")
	return digests, explain(err, "list the files of jobs")
}

// filter is the conditions of a statement.
type filter struct {
	dialect dialect
	terms   []string
	args    []any
}

// add adds a condition with ? for its value.
func (f *filter) add(condition string, value any) {
	f.terms = append(f.terms, strings.ReplaceAll(condition, "?", f.mark(value)))
}

// mark is the placeholder of one more value.
func (f *filter) mark(value any) string {
	f.args = append(f.args, value)
	return mark(len(f.args))
}

func (f *filter) where() string {
	if len(f.terms) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(f.terms, " AND ")
}

// oneOf adds that a column has one of the values, if there are any.
func oneOf[T ~string](f *filter, column string, values []T) {
	if len(values) > 0 {
		f.add(column+" IN "+f.dialect.listed, jsonList(values))
	}
}

// jsonList is values as a statement takes them, see dialect.listed.
func jsonList[T ~string](values []T) string {
	text, _ := json.Marshal(slices.Clip(values)) // texts can be written
	return string(text)
}
