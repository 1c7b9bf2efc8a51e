package event

import (
	"context"
	"time"
)

// settledAtOnce is how many runs are settled together.
const settledAtOnce = 100

// Reported is a hint that a report was stored.
func (s *Service) Reported() {
	s.reportedHere()
	s.others.reported("")
}

func (s *Service) reportedHere() {
	select {
	case s.reported <- struct{}{}:
	default:
	}
}

// SettleRuns brings runs and reports together until ctx is done. One of all servers does at a time.
func (s *Service) SettleRuns(ctx context.Context) error {
	tick := time.NewTicker(s.settings.Poll)
	defer tick.Stop()
	for {
		for more := true; more && ctx.Err() == nil; {
			var err error
			if more, err = s.settle(ctx); err != nil && ctx.Err() == nil {
				s.Log.ErrorContext(ctx, "runs not settled with their reports, will retry", "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.reported:
			if !pause(ctx, s.settings.Gather) { // others come with it
				return nil
			}
		case <-tick.C:
		}
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// settle settles some runs; more says that there may be others.
func (s *Service) settle(ctx context.Context) (more bool, err error) {
	now := s.Now()
	runs, err := s.Store.Unsettled(ctx, now.Add(-s.settings.Grace), settledAtOnce)
	if err != nil || len(runs) == 0 {
		return false, err
	}
	settlements := make([]Settlement, len(runs))
	for i, u := range runs {
		settlements[i] = Settle(u)
	}
	settled, err := s.Store.SettleRuns(ctx, settlements, now)
	if err != nil {
		return false, err
	}
	added := false
	for _, one := range settled {
		s.note(ctx, one)
		added = added || len(one.Add) > 0
	}
	if added {
		s.wake(ctx)
	}
	return len(runs) == settledAtOnce, nil
}

// note counts what became of a run, and says what does not agree.
func (s *Service) note(ctx context.Context, one Settlement) {
	s.figures.settled.Add(1)
	s.figures.reported.Add(int64(len(one.Add)))
	s.figures.lacked.Add(int64(one.Lacked))
	s.figures.extra.Add(int64(one.Extra))
	if one.Lacked+one.Extra > 0 {
		s.Log.WarnContext(ctx, "a report and the stream of its run do not agree", "node", one.Run.Node, "run", one.Run.ID,
			"only_in_report", one.Lacked, "only_in_stream", one.Extra)
	}
}
