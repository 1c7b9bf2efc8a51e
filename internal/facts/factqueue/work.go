package factqueue

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// batchSets is how many sets are read and removed at once.
const batchSets = 256

// The pause after a failure.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// Run applies what is queued until ctx is done: at a hint, and every now and then.
func (s *Service) Run(ctx context.Context) error {
	for pause := firstPause; ; {
		wait, wake := s.cfg.Poll, s.queued
		if err := s.applyQueued(ctx); err != nil && ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "queued facts could not be applied, will retry", "err", err, "pause", pause)
			wait, wake, pause = pause, nil, min(2*pause, lastPause)
		} else {
			pause = firstPause
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-wake:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// applyQueued applies all that is queued.
func (s *Service) applyQueued(ctx context.Context) error {
	for {
		sets, err := s.Store.DueFacts(ctx, batchSets)
		if err != nil {
			return err
		}
		if len(sets) == 0 {
			if s.idle() {
				return nil
			}
			return s.recount(ctx)
		}
		applied, failure := s.applyAll(ctx, sets)
		gone, err := s.Store.DequeueFacts(ctx, applied)
		if err != nil {
			return err
		}
		s.grow(gone, -1)
		s.count.applied.Add(uint64(len(applied)))
		if failure != nil {
			return failure
		}
	}
}

// recount looks how much is queued: nodes that are purged take their sets along.
func (s *Service) recount(ctx context.Context) error {
	load, err := s.Store.QueuedLoad(ctx)
	if err == nil {
		load.Oldest = time.Time{}
		s.mu.Lock()
		s.load = load
		s.mu.Unlock()
	}
	return err
}

// applyAll applies sets of different nodes, and returns those that succeeded.
func (s *Service) applyAll(ctx context.Context, sets []Set) (applied []Set, failure error) {
	ended := make([]error, len(sets))
	var work errgroup.Group
	work.SetLimit(s.cfg.Workers)
	for i, set := range sets {
		work.Go(func() error {
			_, ended[i] = s.Inventory.SaveFacts(ctx, set)
			return nil
		})
	}
	_ = work.Wait() // each set has its own error
	for i, err := range ended {
		if err != nil {
			failure = err
			continue
		}
		applied = append(applied, sets[i])
	}
	return applied, failure
}
