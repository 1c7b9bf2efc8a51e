package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

// The pace of the stream of what happens in runs.
const (
	happenedAtOnce = 500
	happenedPause  = 20 * time.Millisecond // at least between two reads: more comes together then
	lookAgain      = 30 * time.Second      // for which nodes a condition holds, and what the caller may see
)

// streamEvents sends what happens in Puppet runs, until the caller is gone, the server stops, or the caller may not
// see it any more. Nothing is kept for one who reads too slowly: the connection ends, and who comes back with
// the last number gets what is behind it from the rows.
func (h *events) streamEvents(w http.ResponseWriter, r *http.Request, begin func(any) error) (any, error) {
	var request api.EventStreamRequest
	if err := api.Bind(r, &request); err != nil {
		return nil, err
	}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		request.After, request.Since = last, ""
	}
	want, err := choiceOf(request)
	if err != nil {
		return nil, err
	}
	if err := begin(request); err != nil {
		return nil, err
	}
	if want.After, err = h.startOf(r.Context(), request); err != nil {
		return nil, err
	}
	if err := h.look(r.Context(), &want); err != nil {
		return nil, err
	}
	want.Limit = happenedAtOnce
	s := happenings{eventStream: opened(h.streams, w, r), events: h, wanted: want, complete: request.After != ""}
	return s.follow(r.Context(), s.run, "stream", "events")
}

// startOf is the number behind which a stream begins.
func (h *events) startOf(ctx context.Context, request api.EventStreamRequest) (int64, error) {
	switch {
	case request.After != "" && request.Since != "":
		return 0, fault.New(fault.Invalid, "give after or since, not both")
	case request.After != "":
		return eventNumber("after", request.After)
	case request.Since != "":
		return h.eventsSince(ctx, request.Since)
	default:
		return h.events.Last(ctx)
	}
}

// happenings is one caller who follows what happens in runs.
type happenings struct {
	eventStream
	events   *events
	wanted   choice
	complete bool // the caller knows everything up to where it begins
}

// run ends with an error, if only because nobody follows any more.
func (s *happenings) run(ctx context.Context) error {
	if err := s.position(); err != nil { // so that the answer begins, and the caller knows where
		return err
	}
	for {
		page, err := s.events.events.Events(ctx, s.wanted.Filter)
		if err != nil {
			return err
		}
		if s.complete && s.wanted.After+1 < page.Span.First {
			if err := s.say(api.EventsPruned, page.Span.First-1, api.EventSpan(page.Span)); err != nil {
				return err
			}
		}
		s.complete = true
		events, err := s.events.visible(ctx, s.wanted, page.Events)
		if err != nil {
			return err
		}
		text := make([]byte, 0, 512*len(events))
		for _, e := range events {
			data, err := json.Marshal(eventOf(e))
			if err != nil {
				return err
			}
			text = fmt.Appendf(text, "id: %d\nevent: %s\ndata: %s\n\n", e.Number, api.EventHappened, data)
		}
		moved := page.Upto > s.wanted.After
		s.wanted.After = max(s.wanted.After, page.Upto)
		if len(text) > 0 {
			if err := s.send(string(text)); err != nil {
				return err
			}
		}
		if len(page.Events) == happenedAtOnce || moved && page.Upto < page.Span.Last {
			continue
		}
		if ctx, err = s.wait(ctx); err != nil {
			return err
		}
	}
}

// wait waits for more, and meanwhile shows that the connection is alive and looks again at what the caller
// may see. The context that it returns is of the caller as they are now.
func (s *happenings) wait(ctx context.Context) (context.Context, error) {
	pause := time.NewTimer(happenedPause)
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return ctx, ctx.Err()
	case <-s.events.streams.stopping: // the wait below is short
		return ctx, fault.New(fault.Unavailable, "the server is stopping")
	case <-pause.C:
	}
	if err := s.events.events.Wait(ctx, s.wanted.After); err != nil {
		return ctx, err
	}
	if time.Since(s.spokeAt) > api.EventHeartbeat {
		if err := s.position(); err != nil {
			return ctx, err
		}
	}
	if time.Since(s.checked) < lookAgain {
		return ctx, nil
	}
	s.checked = time.Now()
	actor, err := s.events.gate.shown(s.r)
	if err != nil {
		return ctx, err
	}
	if err := rbac.AllowSome(actor, fleet.ReportRead); err != nil {
		return ctx, err
	}
	ctx = fleet.WithActor(ctx, actor)
	return ctx, s.events.look(ctx, &s.wanted)
}

// position says up to where nothing was left out.
func (s *happenings) position() error {
	return s.say(api.EventPosition, s.wanted.After, api.EventSpan{Last: s.wanted.After})
}

func (s *happenings) say(kind string, number int64, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return s.send(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", number, kind, text))
}
