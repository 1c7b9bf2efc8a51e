package bell //nolint:testpackage // looks at how many bells there are

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func notYet() (bool, error) { return false, nil }

func TestABellWakesAllWhoWaitForItsNumber(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var tower Tower
		tower.Ring(1) // nobody waits
		begin := time.Now()
		waited := make(chan time.Duration, 3)
		for _, id := range []int64{1, 1, 2} {
			go func() {
				if err := tower.Wait(t.Context(), id, notYet); err != nil {
					t.Error(err)
				}
				waited <- time.Since(begin)
			}()
		}
		<-time.After(time.Millisecond)
		tower.Ring(1)
		for i, want := range []time.Duration{time.Millisecond, time.Millisecond, atMost} {
			if got := <-waited; got != want {
				t.Errorf("the %d. waited %s, not %s", i+1, got, want)
			}
		}
		tower.wantBells(t, 0)
	})
}

func TestWaitLooksFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var tower Tower
		begin, broken := time.Now(), errors.New("broken")
		if err := tower.Wait(t.Context(), 1, func() (bool, error) { return true, nil }); err != nil {
			t.Errorf("what is so: %v", err)
		}
		if err := tower.Wait(t.Context(), 1, func() (bool, error) { return false, broken }); !errors.Is(err, broken) {
			t.Errorf("what cannot be looked at: %v", err)
		}
		ringing := func() (bool, error) {
			tower.wantBells(t, 1)
			tower.Ring(1)
			return false, nil
		}
		if err := tower.Wait(t.Context(), 1, ringing); err != nil || time.Since(begin) != 0 {
			t.Errorf("a bell that rings during the look: %v after %s", err, time.Since(begin))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := tower.Wait(ctx, 2, notYet); !errors.Is(err, context.Canceled) {
			t.Errorf("who does not wait any more: %v", err)
		}
		tower.wantBells(t, 0) // also for numbers that nothing has
	})
}

func (t *Tower) wantBells(tb testing.TB, want int) {
	tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.bells) != want {
		tb.Errorf("there are %d bells, not %d", len(t.bells), want)
	}
}
