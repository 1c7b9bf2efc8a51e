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
	created_at, started_at, stopping_at, finished_at, counts, change, own_change, stop_change`

// scanJob reads jobColumns, and what else is asked for.
func (s *Jobs) scanJob(row scanner, more ...any) (j job.Job, err error) {
	var spec []byte
	var counts string
	err = row.Scan(append([]any{
		&j.ID, &spec, &j.Actor, &j.ActorKind, &j.Status, &j.Reason, &j.Halted, &j.Killed, &j.RerunOf,
		at(&j.CreatedAt), at(&j.StartedAt), at(&j.StoppingAt), at(&j.FinishedAt), &counts, &j.Change, &j.OwnChange, &j.StopChange,
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
		id, err := one[int64](q.row(ctx,
			`INSERT INTO jobs (order_key, kind, task, environment, plan, spec, bulk, sealed, actor, actor_kind, status, reason, halted, killed,
			rerun_of, created_at, started_at, finished_at, counts, change, own_change, edges)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22) RETURNING id`,
			spec.Key, j.Spec.Kind, task, spec.Environment, spec.Plan, text, rest, sealed, j.Actor, j.ActorKind, j.Status, j.Reason, bit(j.Halted), bit(j.Killed),
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
	return s.dialect.insert(ctx, q, "job_runs", []column{{"job_id", ints}, {"number", ints}, {"id", texts}, {"node", texts}, {"state", texts}, {"reason", texts}},
		"", rows)
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
	f := s.jobsOf(page)
	direction := " DESC"
	if page.Ascending {
		direction = ""
	}
	order := " ORDER BY id" + direction
	if column, known := jobOrders[page.By]; known {
		order = " ORDER BY " + column + direction + ", id" + direction
	}
	jobs, err := collect(ctx, s.reads, s.scanListedJob,
		"SELECT "+jobColumns+" FROM jobs"+f.where()+order+" LIMIT "+f.mark(page.Limit)+" OFFSET "+f.mark(page.Offset), f.args...)
	return jobs, explain(err, "list jobs")
}

// jobOrders is what the columns of job.Page are in a statement.
var jobOrders = map[job.Column]string{
	job.ByActor:       "actor",
	job.ByTime:        "CASE WHEN finished_at > 0 THEN finished_at WHEN stopping_at > 0 THEN stopping_at WHEN started_at > 0 THEN started_at ELSE created_at END",
	job.ByEnvironment: "environment",
	job.ByStatus:      "status",
}

// CountJobs implements job.Archive.
func (s *Jobs) CountJobs(ctx context.Context, page job.Page) (int, error) {
	f := s.jobsOf(page)
	n, err := one[int](s.reads.row(ctx, "SELECT COUNT(*) FROM jobs"+f.where(), f.args...))
	return n, explain(err, "count jobs")
}

// jobsOf is the conditions of a page.
func (s *Jobs) jobsOf(page job.Page) filter {
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
	if page.TaskPart != "" {
		f.add(`task LIKE ? ESCAPE '!'`, "%"+likePattern.Replace(page.TaskPart)+"%")
	}
	if page.Plans != nil {
		f.add("CASE WHEN plan > 0 THEN 1 ELSE 0 END = ?", bit(*page.Plans))
	}
	if page.Plan > 0 {
		f.add("plan = ?", page.Plan)
	}
	if !page.FinishedFrom.IsZero() {
		f.add("finished_at >= ?", micros(page.FinishedFrom))
	}
	if !page.FinishedUntil.IsZero() {
		f.add("finished_at > 0 AND finished_at <= ?", micros(page.FinishedUntil))
	}
	return f
}

// likePattern makes a text mean itself in a pattern.
var likePattern = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_")

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
