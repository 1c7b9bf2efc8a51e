package jobtest

import (
	"cmp"
	"context"
	"slices"
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
	for _, k := range slices.Backward(s.sorted()) {
		if len(jobs) < page.Limit && k.fits(page) {
			jobs = append(jobs, listed(k.job))
		}
	}
	return jobs, nil
}

func (k *kept) fits(page job.Page) bool {
	j := k.job
	onNode := page.Node == "" || slices.ContainsFunc(k.runs, func(r job.Run) bool { return r.Node == page.Node })
	return (page.Before == 0 || j.ID < page.Before) && in(page.Statuses, j.Status) && in(page.Kinds, j.Spec.Kind) &&
		(page.Actor == "" || j.Actor == page.Actor) && onNode && (page.Task == "" || j.Spec.Kind == job.Task && j.Spec.Task.Name == page.Task)
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
