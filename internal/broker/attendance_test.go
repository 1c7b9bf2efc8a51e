package broker_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/broker/brokertest"
)

// A node whose agent left is told apart from one that never had one, also by the next server.
func TestRegister(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := brokertest.NewAttendances()
		r, err := broker.OpenRegister(t.Context(), store, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()

		begun := time.Now()
		first := broker.Presence{Certname: "web-1", Agent: "tutti-agent/1", Since: begun}
		second := broker.Presence{Certname: "web-1", Agent: "tutti-agent/2", Since: begun.Add(time.Second)}
		r.Came(second)
		r.Came(first) // it was told late
		r.Went(first, begun.Add(2*time.Second))
		r.Came(broker.Presence{Certname: "web-2", Since: begun})
		if got, known := r.Last("web-1"); !known || got.Agent != "tutti-agent/2" || !got.Until.IsZero() {
			t.Errorf("a later connection: %+v", got)
		}
		if _, known := r.Last("db-1"); known {
			t.Error("db-1 never had an agent")
		}
		store.Fail(errors.New("the disk is full"))
		<-time.After(1500 * time.Millisecond)
		store.Fail(nil)
		<-time.After(time.Second)
		if store.Writes() != 1 {
			t.Errorf("%d transactions for two nodes after one that failed", store.Writes())
		}
		<-time.After(time.Minute)
		if store.Writes() != 1 {
			t.Errorf("nothing changed, and %d transactions", store.Writes())
		}
		left := time.Now()
		r.Went(second, left)
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}

		<-time.After(time.Hour)
		restarted := time.Now()
		next, err := broker.OpenRegister(t.Context(), store, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		want := broker.Attendance{Node: "web-1", Agent: "tutti-agent/2", Since: second.Since, Until: left}
		if got, _ := next.Last("web-1"); !cmp.Equal(got, want) {
			t.Errorf("after a restart (-want +got):\n%s", cmp.Diff(want, got))
		}
		if got, _ := next.Last("web-2"); !got.Until.Equal(restarted) {
			t.Errorf("left open by a server that was killed: %+v", got)
		}
		next.Forget("web-1")
		if _, known := next.Last("web-1"); known {
			t.Error("a node that was purged is known")
		}
	})
}

func TestAttendancesInMemory(t *testing.T) {
	t.Parallel()
	brokertest.RunAttendances(t, func(*testing.T) broker.AttendanceStore { return brokertest.NewAttendances() })
}
