package eventtest

import (
	"log/slog"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// An alarm is an event that readers see at once, and once.
func TestAlarm(t *testing.T) {
	t.Parallel()
	store := NewStore()
	s := event.New(event.Parts{Store: store, Now: time.Now, Log: slog.New(slog.DiscardHandler)}, event.DefaultSettings())
	for range 2 {
		if err := s.Alarm(t.Context(), "web-1", "verification-1", pxp.RunEvent{Environment: "production", Message: "it differs"}); err != nil {
			t.Fatal(err)
		}
	}
	page, err := s.Events(t.Context(), event.Filter{Kinds: []string{event.Alarm}, Limit: 10})
	if err != nil || len(page.Events) != 1 {
		t.Fatalf("got %+v, %v", page.Events, err)
	}
	if e := page.Events[0]; e.Node != "web-1" || e.Message != "it differs" || e.Environment != "production" || e.Status != event.Failure {
		t.Errorf("got %+v", e)
	}
	if unsettled := settle(t, store, 1_000_000); len(unsettled) != 0 {
		t.Errorf("it is taken for a run: %+v", unsettled)
	}
}
