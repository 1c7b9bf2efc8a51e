package hint //nolint:testpackage // looks at for how many numbers somebody waits

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func notYet() (bool, error) { return false, nil }

func TestAHintWakesAllWhoWaitForItsNumber(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var board Board
		board.Tell(1) // nobody waits
		begin := time.Now()
		waited := make(chan time.Duration, 3)
		for _, id := range []int64{1, 1, 2} {
			go func() {
				if err := board.Wait(t.Context(), id, notYet); err != nil {
					t.Error(err)
				}
				waited <- time.Since(begin)
			}()
		}
		<-time.After(time.Millisecond)
		board.Tell(1)
		for i, want := range []time.Duration{time.Millisecond, time.Millisecond, atMost} {
			if got := <-waited; got != want {
				t.Errorf("the %d. waited %s, not %s", i+1, got, want)
			}
		}
		board.wantWaiters(t, 0)
	})
}

func TestWaitLooksFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var board Board
		begin, broken := time.Now(), errors.New("broken")
		if err := board.Wait(t.Context(), 1, func() (bool, error) { return true, nil }); err != nil {
			t.Errorf("what is so: %v", err)
		}
		if err := board.Wait(t.Context(), 1, func() (bool, error) { return false, broken }); !errors.Is(err, broken) {
			t.Errorf("what cannot be looked at: %v", err)
		}
		hinting := func() (bool, error) {
			board.wantWaiters(t, 1)
			board.Tell(1)
			return false, nil
		}
		if err := board.Wait(t.Context(), 1, hinting); err != nil || time.Since(begin) != 0 {
			t.Errorf("a hint during the look: %v after %s", err, time.Since(begin))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := board.Wait(ctx, 2, notYet); !errors.Is(err, context.Canceled) {
			t.Errorf("who does not wait any more: %v", err)
		}
		board.wantWaiters(t, 0) // also for numbers that nothing has
	})
}

func (t *Board) wantWaiters(tb testing.TB, want int) {
	tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) != want {
		tb.Errorf("there are %d bells, not %d", len(t.waiting), want)
	}
}
