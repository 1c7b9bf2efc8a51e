package lease_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/store/lease"
	"github.com/tutti-project/tutti/internal/store/lease/leasetest"
)

// A server is on the roll while it runs, and seen; one that is killed stays on it, silent.
func TestAServerIsOnTheRollWhileItRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		roll, ended := leasetest.NewRoll(), make(chan error, 1)
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			ended <- lease.Attend(ctx, roll, lease.Server{ID: "a", Address: "https://a", Version: "1"}, 3*time.Second, slog.New(slog.DiscardHandler))
		}()
		if err := roll.EnrolServer(ctx, lease.Server{ID: "killed"}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		all, err := roll.Servers(ctx)
		if err != nil || len(all) != 2 || all[0].ID != "a" || all[0].Silent > 3*time.Second || time.Since(all[0].Started) != time.Minute ||
			all[1].Silent != time.Minute {
			t.Errorf("the roll: %+v, %v", all, err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if all, err = roll.Servers(t.Context()); err != nil || len(all) != 1 || all[0].ID != "killed" {
			t.Errorf("after its stop: %+v, %v", all, err)
		}
	})
}
