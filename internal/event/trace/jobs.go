package trace

import (
	"context"

	"go.opentelemetry.io/otel/attribute"

	"github.com/tutti-project/tutti/internal/job"
)

// Jobs is a job.Store that tells of what became of jobs and their runs.
type Jobs struct {
	job.Store
	Recorder *Recorder
}

// Apply implements job.Store.
func (s Jobs) Apply(ctx context.Context, events []job.Event) ([]job.Applied, error) {
	applied, err := s.Store.Apply(ctx, events)
	if err != nil || s.Recorder == nil {
		return applied, err
	}
	for _, a := range applied {
		if a.Verdict == job.Took {
			s.Recorder.stepped(a)
		}
	}
	return applied, nil
}

// Direct implements job.Store: a job of which nothing runs ends with it.
func (s Jobs) Direct(ctx context.Context, id int64, d job.Direction) (job.Job, error) {
	j, err := s.Store.Direct(ctx, id, d)
	if err == nil {
		s.Recorder.ended(j)
	}
	return j, err
}

// stepped tells of a run that was sent or ended, and of its job, if that has ended with it.
func (r *Recorder) stepped(a job.Applied) {
	of := r.of("job", a.Job.ID)
	key := "run " + a.Run.ID
	about := []attribute.KeyValue{attribute.Int64("tutti.job", a.Job.ID), attribute.String("tutti.node", string(a.Run.Node))}
	switch {
	case a.Run.State == job.Sent && a.Run.Attempts <= 1:
		r.record(step{of: of, key: key + " waits", under: whole, name: "wait for its turn", begin: a.Job.CreatedAt, end: a.Run.SentAt, about: about})
	case a.Run.State.Final():
		s := step{
			of: of, key: key, under: whole, name: "run", begin: a.Run.SentAt, end: a.Run.FinishedAt,
			about: append(about, attribute.String("tutti.state", string(a.Run.State))),
		}
		if s.begin.IsZero() { // nothing was sent
			s.begin = a.Run.FinishedAt
		}
		if a.Run.State != job.Succeeded {
			s.failed = a.Run.Reason
		}
		if a.Run.Puppet != nil {
			if catalog, ok := ofRun(a.Run.Puppet.Transaction); ok {
				s.with = append(s.with, catalog)
				s.about = append(s.about, attribute.String("tutti.transaction", a.Run.Puppet.Transaction))
			}
		}
		r.record(s)
	}
	r.ended(a.Job)
}

// ended tells of a job that has ended.
func (r *Recorder) ended(j job.Job) {
	if r == nil || !j.Status.Final() {
		return
	}
	s := step{
		of: r.of("job", j.ID), key: whole, name: "job", begin: j.CreatedAt, end: j.FinishedAt,
		about: []attribute.KeyValue{
			attribute.Int64("tutti.job", j.ID), attribute.String("tutti.kind", string(j.Spec.Kind)), attribute.String("tutti.state", string(j.Status)),
			attribute.Int("tutti.nodes", j.Counts.Total()),
		},
	}
	if j.Status != job.Finished {
		s.failed = j.Reason
	}
	r.record(s)
}
