package eventtest_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/event/eventtest"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// silent is a store that keeps runs' events and gives no other answer.
type silent struct{ *eventtest.Store }

func (silent) EventSpan(ctx context.Context) (event.Span, error) {
	<-ctx.Done()
	return event.Span{}, ctx.Err()
}

func (silent) AddEvents(ctx context.Context, _ []event.Event, _ time.Time) error {
	<-ctx.Done()
	return ctx.Err()
}

// A store that falls silent when it has stored something holds up neither the word to the node nor the end of the server.
func TestASilentStoreHoldsUpNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := make(chan time.Time, 10)
		s := event.New(event.Parts{
			Store: silent{eventtest.NewStore()}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
			Tell: func(fleet.Certname, pxp.RunEventsTaken) error {
				told <- time.Now()
				return nil
			},
		}, event.DefaultSettings())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		<-time.After(10 * time.Second)
		for n := range 3 {
			sent := time.Now()
			e := eventtest.Begin(1)
			if n > 0 {
				e = eventtest.Resource(n+1, "success", "File", "/x")
			}
			if err := s.Take(ctx, event.Batch{Node: "web-1", Run: "r", Events: []pxp.RunEvent{e}}, 100); err != nil {
				t.Fatal(err)
			}
			select {
			case at := <-told:
				if took := at.Sub(sent); n == 0 && took > 100*time.Millisecond || took > 2*time.Second {
					t.Errorf("the node waits %v for the word that event %d is stored", took, n+1)
				}
			case <-time.After(time.Hour):
				t.Fatalf("the node never hears that event %d is stored", n+1)
			}
		}
		s.Agent("web-1", event.Connect, "x")
		cancel()
		stopped := time.Now()
		select {
		case err := <-ended:
			if took := time.Since(stopped); err != nil || took > 15*time.Second {
				t.Errorf("it stopped after %v: %v", took, err)
			}
		case <-time.After(time.Hour):
			t.Fatal("it never stops")
		}
	})
}
