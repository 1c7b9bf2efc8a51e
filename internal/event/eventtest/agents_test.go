package eventtest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/event/eventtest"
	"github.com/tutti-project/tutti/internal/fleet"
)

// full is a store that takes nothing for a while.
type full struct {
	*eventtest.Store
	until time.Time
}

func (f full) AddEvents(ctx context.Context, events []event.Event, now time.Time) error {
	if now.Before(f.until) {
		return errors.New("the disk is full")
	}
	return f.Store.AddEvents(ctx, events, now)
}

// A fleet whose agents come and go without end cannot fill the stream; what is not listed is counted, and the next event says so. A store
// that fails for a while costs nothing.
func TestAgentsThatComeAndGoAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := full{eventtest.NewStore(), time.Now().Add(5 * time.Second)}
		s := event.New(event.Parts{Store: store, Now: time.Now, Log: slog.New(slog.DiscardHandler)}, event.DefaultSettings())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		listed := func(f event.Filter) []event.Event {
			f.Limit = 100_000
			all, err := store.Events(ctx, f)
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		for range 50 {
			s.Agent("web-1", event.Connect, "x")
			s.Agent("web-1", event.Disconnect, "x")
		}
		<-time.After(10 * time.Second)
		if got := listed(event.Filter{}); len(got) != 20 || s.Figures().Unlisted != 80 {
			t.Errorf("of one node: %d listed, %d not", len(got), s.Figures().Unlisted)
		}
		<-time.After(3 * time.Minute)
		s.Agent("web-1", event.Connect, "back")
		for round := range 2 {
			for n := range 15_000 {
				s.Agent(fleet.Certname(fmt.Sprintf("node-%d", n)), event.Connect, fmt.Sprint(round))
			}
		}
		cancel() // what waits is stored, too
		if err := <-ended; err != nil {
			t.Error(err)
		}
		ctx = t.Context()
		got := listed(event.Filter{Node: "web-1"})
		if last := got[len(got)-1]; len(got) != 21 || last.Missing != 80 || last.Message != "back" || last.Run != "" {
			t.Errorf("%d of web-1, the last %+v", len(got), last)
		}
		if all := len(listed(event.Filter{})); all < 20_000 || all > 20_100 {
			t.Errorf("%d of the fleet", all)
		}
	})
}
