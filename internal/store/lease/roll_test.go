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
		roll, ended, drains, clock := leasetest.NewRoll(), make(chan error, 1), make(chan lease.Drain, 2), new(lease.Clock)
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			ended <- lease.Attendance{
				Roll: roll, Server: lease.Server{ID: "a", Address: "https://a", Version: "1"}, Every: 3 * time.Second, Clock: clock, Log: slog.New(slog.DiscardHandler),
				Drain: func(d lease.Drain) { drains <- d },
			}.Run(ctx)
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
		if !clock.Now().Equal(time.Now()) {
			t.Errorf("the roll's clock says %s", clock.Now())
		}
		if err := roll.DrainServer(ctx, "a", time.Minute); err != nil {
			t.Fatal(err)
		}
		asked := time.Now()
		if d := <-drains; d.Over != time.Minute || time.Since(asked) > 3*time.Second {
			t.Errorf("it hears %+v after %s", d, time.Since(asked))
		}
		if err := roll.LeaveServer(ctx, "a"); err != nil { // it was forgotten
			t.Fatal(err)
		}
		<-time.After(10 * time.Second)
		if all, err := roll.Servers(ctx); err != nil || len(all) != 2 || len(drains) > 0 {
			t.Errorf("a server that was forgotten: %+v, %v; it hears of %d drains", all, err, len(drains))
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
