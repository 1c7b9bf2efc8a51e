package factqueue

import "context"

// Crowd takes all places for sets that are applied at once until done is called.
func (s *Service) Crowd() (done func()) {
	n := 0
	for s.enter() {
		n++
	}
	return func() {
		for range n {
			s.leave()
		}
	}
}

// Drain applies all that is queued.
func (s *Service) Drain(ctx context.Context) error { return s.applyQueued(ctx) }
