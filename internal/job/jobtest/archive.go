package jobtest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
)

// Job implements job.Archive.
func (s *Store) Job(_ context.Context, id int64) (job.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.find(id)
	if err != nil {
		return job.Job{}, err
	}
	return copied(k.job), nil
}

// Jobs implements job.Archive.
func (s *Store) Jobs(_ context.Context, page job.Page) ([]job.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var jobs []job.Job
	for _, k := range s.sorted() {
		if k.fits(page) {
			jobs = append(jobs, listed(k.job))
		}
	}
	slices.SortStableFunc(jobs, func(a, b job.Job) int {
		order := cmp.Or(cmp.Compare(columnOf(page.By, a), columnOf(page.By, b)), cmp.Compare(a.ID, b.ID))
		if page.Ascending {
			return order
		}
		return -order
	})
	from := min(page.Offset, len(jobs))
	return jobs[from:min(from+page.Limit, len(jobs))], nil
}

// CountJobs implements job.Archive.
func (s *Store) CountJobs(_ context.Context, page job.Page) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.jobs {
		if k.fits(page) {
			n++
		}
	}
	return n, nil
}

// columnOf is what a job is ordered by.
func columnOf(by job.Column, j job.Job) string {
	switch by {
	case job.ByActor:
		return j.Actor
	case job.ByTime:
		at := j.CreatedAt
		for _, later := range []time.Time{j.StartedAt, j.StoppingAt, j.FinishedAt} {
			if !later.IsZero() {
				at = later
			}
		}
		return at.UTC().Format("2006-01-02T15:04:05.000000")
	case job.ByEnvironment:
		return string(j.Spec.Environment)
	case job.ByStatus:
		return string(j.Status)
	}
	return ""
}

func (k *kept) fits(page job.Page) bool {
	j := k.job
	onNode := page.Node == "" || slices.ContainsFunc(k.runs, func(r job.Run) bool { return r.Node == page.Node })
	task := ""
	if j.Spec.Kind == job.Task {
		task = j.Spec.Task.Name
	}
	ended := (page.FinishedFrom.IsZero() || !j.FinishedAt.Before(page.FinishedFrom)) &&
		(page.FinishedUntil.IsZero() || !j.FinishedAt.IsZero() && !j.FinishedAt.After(page.FinishedUntil))
	if !ended || !strings.Contains(task, page.TaskPart) || page.Plans != nil && *page.Plans != (j.Spec.Plan > 0) ||
		page.Plan > 0 && page.Plan != j.Spec.Plan {
		return false
	}
	return (page.Before == 0 || j.ID < page.Before) && in(page.Statuses, j.Status) && in(page.Kinds, j.Spec.Kind) &&
		(page.Actor == "" || j.Actor == page.Actor) && onNode && (page.Task == "" || task == page.Task)
}

// in says whether a value is wanted.
func in[T comparable](wanted []T, v T) bool { return len(wanted) == 0 || slices.Contains(wanted, v) }

// JobRun implements job.Archive.
func (s *Store) JobRun(_ context.Context, id string) (job.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, there := s.places[id]
	if !there {
		return job.Run{}, fault.New(fault.NotFound, "there is no run %s", id)
	}
	return p.job.runs[p.number-1], nil
}

// Runs implements job.Archive.
func (s *Store) Runs(_ context.Context, id int64, page job.RunPage) ([]job.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pick(page.Limit, func(r job.Run) bool {
		return r.Job == id && r.Number > page.After && in(page.States, r.State) &&
			(page.Node == "" || r.Node == page.Node) && (page.Digest == "" || r.Output.Digest == page.Digest)
	}), nil
}

// Changes implements job.Archive.
func (s *Store) Changes(_ context.Context, id, after int64, n int) (job.Job, []job.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.find(id)
	if err != nil {
		return job.Job{}, nil, err
	}
	runs := s.pick(all, func(r job.Run) bool { return r.Job == id && r.Change > after })
	slices.SortFunc(runs, func(a, b job.Run) int { return cmp.Compare(a.Change, b.Change) })
	return listed(k.job), runs[:min(n, len(runs))], nil
}

// Chunks implements job.Archive.
func (s *Store) Chunks(_ context.Context, run string, after, n int) ([]job.Chunk, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var chunks []job.Chunk
	for _, c := range s.places[run].chunks {
		if len(chunks) < n && c.First+c.Count-1 > after {
			chunks = append(chunks, c)
		}
	}
	return chunks, nil
}

// JobFiles implements job.Archive.
func (s *Store) JobFiles(context.Context) ([]fleet.Digest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var named []fleet.Digest
	for _, k := range s.jobs {
		for _, f := range k.job.Spec.Files() {
			named = append(named, f.Digest)
		}
	}
	slices.Sort(named)
	return slices.Compact(named), nil
}

// MayFetch implements job.Archive.
func (s *Store) MayFetch(_ context.Context, node fleet.Certname, d fleet.Digest, endedAfter time.Time) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.jobs {
		names := slices.ContainsFunc(k.job.Spec.Files(), func(f job.FileRef) bool { return f.Digest == d })
		if names && slices.ContainsFunc(k.runs, func(r job.Run) bool {
			return r.Node == node && (!r.State.Final() || r.FinishedAt.After(endedAfter))
		}) {
			return true, nil
		}
	}
	return false, nil
}
