package jobtest

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
)

// Store keeps jobs in memory.
type Store struct {
	mu     sync.Mutex
	jobs   map[int64]*kept
	places map[string]place
	last   int64
}

// kept is a job and what is its own.
type kept struct {
	job    job.Job
	runs   []job.Run // by number
	sealed []byte
}

type place struct {
	job    *kept
	number int
	chunks []job.Chunk
}

var _ job.Store = (*Store)(nil)

// NewStore returns an empty store.
func NewStore() *Store { return &Store{jobs: map[int64]*kept{}, places: map[string]place{}} }

// CreateJob implements job.Ledger.
func (s *Store) CreateJob(_ context.Context, j job.Job, runs []job.Run, sealed []byte) (job.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.jobs {
		if j.Spec.Key != "" && k.job.Spec.Key == j.Spec.Key {
			return copied(k.job), nil
		}
	}
	for _, r := range runs {
		if _, there := s.places[r.ID]; there {
			return job.Job{}, fault.New(fault.Conflict, "run %s exists already", r.ID)
		}
	}
	s.last++
	j.ID = s.last
	k := &kept{job: copied(j), runs: slices.Clone(runs), sealed: bytes.Clone(sealed)}
	for i := range k.runs {
		k.runs[i].Job = j.ID
		s.places[k.runs[i].ID] = place{job: k, number: k.runs[i].Number}
	}
	s.jobs[j.ID] = k
	return copied(j), nil
}

// copied shares nothing that changes.
func copied(j job.Job) job.Job {
	j.Counts = maps.Clone(j.Counts)
	return j
}

// listed is a job as all but Job and CreateJob return it.
func listed(j job.Job) job.Job {
	j = copied(j)
	j.Spec, _ = j.Spec.Apart()
	j.Edges = nil
	return j
}

// Apply implements job.Ledger.
func (s *Store) Apply(_ context.Context, events []job.Event) ([]job.Applied, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	applied := make([]job.Applied, len(events))
	for i, e := range events {
		applied[i] = s.apply(e)
	}
	return applied, nil
}

func (s *Store) apply(e job.Event) job.Applied {
	p, there := s.places[e.Run]
	if !there {
		return job.Applied{Verdict: job.Missing}
	}
	before := p.job.runs[p.number-1]
	j, after, verdict := p.job.job.Advance(before, e)
	if verdict != job.Took {
		return job.Applied{Verdict: verdict, Run: before}
	}
	p.job.job, p.job.runs[p.number-1] = j, after
	if e.Outcome != nil {
		p.chunks = slices.Clone(e.Outcome.Chunks)
		s.places[e.Run] = p
	}
	if p.job.job.Status.Final() {
		p.job.sealed = nil
	}
	return job.Applied{Verdict: verdict, Run: after, Job: listed(p.job.job)}
}

// Direct implements job.Ledger.
func (s *Store) Direct(_ context.Context, id int64, order job.Direction) (job.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.find(id)
	if err != nil {
		return job.Job{}, err
	}
	k.job = k.job.Direct(order)
	return listed(k.job), nil
}

func (s *Store) find(id int64) (*kept, error) {
	if k := s.jobs[id]; k != nil {
		return k, nil
	}
	return nil, fault.New(fault.NotFound, "there is no job %d", id)
}

// sorted is all jobs by ID.
func (s *Store) sorted() []*kept {
	return slices.SortedFunc(maps.Values(s.jobs), func(a, b *kept) int { return cmp.Compare(a.job.ID, b.job.ID) })
}

// Unended implements job.Ledger.
func (s *Store) Unended(context.Context) ([]job.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var jobs []job.Job
	for _, k := range s.sorted() {
		if !k.job.Status.Final() {
			jobs = append(jobs, listed(k.job))
		}
	}
	return jobs, nil
}

// pick is at most n runs that fit, of all jobs, by job and number.
func (s *Store) pick(n int, fits func(job.Run) bool) []job.Run {
	var runs []job.Run
	for _, k := range s.sorted() {
		for _, r := range k.runs {
			if len(runs) < n && fits(r) {
				runs = append(runs, r)
			}
		}
	}
	return runs
}

const all = int(^uint(0) >> 1)

// WaitingRuns implements job.Ledger.
func (s *Store) WaitingRuns(_ context.Context, id int64, after, n int) ([]job.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pick(n, func(r job.Run) bool { return r.Job == id && r.Number > after && r.State == job.Waiting }), nil
}

// Due implements job.Ledger.
func (s *Store) Due(_ context.Context, now time.Time, n int) ([]job.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	runs := s.pick(all, func(r job.Run) bool {
		return (r.State == job.Sent || r.State == job.Running) && !r.DueAt.After(now)
	})
	slices.SortStableFunc(runs, func(a, b job.Run) int { return a.DueAt.Compare(b.DueAt) })
	return runs[:min(n, len(runs))], nil
}

// UnfinishedOf implements job.Ledger.
func (s *Store) UnfinishedOf(_ context.Context, nodes []fleet.Certname) ([]job.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pick(all, func(r job.Run) bool { return !r.State.Final() && slices.Contains(nodes, r.Node) }), nil
}

// Sealed implements job.Ledger.
func (s *Store) Sealed(_ context.Context, id int64) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.find(id)
	if err != nil {
		return nil, err
	}
	return bytes.Clone(k.sealed), nil
}

// PruneJobs implements job.Ledger.
func (s *Store) PruneJobs(_ context.Context, before time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := 0
	for id, k := range s.jobs {
		if !k.job.Status.Final() || !k.job.FinishedAt.Before(before) {
			continue
		}
		for _, r := range k.runs {
			delete(s.places, r.ID)
		}
		delete(s.jobs, id)
		count++
	}
	return count, nil
}
