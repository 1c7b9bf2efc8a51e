package bell_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/bell"
)

func TestABellWakesAllWhoWaitForItsNumber(t *testing.T) {
	t.Parallel()
	var tower bell.Tower
	tower.Ring(1) // nobody waits
	one, again, two := tower.Of(1), tower.Of(1), tower.Of(2)
	tower.Ring(1)
	for _, rung := range []<-chan struct{}{one, again} {
		select {
		case <-rung:
		default:
			t.Error("somebody who waits was not woken")
		}
	}
	for what, quiet := range map[string]<-chan struct{}{"another number": two, "who comes later": tower.Of(1)} {
		select {
		case <-quiet:
			t.Errorf("%s was woken", what)
		default:
		}
	}
}

func TestListen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var tower bell.Tower
		begin := time.Now()
		if err := bell.Listen(t.Context(), tower.Of(1)); err != nil || time.Since(begin) != time.Second {
			t.Errorf("a bell that does not ring: %v after %s", err, time.Since(begin))
		}
		begin = time.Now()
		time.AfterFunc(time.Millisecond, func() { tower.Ring(1) })
		if err := bell.Listen(t.Context(), tower.Of(1)); err != nil || time.Since(begin) != time.Millisecond {
			t.Errorf("a bell that rings: %v after %s", err, time.Since(begin))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := bell.Listen(ctx, tower.Of(2)); !errors.Is(err, context.Canceled) {
			t.Errorf("who does not wait any more: %v", err)
		}
	})
}
