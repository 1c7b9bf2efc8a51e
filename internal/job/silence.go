package job

import (
	"sync"
	"time"
)

// unanswered is how often a node was asked about a run, orders that were sent again among it, since it last said anything of the run.
type unanswered struct {
	asked int
	since time.Time // the first of these questions
}

// silence remembers it of every run. All of it can be lost: nodes connect anew to a server that starts, and what was asked over
// an earlier connection does not count.
type silence struct {
	mu   sync.Mutex
	runs map[string]unanswered
}

// asked counts a question that is about to be sent.
func (s *silence) asked(run string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs == nil {
		s.runs = map[string]unanswered{}
	}
	u := s.runs[run]
	if u.asked == 0 {
		u.since = now
	}
	u.asked++
	s.runs[run] = u
}

// heard forgets: the node said something, or the question never left.
func (s *silence) heard(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, run)
}

// heardAny forgets a run of which another server heard; without one it may be any.
func (s *silence) heardAny(run string) {
	if run != "" {
		s.heard(run)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.runs)
}

// of is how often the node was asked about a run over the connection that it has since then.
func (s *silence) of(run string, connected time.Time) unanswered {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.runs[run]
	if u.since.Before(connected) {
		delete(s.runs, run)
		return unanswered{}
	}
	return u
}
