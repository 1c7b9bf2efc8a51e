package puppetdb

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

func TestAFullGateSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1)
		var first, second inside
		if err := first.enter(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		err := second.enter(t.Context(), g)
		if fault.Of(err) != fault.Unavailable || fault.RetryAfter(err) == 0 || time.Since(begin) != g.patience {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := second.enter(gone, g); fault.Of(err) != fault.Unavailable || len(second) != 0 {
			t.Errorf("a caller that left: %v", err)
		}
		time.AfterFunc(g.patience/2, first.leave)
		if err := second.enter(t.Context(), g); err != nil {
			t.Error(err)
		}
		second.leave()
		if len(g.places) != 0 {
			t.Errorf("%d places are still taken", len(g.places))
		}
	})
}
