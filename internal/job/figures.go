package job

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// figures count what a Service does.
type figures struct {
	sent, resent, asked atomic.Int64

	mu     sync.Mutex
	open   Counts // of jobs that have not ended, at the last look
	jobs   int
	oldest time.Time // when the oldest job was made of which nothing was sent; zero: there is none
	ended  Counts    // since the start
}

// Stats is what a Service has done since it was made, and what is open.
type Stats struct {
	Sent, Resent, Asked int64
	Open                Counts        // runs that have not ended, at the last look
	Ended               Counts        // runs that ended since the start
	Jobs                int           // that have not ended
	Oldest              time.Duration // age of the oldest job of which nothing was sent yet
	Answers             int64         // on their way into the store
	AnswerBytes         int64
}

// Stats may be called at any time.
func (s *Service) Stats() Stats {
	f := &s.figures
	f.mu.Lock()
	defer f.mu.Unlock()
	st := Stats{
		Sent: f.sent.Load(), Resent: f.resent.Load(), Asked: f.asked.Load(), Open: Counts{}, Ended: Counts{}, Jobs: f.jobs,
		Answers: s.arrivals.waits.Load(), AnswerBytes: s.arrivals.bytes.Load(),
	}
	for _, state := range States() {
		st.Open[state], st.Ended[state] = f.open[state], f.ended[state]
	}
	if !f.oldest.IsZero() {
		st.Oldest = max(0, s.Now().Sub(f.oldest))
	}
	return st
}

// see takes over what the rows of jobs that have not ended say.
func (f *figures) see(jobs []Job) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open, f.jobs, f.oldest = Counts{}, len(jobs), time.Time{}
	for _, j := range jobs {
		for _, state := range Unfinished() {
			f.open[state] += j.Counts[state]
		}
		if j.Status == Queued && f.oldest.IsZero() {
			f.oldest = j.CreatedAt
		}
	}
}

func (f *figures) end(state State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended == nil {
		f.ended = Counts{}
	}
	f.ended[state]++
}

// apply applies events, and tells those who wait for their jobs.
func (s *Service) apply(ctx context.Context, events []Event) ([]Applied, error) {
	applied, err := s.Store.Apply(ctx, events)
	if err != nil {
		return nil, fmt.Errorf("store what became of %d runs: %w", len(events), err)
	}
	changed := map[int64]Job{}
	ended := false
	for _, a := range applied {
		if a.Verdict != Took {
			continue
		}
		changed[a.Job.ID] = a.Job
		if a.Run.State.Final() {
			s.figures.end(a.Run.State)
			s.silence.heard(a.Run.ID)
			ended = true
		}
	}
	for id, j := range changed {
		s.changes.Tell(id)
		if j.Status.Final() {
			s.Log.InfoContext(ctx, "job ended", "job", id, "status", j.Status, "succeeded", j.Counts[Succeeded], "runs", j.Counts.Total())
		}
	}
	if ended { // there may be room for others, or the budget used up
		s.nudgeAll()
	}
	return applied, nil
}

// ask asks a run's node about it. What gets lost is asked again when it is due.
func (s *Service) ask(ctx context.Context, r Run, question, reason string) error {
	n := s.figures.asked.Add(1)
	err := s.Sender.Ask(ctx, r.Node, about(r, question, int(n), reason))
	if err != nil && fault.Of(err) != fault.NotFound {
		s.Log.WarnContext(ctx, "a node could not be asked", "node", r.Node, "run", r.ID, "err", err)
	}
	return err
}

// brief is what has to be known of a job to understand its nodes.
type brief struct {
	kind    Kind
	timeout time.Duration
	puppet  *PuppetSpec // of a Puppet run
}

// briefs remembers them; a job's do not change.
type briefs struct {
	mu    sync.Mutex
	known map[int64]brief
}

// maxBriefs is how many are remembered; then it begins anew.
const maxBriefs = 10_000

func (s *Service) briefOf(ctx context.Context, id int64) (brief, error) {
	s.briefs.mu.Lock()
	b, there := s.briefs.known[id]
	s.briefs.mu.Unlock()
	if there {
		return b, nil
	}
	j, err := s.Store.Job(ctx, id)
	if err != nil {
		return brief{}, err
	}
	b = brief{j.Spec.Kind, j.Spec.Timeout, j.Spec.Puppet}
	s.briefs.mu.Lock()
	defer s.briefs.mu.Unlock()
	if s.briefs.known == nil || len(s.briefs.known) >= maxBriefs {
		s.briefs.known = map[int64]brief{}
	}
	s.briefs.known[id] = b
	return b, nil
}
