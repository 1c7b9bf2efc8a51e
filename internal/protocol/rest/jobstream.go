package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
)

// The pace of a stream of events.
const (
	eventsAtOnce = 500                    // runs that are read together
	eventPause   = 100 * time.Millisecond // at least between two reads that found little: more comes together then
	summaryPause = 250 * time.Millisecond // at least between two summaries
)

// streamJob sends what changes in a job as server-sent events, until the job is over,
// the caller is gone, the server stops, or the caller may not see it any more. The
// number of an event is that of the change in the job's rows: who comes back with it
// gets what changed behind it.
func (h *jobs) streamJob(w http.ResponseWriter, r *http.Request, begin func(any) error) (any, error) {
	var request api.JobEventsRequest
	if err := api.Bind(r, &request); err != nil {
		return nil, err
	}
	after, err := afterOf(lastSeen(r, request.After))
	if err != nil {
		return nil, err
	}
	if err := begin(request); err != nil {
		return nil, err
	}
	j, err := h.job(r.Context(), fleet.JobRead, request.Job)
	if err != nil {
		return nil, err
	}
	s := jobStream{eventStream: opened(h.streams, w, r), jobs: h, id: j.ID, after: int64(after), summary: request.Summary}
	return s.follow(r.Context(), s.run, "stream", "job", "id", j.ID)
}

// jobStream is one caller who follows a job.
type jobStream struct {
	eventStream
	jobs  *jobs
	id    int64
	after int64 // all changes up to here were sent

	summary bool // only the job is told of
}

func (s *jobStream) run(ctx context.Context) error {
	if err := s.send(": follow\n\n"); err != nil { // so that the answer begins
		return err
	}
	for {
		changes, err := s.changes(ctx)
		if err != nil {
			return err
		}
		if err := s.tell(changes); err != nil {
			return err
		}
		if changes.Job.Status.Final() && changes.Last >= changes.Job.Change {
			return s.send("event: " + api.StreamEnded + "\ndata: {}\n\n")
		}
		if len(changes.Runs) == eventsAtOnce {
			continue
		}
		pause, wait := eventPause, s.jobs.jobs.Wait
		if s.summary {
			pause, wait = summaryPause, s.jobs.jobs.WaitGlance
		}
		if err := s.rest(ctx, pause, func() error { return wait(ctx, s.id, s.after) }, func(ctx context.Context) error {
			_, err := s.jobs.job(ctx, fleet.JobRead, strconv.FormatInt(s.id, 10))
			return err
		}); err != nil {
			return err
		}
	}
}

// changes is what is to be told. All who hear summaries share what is read.
func (s *jobStream) changes(ctx context.Context) (job.Changes, error) {
	if !s.summary {
		return s.jobs.jobs.Changes(ctx, s.id, s.after, eventsAtOnce)
	}
	j, err := s.jobs.jobs.Glance(ctx, s.id)
	return job.Changes{Job: j, Own: j.Change > s.after, Last: max(j.Change, s.after)}, err
}

// tell sends changes in the order of their numbers.
func (s *jobStream) tell(c job.Changes) error {
	events := make([]api.JobEvent, 0, len(c.Runs)+1)
	for _, r := range c.Runs {
		events = append(events, api.JobEvent{Number: r.Change, Run: new(runOf(s.id, r))})
	}
	if c.Own {
		own := c.Job.OwnChange
		if s.summary {
			own = c.Last
		}
		events = append(events, api.JobEvent{Number: own, Job: new(jobOf(c.Job))})
		slices.SortStableFunc(events, func(a, b api.JobEvent) int { return int(a.Number - b.Number) })
	}
	text := make([]byte, 0, 512*len(events))
	for _, event := range events {
		data, err := json.Marshal(event)
		if err != nil {
			return err
		}
		text = fmt.Appendf(text, "id: %d\nevent: %s\ndata: %s\n\n", event.Number, api.StreamChanged, data)
	}
	s.after = max(s.after, c.Last)
	if len(text) == 0 {
		return nil
	}
	return s.send(string(text))
}
