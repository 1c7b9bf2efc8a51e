package preview

import (
	"context"
	"sync"
	"time"
)

// Run works on previews until ctx is done.
func (s *Service) Run(ctx context.Context) error {
	poll := time.NewTicker(s.Poll)
	defer poll.Stop()
	var running sync.WaitGroup
	defer running.Wait()
	for {
		if err := s.begin(ctx, &running); err != nil && ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "which previews are open is not known, will retry", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-poll.C:
		case <-s.wake:
		}
		s.mu.Lock()
		for _, w := range s.live {
			w.hint()
		}
		s.mu.Unlock()
	}
}

// begin starts to work on open previews, as many as there is room for.
func (s *Service) begin(ctx context.Context, running *sync.WaitGroup) error {
	open, err := s.Store.OpenPreviews(ctx)
	if err != nil {
		return err
	}
	for _, p := range open {
		s.mu.Lock()
		_, there := s.live[p.ID]
		full := len(s.live) >= s.MaxAtOnce
		s.mu.Unlock()
		if full {
			return nil
		}
		if there {
			continue
		}
		w := newWork(s, p)
		s.mu.Lock()
		s.live[p.ID] = w
		s.mu.Unlock()
		running.Go(func() {
			defer s.drop(p.ID)
			w.run(ctx)
		})
	}
	return nil
}

func (s *Service) drop(id int64) {
	s.mu.Lock()
	delete(s.live, id)
	s.mu.Unlock()
	s.wakeHere()
}

// Finished says that a compilation has ended, of a preview or not. It never blocks.
func (s *Service) Finished(compilation int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.live {
		w.hear(compilation)
	}
}
