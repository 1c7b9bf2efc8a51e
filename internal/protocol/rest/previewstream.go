package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/preview"
)

const (
	previewPause   = 250 * time.Millisecond // at least between two events of a preview
	previewChanges = 100                    // the largest are looked at for each
)

// streamPreview sends how far a preview is as server-sent events, until it has ended, the caller is gone, the server
// stops, or the caller may not see it any more. The number of an event is how many nodes are known: who comes back with it
// gets what is known by then.
func (h *previews) streamPreview(w http.ResponseWriter, r *http.Request, begin func(any) error) (any, error) {
	var request api.PreviewEventsRequest
	if err := api.Bind(r, &request); err != nil {
		return nil, err
	}
	after := -1
	if last := lastSeen(r, request.After); last != "" {
		var err error
		if after, err = afterOf(last); err != nil {
			return nil, err
		}
	}
	if err := begin(request); err != nil {
		return nil, err
	}
	p, err := h.preview(r.Context(), fleet.PreviewRead, request.Preview)
	if err != nil {
		return nil, err
	}
	s := previewStream{eventStream: opened(h.streams, w, r), previews: h, id: p.ID, after: after, sent: map[string]int{}}
	return s.follow(r.Context(), s.run, "stream", "preview", "id", p.ID)
}

// previewStream is one caller who follows a preview.
type previewStream struct {
	eventStream
	previews *previews
	id       int64
	after    int            // the number of the last event
	sent     map[string]int // nodes of the changes that were sent, by key
}

func (s *previewStream) run(ctx context.Context) error {
	if err := s.send(": follow\n\n"); err != nil { // so that the answer begins
		return err
	}
	for {
		p, err := s.previews.previews.Preview(ctx, s.id)
		if err != nil {
			return err
		}
		number, ended := p.Counts.Known(), p.State != preview.Compiling
		if ended {
			number++
		}
		if number > s.after {
			if err := s.tell(ctx, p, number); err != nil {
				return err
			}
		}
		if ended {
			return s.send("event: " + api.StreamEnded + "\ndata: {}\n\n")
		}
		if err := s.rest(ctx, previewPause, func() error { return s.previews.previews.Wait(ctx, s.id, s.after) }, func(ctx context.Context) error {
			_, err := s.previews.preview(ctx, fleet.PreviewRead, strconv.FormatInt(s.id, 10))
			return err
		}); err != nil {
			return err
		}
	}
}

// tell sends one event.
func (s *previewStream) tell(ctx context.Context, p preview.Preview, number int) error {
	groups, err := s.previews.previews.Groups(ctx, p, preview.GroupPage{Limit: previewChanges})
	if err != nil {
		return err
	}
	event := api.PreviewEvent{Number: int64(number), Preview: previewOf(p), Changes: []api.ChangeGroup{}}
	for _, g := range groups {
		if s.sent[g.Key] == g.Nodes {
			continue
		}
		s.sent[g.Key], g.Example = g.Nodes, nil
		event.Changes = append(event.Changes, g)
	}
	data, err := json.Marshal(event)
	if err != nil {
		return err
	}
	s.after = number
	return s.send(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", number, api.StreamChanged, data))
}
